"""Locks: one holder, for as long as it lives, at the path where it is looked for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jackin_memd.host.locks import HeldLock
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "memd.lock"


def is_held(path: Path) -> bool:
    """What another process finds."""
    ask = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR)\n"
        "try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError: sys.exit(7)"
    )
    status = subprocess.run([sys.executable, "-c", ask, str(path)], check=False).returncode
    assert status in {0, 7}
    return status == 7


@proves("daemon-liveness")
def test_a_second_holder_is_refused_in_this_process_and_in_others(path: Path) -> None:
    with HeldLock(path):
        assert is_held(path)
        for _ in range(2):
            with pytest.raises(BlockingIOError):
                HeldLock(path)
    assert not is_held(path)


def test_a_lock_that_was_closed_may_be_taken_again(path: Path) -> None:
    HeldLock(path).close()
    with HeldLock(path) as again:
        again.check()


@proves("daemon-lock-kept")
def test_a_lock_is_kept_when_the_file_is_opened_and_closed_elsewhere(path: Path) -> None:
    with HeldLock(path):
        path.read_bytes()
        with path.open("r+b"):
            pass
        with pytest.raises(BlockingIOError):
            HeldLock(path)
        assert is_held(path)


def test_who_may_wait_gets_the_lock_when_it_is_let_go(path: Path) -> None:
    first = HeldLock(path)
    got = threading.Event()

    def wait() -> None:
        with HeldLock(path, wait=True):
            got.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not got.is_set()
    first.close()
    waiting.join()
    assert got.is_set()


def replace(path: Path) -> None:
    path.with_name("other").touch()
    path.with_name("other").rename(path)


def become_symlink(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def folder_becomes_a_file(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.touch()


TAKEN: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "replaced": replace,
    "moved": lambda path: path.rename(path.with_name("moved")),
    "a symlink": become_symlink,
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
    "folder a file": folder_becomes_a_file,
}


@proves("daemon-dispossessed")
@pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)
def test_a_lock_that_is_not_at_its_path_any_more_is_noticed(
    path: Path, take: Callable[[Path], object]
) -> None:
    with HeldLock(path) as lock:
        lock.check()
        take(path)
        with pytest.raises(MemdError) as noticed:
            lock.check()
        assert noticed.value.code is ErrorCode.DAEMON_STOPPING
        assert str(path) in noticed.value.message


def test_a_note_in_the_file_is_the_last_one_and_changes_nothing(path: Path) -> None:
    with HeldLock(path) as lock:
        lock.write("a longer note\n")
        lock.write("42\n")
        lock.check()
        assert path.read_text(encoding="utf-8") == "42\n"
    assert path.read_text(encoding="utf-8") == "42\n"


def test_a_lock_is_the_owners_alone(path: Path) -> None:
    with HeldLock(path):
        assert path.stat().st_mode & 0o077 == 0


def test_a_note_that_finds_no_room_is_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    with HeldLock(path) as lock, monkeypatch.context() as faulty:
        faulty.setattr(os, "pwrite", full)
        lock.write("42\n")
        lock.check()


def test_a_folder_that_is_not_there_has_no_lock(tmp_path: Path) -> None:
    with pytest.raises(MemdError) as refused:
        HeldLock(tmp_path / "gone" / "memd.lock")
    assert refused.value.code is ErrorCode.HOME_UNUSABLE
    assert "No such file or directory" in refused.value.message


@pytest.mark.parametrize("to", ["elsewhere", "nowhere"])
def test_a_symlink_at_its_path_is_not_followed(path: Path, to: str) -> None:
    (path.parent / "elsewhere").write_text("mine", encoding="utf-8")
    path.symlink_to(path.parent / to)
    with pytest.raises(MemdError, match="symbolic link") as refused:
        HeldLock(path)
    assert refused.value.code is ErrorCode.HOME_UNUSABLE
    assert (path.parent / "elsewhere").read_text(encoding="utf-8") == "mine"
    assert not (path.parent / "nowhere").exists()

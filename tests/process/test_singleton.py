"""One daemon for each home, and nothing at its paths that it did not make itself."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode
from tests.support.daemon import CONTAINER, OTHER, Daemon, Finished, StartError, new_daemon, record
from tests.support.instances import load
from tests.support.processes import left
from tests.support.proves import proves


def refused(finished: Finished, code: ErrorCode) -> str:
    assert finished.status == code.exit_status, finished
    assert "hint:" in finished.err
    assert "Traceback" not in finished.err
    return finished.err


def identity(path: Path) -> tuple[int, int, int, int]:
    """Of what is at the path itself; an inode's number alone may be used again."""
    found = os.lstat(path)
    return found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns


@proves("daemon-singleton", "daemon-liveness")
def test_a_second_daemon_says_that_one_runs_and_changes_nothing(daemon: Daemon) -> None:
    err = refused(daemon.command("serve"), ErrorCode.DAEMON_RUNNING)
    assert "jackin-memd status" in err
    assert daemon.status().pid == daemon.pid


@proves("daemon-liveness")
@pytest.mark.parametrize("pid", [b"", b"1\n", b"99999999\n", b"no number"])
def test_what_stands_in_the_lock_file_decides_nothing(stopped: Daemon, pid: bytes) -> None:
    run = stopped.home / "run"
    run.mkdir(parents=True, mode=0o700)
    (run / "memd.lock").write_bytes(pid)
    stopped.start()
    assert (run / "memd.lock").read_text() == f"{stopped.pid}\n"


@proves("daemon-stale-socket")
def test_the_sockets_of_a_killed_daemon_are_replaced(daemon: Daemon) -> None:
    daemon.load()
    daemon.kill()
    stale = identity(daemon.socket), identity(daemon.instance_socket())
    daemon.start()
    with daemon.capsule() as capsule:
        record(capsule, "working")
    assert identity(daemon.socket) != stale[0]
    assert identity(daemon.instance_socket()) != stale[1]


# -- something else at the operator's socket path ----------------------------------------


@contextmanager
def plain_file(path: Path) -> Iterator[None]:
    path.write_bytes(b"somebody's")
    yield


@contextmanager
def folder(path: Path) -> Iterator[None]:
    path.mkdir()
    yield


@contextmanager
def symlink(path: Path) -> Iterator[None]:
    path.symlink_to(path.parent / "elsewhere")
    yield


@contextmanager
def live_socket(path: Path) -> Iterator[None]:
    """Of a program that accepts nobody and so says nothing."""
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        yield


Plant = Callable[[Path], AbstractContextManager[None]]


@proves("daemon-stale-socket")
@pytest.mark.parametrize("plant", [plain_file, folder, symlink, live_socket])
def test_what_is_at_the_sockets_path_is_left_alone_with_a_message(
    stopped: Daemon, plant: Plant
) -> None:
    stopped.start()
    stopped.load()
    stopped.terminate()
    with plant(stopped.socket):
        before = identity(stopped.socket)
        for command in ("serve", "start"):
            err = refused(stopped.command(command), ErrorCode.SOCKET_PATH_OCCUPIED)
            assert str(stopped.socket) in err
        assert identity(stopped.socket) == before
        assert left(stopped.home) == []
        assert not stopped.instance_socket().exists()  # nothing of the attempt is left
    shutil.rmtree(stopped.socket) if stopped.socket.is_dir() else stopped.socket.unlink()
    stopped.start()
    with stopped.capsule() as capsule:
        record(capsule, "working")


@proves("daemon-liveness")
@pytest.mark.parametrize("name", ["memd.lock", "memd.start.lock"])
@pytest.mark.parametrize("plant", [folder, symlink])
def test_a_lock_that_cannot_be_one_is_refused_with_its_path(
    stopped: Daemon, name: str, plant: Plant
) -> None:
    run = stopped.home / "run"
    run.mkdir(parents=True, mode=0o700)
    with plant(run / name):
        err = refused(stopped.command("start"), ErrorCode.HOME_UNUSABLE)
        assert str(run / name) in err
        assert not (run / "elsewhere").exists()
    assert left(stopped.home) == []


@proves("daemon-leaves-jackins-files")
def test_jackins_own_files_are_left_alone(stopped: Daemon) -> None:
    theirs = {
        "run/jackin-daemon.pid": b"1234\n",
        "run/jackin-daemon.sock": b"a stand-in",
        "data/instances.json": b'{"version": 1, "instances": []}',
        "data/instances.json.lock": b"",
        "data/workspaces/x/y": b"z",
        f"sockets/{CONTAINER}/jackin.sock": b"a stand-in",
        f"data/{CONTAINER}/state/usage.db": b"theirs",
        "config.toml": b"",
    }
    for name, content in theirs.items():
        path = stopped.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    before = {name: (stopped.home / name).stat() for name in theirs}
    stopped.start()
    stopped.load()
    with stopped.capsule() as capsule:
        record(capsule, "working")
    stopped.terminate()
    after = {name: (stopped.home / name).stat() for name in theirs}
    assert {n: (s.st_ino, s.st_mode, s.st_mtime_ns) for n, s in after.items()} == {
        n: (s.st_ino, s.st_mode, s.st_mtime_ns) for n, s in before.items()
    }


def test_two_homes_are_two_daemons_that_share_nothing(daemon: Daemon) -> None:
    (daemon.home.parent / "second").mkdir()
    with new_daemon(daemon.home.parent / "second") as second:
        second.start()
        daemon.load(CONTAINER)
        load(second, OTHER, role_key="reviewer")
        load(second, CONTAINER, role_key="other")
        with daemon.capsule() as one, second.capsule() as another:
            record(one, "first's")
            record(another, "second's", "second's")
        assert daemon.status().instances_loaded == 1
        assert daemon.rows("SELECT new_status FROM status_log") == [("first's",)]
        assert second.command("stop").status == 0
        assert second.wait() == 0
        with daemon.capsule() as one:
            assert record(one, "on").first_id == 2


@proves("daemon-singleton")
def test_a_home_by_another_name_is_the_same_home(daemon: Daemon) -> None:
    alias = daemon.home.parent / "alias"
    alias.symlink_to(daemon.home)
    refused(daemon.command("--home", str(alias), "serve"), ErrorCode.DAEMON_RUNNING)
    found = daemon.command("--home", str(alias), "start")
    assert f"was running already: pid {daemon.pid}" in found.out


# -- homes that can't be used ----------------------------------------------------------------


@pytest.mark.parametrize("where", ["home", "home/run", "home/data", "home/sockets"])
def test_a_home_with_a_file_in_the_way_is_refused_and_left_alone(
    stopped: Daemon, where: str
) -> None:
    path = stopped.home.parent / where
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"somebody's")
    with pytest.raises(StartError) as caught:
        stopped.start()
    assert caught.value.failure["code"] in {"HOME_UNUSABLE", "PATH_UNSAFE"}
    assert str(path) in caught.value.failure["message"]
    assert caught.value.failure["hint"]
    assert path.read_bytes() == b"somebody's"


@pytest.mark.parametrize("home", ["relative", "./x", "~/x"])
@pytest.mark.parametrize("command", ["serve", "start", "stop", "restart"])
def test_a_relative_home_is_refused_and_nothing_is_created(
    stopped: Daemon, command: str, home: str
) -> None:
    err = refused(stopped.command(command, JACKIN_HOME_DIR=home), ErrorCode.HOME_UNUSABLE)
    assert "absolute" in err
    assert not Path(home).exists()

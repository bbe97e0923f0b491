"""An instance's own files: missed when they are gone, and taken away alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jackin_memd.host import instance_files
from jackin_memd.host.paths import Home, open_home
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container
from tests.support.proves import proves

NAME = Container("jk-k7p9m2xq-shop-builder")
OURS = ("jackin.db-shm", "jackin.db-wal", "jackin.db")


@pytest.fixture
def home(short_path: Path) -> Home:
    """A home with one instance: the daemon's files and nothing else."""
    home = open_home(short_path)
    home.instance_dir(NAME).mkdir()
    home.socket_dir(NAME).mkdir()
    for name in OURS:
        (home.instance_dir(NAME) / name).write_text("ours", encoding="utf-8")
    return home


def everything(home: Home) -> dict[str, str]:
    """Every path below the home, with what a file holds and where a symlink leads."""
    return {
        home.name(path): f"to {path.readlink()}" if path.is_symlink()
        else path.read_text(encoding="utf-8") if path.is_file() else ""
        for path in home.root.rglob("*")
    }  # fmt: skip


# -- missing ---------------------------------------------------------------------


def test_an_instance_whose_files_are_there_misses_nothing(home: Home) -> None:
    assert instance_files.missing(home, NAME) is None


def remove_folder(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()


def become_symlink(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_becomes_a_file(path: Path) -> None:
    remove_folder(path)
    path.parent.touch()


LOST: dict[str, tuple[Callable[[Path], object], str]] = {
    "removed": (Path.unlink, "jackin.db is gone"),
    "folder removed": (remove_folder, f"{NAME} is gone"),
    "folder a file": (folder_becomes_a_file, f"{NAME} is gone"),
    "a symlink": (become_symlink, "jackin.db is not a regular file any more"),
    "a folder": (become_folder, "jackin.db is not a regular file any more"),
    "a pipe": (become_pipe, "jackin.db is not a regular file any more"),
}


@proves("instance-removed-folder")
@pytest.mark.parametrize(("lose", "said"), LOST.values(), ids=LOST)
def test_what_is_gone_is_named_with_both_ways_on(
    home: Home, lose: Callable[[Path], object], said: str
) -> None:
    lose(home.instance_db(NAME))
    error = instance_files.missing(home, NAME)
    assert error is not None
    assert error.code is ErrorCode.INSTANCE_FOLDER_MISSING
    assert error.message.endswith(said)
    for command in ("jackin-mem instance purge", "jackin-mem instance load"):
        assert command in (error.hint or "")


def test_a_folder_that_may_not_be_entered_is_named_with_the_systems_word(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as faulty:
        faulty.setattr(os, "lstat", refuse)
        error = instance_files.missing(home, NAME)
    assert error is not None
    assert error.message.endswith("can't be reached (Permission denied)")


# -- taking away -------------------------------------------------------------------


@proves("instance-purge")
def test_what_is_the_daemons_goes_and_the_empty_folders_with_it(home: Home) -> None:
    removed = instance_files.remove(home, NAME)
    assert removed == [
        *(f"data/{NAME}/{name}" for name in OURS), f"data/{NAME}", f"sockets/{NAME}",
    ]  # fmt: skip
    assert not [name for name in everything(home) if NAME in name]


@proves("instance-purge")
def test_what_is_jackins_stays_as_it_is(home: Home) -> None:
    theirs = [
        home.manifest(NAME),
        home.instance_dir(NAME) / "state" / "usage" / "snapshots.db",
        home.instance_dir(NAME) / "jackin.db-journal-of-another",
        home.instance_dir(NAME) / "jackin.dbx",
        home.socket_dir(NAME) / "jackin.sock",
        home.data / "jk-a2b3c4d5-shop-builder" / "jackin.db",
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name, encoding="utf-8")
    before = everything(home)
    removed = instance_files.remove(home, NAME)
    assert removed == [f"data/{NAME}/{name}" for name in OURS]
    assert everything(home) == {name: v for name, v in before.items() if name not in removed}


@proves("instance-hostile-ground")
@pytest.mark.parametrize("planted", ["folder", "full folder", "symlink", "symlink to a folder"])
def test_what_an_agent_planted_at_the_sockets_path_leads_nowhere(home: Home, planted: str) -> None:
    outside = home.root / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious", encoding="utf-8")
    socket = home.instance_socket(NAME)
    if "symlink" in planted:
        socket.symlink_to(outside if planted.endswith("folder") else outside / "precious")
    else:
        socket.mkdir()
    if planted == "full folder":
        (socket / "mine").write_text("mine", encoding="utf-8")
    before = everything(home)
    removed = instance_files.remove(home, NAME)
    assert f"data/{NAME}" in removed
    after = everything(home)
    assert after["outside/precious"] == "precious"
    assert {n for n in before if n.startswith("sockets")} >= {
        n for n in after if n.startswith("sockets")
    }


@proves("instance-hostile-ground")
@pytest.mark.parametrize("name", ["data", "sockets"])
def test_a_folder_that_is_a_symlink_is_not_emptied(home: Home, name: str) -> None:
    folder = home.root / name / NAME
    moved = home.root / "moved"
    folder.rename(moved)
    folder.symlink_to(moved)
    (moved / "theirs").write_text("theirs", encoding="utf-8")
    instance_files.remove(home, NAME)
    assert (moved / "theirs").read_text(encoding="utf-8") == "theirs"
    assert folder.is_symlink()


def test_taking_away_what_is_gone_is_nothing(home: Home) -> None:
    instance_files.remove(home, NAME)
    assert instance_files.remove(home, NAME) == []


def test_a_removal_that_was_cut_short_is_finished_by_the_next(home: Home) -> None:
    (home.instance_dir(NAME) / "jackin.db-wal").unlink()
    removed = instance_files.remove(home, NAME)
    assert f"data/{NAME}/jackin.db" in removed
    assert f"data/{NAME}/jackin.db-wal" not in removed


@pytest.mark.parametrize("name", OURS)
def test_a_database_that_can_not_be_removed_is_no_silent_success(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    unlink = Path.unlink

    def refuse(path: Path, *arguments: object, **options: object) -> None:
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        unlink(path)

    with monkeypatch.context() as faulty, pytest.raises(PermissionError):
        faulty.setattr(Path, "unlink", refuse)
        instance_files.remove(home, NAME)
    assert home.instance_db(NAME).exists()


def test_a_socket_path_over_the_systems_limit_is_refused(short_path: Path) -> None:
    instance_files.check_socket_path(Home(short_path), NAME)
    with pytest.raises(MemdError) as refused:
        instance_files.check_socket_path(Home(short_path / ("x" * 100)), NAME)
    assert refused.value.code is ErrorCode.SOCKET_PATH_TOO_LONG

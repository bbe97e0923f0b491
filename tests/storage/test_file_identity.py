"""A database that is not at its path any more is noticed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from jackin_memd.storage.connection import FileIdentity
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.storage.files import make, opened
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "jk-k7p9m2xq-shop"
    folder.mkdir()
    return folder / "jackin.db"


@pytest.fixture
def connection(path: Path) -> Iterator[apsw.Connection]:
    with opened(path) as connection:
        yield connection


@pytest.fixture
def identity(path: Path, connection: apsw.Connection) -> FileIdentity:
    return FileIdentity.of(path)


def wal(path: Path) -> Path:
    return path.with_name("jackin.db-wal")


def replace(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)


def become_symlink(path: Path) -> None:
    """The same file, now behind a symlink that leads elsewhere at will."""
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_file_in_the_folders_place(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.touch()


CHANGES: list[Callable[[Path], object]] = [
    lambda path: path.unlink(),
    lambda path: path.rename(path.with_name("moved")),
    replace,
    become_symlink,
    become_folder,
    lambda path: wal(path).unlink(),
    lambda path: replace(wal(path)),
    lambda path: become_symlink(wal(path)),
    lambda path: shutil.rmtree(path.parent),
    lambda path: path.parent.rename(path.parent.with_name("moved")),
    become_file_in_the_folders_place,
]
NAMES = [
    "removed", "moved away", "replaced", "a symlink", "a folder", "WAL removed", "WAL replaced",
    "WAL a symlink", "folder removed", "folder moved", "folder a file",
]  # fmt: skip


@proves("store-replaced")
@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_what_happens_to_the_file_is_noticed_and_named(
    path: Path, identity: FileIdentity, change: Callable[[Path], object]
) -> None:
    identity.check()
    change(path)
    with pytest.raises(MemdError) as noticed:
        identity.check()
    assert noticed.value.code is ErrorCode.DATABASE_REPLACED
    assert str(path) in noticed.value.message
    assert "this call is not acknowledged" in noticed.value.message
    assert "load it again" in (noticed.value.hint or "")


def test_a_database_at_work_stays_itself(
    path: Path, identity: FileIdentity, connection: apsw.Connection
) -> None:
    for number in range(300):
        connection.execute(
            "INSERT INTO status_log(occurred_at, new_status, metadata) VALUES (?, 'x', ?)",
            (number, "x" * 10_000),
        )
        identity.check()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    os.utime(path)
    path.chmod(0o400)
    path.with_name("another").touch()
    identity.check()


@pytest.mark.usefixtures("connection")
def test_an_open_database_is_known_with_its_wal(path: Path) -> None:
    assert FileIdentity.of(path).wal is not None


def test_a_database_that_is_gone_already_has_no_identity(path: Path) -> None:
    with pytest.raises(MemdError) as refused:
        FileIdentity.of(path)
    assert refused.value.code is ErrorCode.DATABASE_REPLACED


def test_two_databases_have_two_identities(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / name)
    assert FileIdentity.of(tmp_path / "one").main != FileIdentity.of(tmp_path / "two").main

"""Opening and closing: modes, pragmas, what a reader may, what a close leaves."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from jackin_memd.storage.connection import (
    BUSY_TIMEOUT_MS,
    Sync,
    abandon,
    make_private,
    open_reader,
    open_writer,
)
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.schema import prepare
from tests.storage.faulty_disk import faulty_disk
from tests.storage.files import change_by_hand, contents, make, opened
from tests.support.proves import proves

INSERT = "INSERT INTO status_log(occurred_at, new_status) VALUES (1, 'busy')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The widest umask there is, as a careless caller would have it."""
    before = os.umask(0)
    yield
    os.umask(before)


def beside(path: Path) -> list[Path]:
    """The database and its side files."""
    return sorted(path.parent.glob(f"{path.name}*"))


def modes(path: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in beside(path)}


# -- modes -----------------------------------------------------------------


@pytest.mark.usefixtures("open_umask")
def test_a_new_database_and_its_side_files_are_the_owners_alone(path: Path) -> None:
    with opened(path) as connection:
        connection.execute(INSERT)
        assert modes(path) == dict.fromkeys(["jackin.db", "jackin.db-shm", "jackin.db-wal"], 0o600)


@proves("store-permissions")
@pytest.mark.usefixtures("open_umask")
def test_a_new_database_is_the_owners_alone_from_the_moment_that_it_exists(path: Path) -> None:
    seen: list[int] = []

    class Watching(apsw.VFS):
        def xOpen(self, name: object, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
            seen.extend(modes(path).values())
            file = apsw.VFSFile(base, name, flags)  # type: ignore[arg-type]
            seen.extend(modes(path).values())
            return file

    base = apsw.vfs_names()[0]
    watching = Watching("watching", base)
    apsw.set_default_vfs("watching")
    try:
        make(path)
    finally:
        apsw.set_default_vfs(base)
        watching.unregister()
    assert len(seen) > 3
    assert set(seen) == {0o600}


@proves("store-permissions")
@pytest.mark.usefixtures("open_umask")
def test_nothing_is_ever_written_to_a_file_that_others_may_read(path: Path) -> None:
    with faulty_disk() as disk:
        make(path)
        with opened(path) as connection:
            connection.execute(INSERT)
    assert disk.modes == {0o600}


@proves("store-permissions")
@pytest.mark.usefixtures("open_umask")
def test_a_database_that_others_could_read_is_closed_to_them_before_it_is_written(
    path: Path,
) -> None:
    make(path)
    path.chmod(0o666)
    with faulty_disk() as disk, opened(path) as connection:
        connection.execute(INSERT)
        assert set(modes(path).values()) == {0o600}
    assert disk.modes == {0o600}


@pytest.mark.usefixtures("open_umask")
def test_side_files_that_a_killed_program_left_open_to_all_are_closed_too(path: Path) -> None:
    make(path)
    killed = apsw.Connection(str(path))
    killed.execute(INSERT)
    copies = [file.with_name(file.name.replace("jackin", "copy")) for file in beside(path)]
    for file, copy in zip(beside(path), copies, strict=True):
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o644)
    killed.close()
    assert len(copies) == 3
    with opened(path.with_name("copy.db")):
        assert {stat.S_IMODE(copy.stat().st_mode) for copy in copies} == {0o600}


def test_a_mode_that_is_narrower_already_is_left_alone(path: Path) -> None:
    make(path)
    path.chmod(0o400)
    make_private(path)
    assert modes(path) == {"jackin.db": 0o400}


# -- pragmas ---------------------------------------------------------------


@pytest.mark.parametrize(("sync", "level"), [(Sync.FULL, 2), (Sync.NORMAL, 1)])
def test_commits_are_synced_as_asked(path: Path, sync: Sync, level: int) -> None:
    connection = open_writer(path, sync, create=True)
    prepare(connection, INSTANCE_SCHEMA, what="jackin.db", create=True)
    assert connection.execute("PRAGMA synchronous").get == level
    connection.close()


@proves("store-full-sync")
@pytest.mark.parametrize(("sync", "syncs"), [(Sync.FULL, True), (Sync.NORMAL, False)])
def test_a_commit_reaches_the_disk_before_it_returns_where_that_was_asked(
    path: Path, sync: Sync, syncs: bool
) -> None:
    with faulty_disk() as disk:
        connection = open_writer(path, sync, create=True)
        prepare(connection, INSTANCE_SCHEMA, what="jackin.db", create=True)
        connection.execute(INSERT)  # the WAL's header, synced once in any case
        disk.syncs = 0
        connection.execute(INSERT)
        assert (disk.syncs > 0) == syncs
        connection.close()


@proves("store-busy-timeout")
@pytest.mark.parametrize("reading", [False, True])
def test_every_connection_has_the_rules_that_all_have(path: Path, reading: bool) -> None:
    make(path)
    connection = open_reader(path) if reading else open_writer(path, Sync.FULL, create=False)
    assert connection.execute("PRAGMA busy_timeout").get == BUSY_TIMEOUT_MS == 5000
    assert connection.execute("PRAGMA foreign_keys").get == 1
    assert connection.execute("PRAGMA trusted_schema").get == 0
    assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    connection.close()


# -- readers ---------------------------------------------------------------


@proves("store-single-writer")
@pytest.mark.parametrize(
    "statement", [INSERT, "DELETE FROM status_log", "CREATE TABLE x (y)", "PRAGMA user_version=7"]
)
def test_a_reader_can_not_write(path: Path, statement: str) -> None:
    make(path)
    reader = open_reader(path)
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute(statement)
    reader.close()


def test_a_reader_makes_no_file(path: Path) -> None:
    with pytest.raises(apsw.CantOpenError):
        open_reader(path)
    assert beside(path) == []


def test_a_reader_follows_no_symlink(path: Path) -> None:
    make(path)
    way = path.with_name("way.db")
    way.symlink_to(path)
    with pytest.raises(apsw.CantOpenError):
        open_reader(way)


# -- closing -----------------------------------------------------------------


def test_a_close_puts_everything_into_the_one_file(path: Path) -> None:
    with opened(path) as connection:
        connection.execute(INSERT)
        assert path.with_name("jackin.db-wal").stat().st_size > 0
    assert beside(path) == [path]
    assert len(contents(path)["status_log"]) == 1


def test_the_close_of_a_replaced_database_leaves_its_successor_alone(path: Path) -> None:
    connection = open_writer(path, Sync.FULL, create=True)
    prepare(connection, INSTANCE_SCHEMA, what="jackin.db", create=True)
    connection.execute(INSERT)
    for file in beside(path):
        file.unlink()
    make(path)
    change_by_hand(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    successor = apsw.Connection(str(path))
    successor.execute(INSERT)
    abandon(connection, in_place=False)
    assert [file.name for file in beside(path)] == ["jackin.db", "jackin.db-shm", "jackin.db-wal"]
    successor.close()
    assert len(contents(path)["status_log"]) == 1

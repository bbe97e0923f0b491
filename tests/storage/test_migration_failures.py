"""A migration that fails leaves the file as it was, and says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from jackin_memd.storage.connection import Sync, open_writer
from jackin_memd.storage.faults import translate
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.schema import Migration, Schema, prepare
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.storage.faulty_disk import every_failure, faulty_disk
from tests.storage.files import (
    by_hand,
    change_by_hand,
    contents,
    fingerprint,
    make,
    make_version,
    meta,
    prepare_at,
)
from tests.support.proves import proves

KNOWN = INSTANCE_SCHEMA.version

BAD = Migration(
    "a third that fails half-way",
    (
        "CREATE TABLE later (id INTEGER PRIMARY KEY)",
        "INSERT INTO later SELECT id FROM status_log",
        "ALTER TABLE tool_history DROP COLUMN duration_ms",
        "INSERT INTO no_such_table VALUES (1)",
    ),
)
WITH_BAD = Schema("instance with a bad migration", (*INSTANCE_SCHEMA.migrations, BAD))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


def fill(path: Path) -> None:
    change_by_hand(
        path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) "
        "INSERT INTO status_log(occurred_at, new_status) SELECT i, 'busy' FROM n",
        "INSERT INTO tool_history VALUES (1, 2, 'x', 3, 4)",
    )


def migration_refused(path: Path, schema: Schema) -> MemdError:
    before, rows = fingerprint(path), contents(path)
    with pytest.raises(MemdError) as refused:
        prepare_at(path, schema)
    assert fingerprint(path) == before
    assert contents(path) == rows
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert refused.value.code is ErrorCode.MIGRATION_FAILED
    return refused.value


@proves("store-migration-atomic")
@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("version", range(1, KNOWN + 1))
def test_a_failed_migration_leaves_every_byte_of_the_file(
    path: Path, version: int, journal: str
) -> None:
    make_version(path, version, journal=journal)
    fill(path)
    error = migration_refused(path, WITH_BAD)
    assert BAD.name in error.message
    assert error.details == {"from_version": version, "to_version": KNOWN + 1}
    assert "run the build that wrote it" in (error.hint or "")


def test_a_database_whose_migration_failed_opens_with_the_build_that_wrote_it(path: Path) -> None:
    epoch = make(path)
    fill(path)
    migration_refused(path, WITH_BAD)
    assert prepare_at(path) == epoch


def test_a_new_database_whose_first_migration_fails_is_made_by_the_next_try(path: Path) -> None:
    broken = Schema("broken from the start", (Migration("first", ("NONSENSE",)),))
    with pytest.raises(MemdError) as refused:
        prepare_at(path, broken, create=True)
    assert refused.value.code is ErrorCode.MIGRATION_FAILED
    prepare_at(path, create=True)
    assert contents(path)["_meta"]


@proves("store-migration-atomic")
@pytest.mark.parametrize(
    ("fault", "code"),
    [(apsw.FullError, ErrorCode.DISK_FULL), (apsw.IOError, ErrorCode.STORAGE_FAILED)],
)
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_disk_that_fails_anywhere_in_a_migration_leaves_the_old_version_or_the_new(
    tmp_path: Path, journal: str, fault: type[apsw.Error], code: ErrorCode
) -> None:
    made, path = tmp_path / "made.db", tmp_path / "jackin.db"
    make_version(made, 1, journal=journal)
    fill(made)
    old, new, codes = contents(made), migrated(made), set()

    def attempt(operation: int) -> None:
        for beside in ("", "-wal", "-shm", "-journal"):
            Path(f"{path}{beside}").unlink(missing_ok=True)
        shutil.copy(made, path)
        try:
            prepare_at(path)
        except apsw.Error as error:
            codes.add(translate(error, "jackin.db").code)
            disk.mend()
            assert contents(path) in (old, new)
            prepare_at(path)
        assert contents(path) == new

    with faulty_disk() as disk:
        assert every_failure(disk, fault, attempt) > 3
    assert codes == {code}


def migrated(made: Path) -> dict[str, list[tuple[object, ...]]]:
    copy = made.with_name("copy.db")
    shutil.copy(made, copy)
    prepare_at(copy)
    return contents(copy)


def test_a_migration_that_another_program_keeps_waiting_is_not_called_broken(path: Path) -> None:
    make_version(path, 1)
    with by_hand(path) as other:
        other.execute("BEGIN IMMEDIATE")
        connection = open_writer(path, Sync.NORMAL, create=False)
        connection.set_busy_timeout(0)
        with pytest.raises(apsw.BusyError) as refused:
            prepare(connection, INSTANCE_SCHEMA, what="jackin.db", create=False)
        connection.close()
    assert "another program holds a lock" in translate(refused.value, "jackin.db").message
    prepare_at(path)


def test_a_disk_that_fails_anywhere_in_the_making_leaves_a_database_to_make_again(
    tmp_path: Path,
) -> None:
    def attempt(operation: int) -> None:
        path = tmp_path / f"{operation}.db"
        try:
            prepare_at(path, create=True)
        except apsw.Error as error:
            assert translate(error, "jackin.db").code is ErrorCode.DISK_FULL
            disk.mend()
            prepare_at(path, create=True)
        assert meta(path)["schema_version"] == str(KNOWN)

    with faulty_disk() as disk:
        assert every_failure(disk, apsw.FullError, attempt) > 10

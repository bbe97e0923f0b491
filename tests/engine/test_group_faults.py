"""A group whose disk or statement fails at any point leaves nothing half-done.

Each kind of change is tried with the first statement failing, then the second,
and so on until none is left to fail; then again with the first write to the
disk failing, the second, and so on.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from jackin_memd.engine.group import Write, commit_group
from jackin_memd.storage.connection import Sync, close, open_writer
from jackin_memd.storage.schema import Schema, prepare
from tests.engine.writes import GROUPS, append, codes, expected_after, prepared, upsert
from tests.storage.faulty_disk import every_failure, faulty_disk
from tests.storage.files import contents
from tests.support.proves import proves

FAULTS = {
    apsw.FullError: "DISK_FULL",
    apsw.IOError: "STORAGE_FAILED",
    apsw.BusyError: "DATABASE_UNAVAILABLE",
    apsw.CorruptError: "DATABASE_CORRUPT",
    apsw.SQLError: "INTERNAL_ERROR",
}


class Faulty(apsw.Connection):
    """Raises a fault instead of running the k-th statement, or with `undo` as SQLite
    does when the disk fails: with the whole transaction undone by itself. A ROLLBACK
    ends the transaction even where it fails."""

    statements = 0
    fail_at: int | None = None
    fault: type[apsw.Error] = apsw.FullError
    undo = False

    def _count(self, statement: str) -> None:
        self.statements += 1
        if self.statements == self.fail_at:
            if self.in_transaction and (self.undo or statement == "ROLLBACK"):
                super().execute("ROLLBACK")
            raise self.fault

    def execute(self, statements: str, *arguments: Any, **options: Any) -> apsw.Cursor:
        self._count(statements)
        return super().execute(statements, *arguments, **options)

    def executemany(self, statements: str, *arguments: Any, **options: Any) -> apsw.Cursor:
        self._count(statements)
        return super().executemany(statements, *arguments, **options)


def fine() -> None:
    """The file is still at its path."""


def copies(folder: Path, schema: Schema) -> Callable[[], Path]:
    """Gives the same database again and again."""
    made, numbers = folder / "made.db", itertools.count()
    prepared(made, schema)
    return lambda: Path(shutil.copy(made, folder / f"{next(numbers)}.db"))


def check(path: Path, writes: Sequence[Write[Any]], outcomes: Sequence[Any]) -> None:
    """Only what succeeded is there, as another program sees it."""
    before = path.with_name("made.db")
    assert contents(path) == expected_after(before, writes, outcomes)


def next_group(connection: apsw.Connection, schema: Schema) -> None:
    """The connection works on, without being opened again."""
    write: Write[Any] = upsert("next") if schema.kind == "registry" else append("next")
    assert codes(commit_group(connection, [write], fine, "x.db")) == [None]


Arranged = tuple[Schema, list[Write[Any]]]


@pytest.fixture(params=GROUPS)
def arranged(request: pytest.FixtureRequest) -> Arranged:
    return GROUPS[request.param]


@proves("store-atomic-call", "store-savepoints")
@pytest.mark.parametrize("undo", [False, True], ids=["statement undone", "all undone"])
@pytest.mark.parametrize("fault", FAULTS)
def test_whichever_statement_fails_only_what_succeeded_is_there(
    tmp_path: Path, arranged: Arranged, fault: type[apsw.Error], undo: bool
) -> None:
    schema, writes = arranged
    untouched = undisturbed(tmp_path / "fine", schema, writes)
    new_copy = copies(tmp_path, schema)
    for statement in itertools.count(1):
        path = new_copy()
        connection = Faulty(str(path))
        connection.execute("PRAGMA synchronous=OFF")
        connection.statements, connection.fail_at = 0, statement
        connection.fault, connection.undo = fault, undo
        outcomes = commit_group(connection, writes, fine, "x.db")
        assert not connection.in_transaction
        check(path, writes, outcomes)
        if connection.statements < statement:
            break
        told = codes(outcomes)
        assert {FAULTS[fault], *untouched} >= set(told)
        if undo and FAULTS[fault] in told and statement > 1:
            assert_all_or_own(told, untouched)
        connection.fail_at = None
        next_group(connection, schema)
        connection.close()
    assert statement > 3
    assert codes(outcomes) == untouched


def undisturbed(folder: Path, schema: Schema, writes: Sequence[Write[Any]]) -> list[str | None]:
    """The codes of the group where nothing fails."""
    folder.mkdir()
    path = copies(folder, schema)()
    connection = apsw.Connection(str(path))
    outcomes = commit_group(connection, writes, fine, "x.db")
    connection.close()
    return codes(outcomes)


def assert_all_or_own(told: list[str | None], untouched: list[str | None]) -> None:
    """Where SQLite undid the transaction, nobody is told that his write is there."""
    assert None not in told or told == untouched


@proves("store-atomic-call", "store-disk-full")
@pytest.mark.parametrize("sync", Sync)
@pytest.mark.parametrize("fault", [apsw.FullError, apsw.IOError])
def test_whichever_write_to_the_disk_fails_only_what_succeeded_is_there(
    tmp_path: Path, arranged: Arranged, fault: type[apsw.Error], sync: Sync
) -> None:
    schema, writes = arranged
    new_copy = copies(tmp_path, schema)

    def attempt(operation: int) -> None:
        path = new_copy()
        connection = open_writer(path, sync, create=False)
        prepare(connection, schema, what="x.db", create=False)
        disk.fail_at(operation, fault)
        outcomes = commit_group(connection, writes, fine, "x.db")
        disk.mend()
        assert not connection.in_transaction
        if disk.failed:
            assert set(codes(outcomes)) == {FAULTS[fault]}
        check(path, writes, outcomes)
        next_group(connection, schema)
        close(connection)

    with faulty_disk() as disk:
        failures = every_failure(disk, fault, attempt)
    writes_nothing = arranged == GROUPS["repeated keyed append"]
    assert failures == 0 if writes_nothing else failures >= 2


def test_a_commit_that_fails_is_told_to_everyone(tmp_path: Path) -> None:
    schema, writes = GROUPS["appends and keyed appends"]
    path = copies(tmp_path, schema)()
    connection = Failing(str(path))
    outcomes = commit_group(connection, writes, fine, "x.db")
    assert codes(outcomes) == ["DISK_FULL"] * len(writes)
    check(path, writes, outcomes)
    connection.close()


class Failing(apsw.Connection):
    def execute(self, statements: str, *arguments: Any, **options: Any) -> apsw.Cursor:
        if statements == "COMMIT":
            raise apsw.FullError
        return super().execute(statements, *arguments, **options)

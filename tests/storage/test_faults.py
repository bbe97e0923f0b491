"""SQLite's errors as errors that say what to do, without a stored value."""

from __future__ import annotations

import apsw
import pytest

from jackin_memd.storage.faults import translate
from jackin_memd.wire.errors import ErrorCode

STORED = "hunter2"


@pytest.mark.parametrize(
    ("kind", "code", "word"),
    [
        (apsw.FullError, ErrorCode.DISK_FULL, "free some space"),
        (apsw.CorruptError, ErrorCode.DATABASE_CORRUPT, "restore a backup"),
        (apsw.NotADBError, ErrorCode.DATABASE_CORRUPT, "restore a backup"),
        (apsw.CantOpenError, ErrorCode.DATABASE_UNAVAILABLE, "symlink"),
        (apsw.ReadOnlyError, ErrorCode.DATABASE_UNAVAILABLE, "writable"),
        (apsw.BusyError, ErrorCode.DATABASE_UNAVAILABLE, "close the program"),
        (apsw.LockedError, ErrorCode.DATABASE_UNAVAILABLE, "close the program"),
        (apsw.IOError, ErrorCode.STORAGE_FAILED, "look at the disk"),
    ],
)
def test_a_fault_of_the_disk_or_the_file_says_what_to_do(
    kind: type[apsw.Error], code: ErrorCode, word: str
) -> None:
    error = translate(kind("the text of SQLite"), "data/x/jackin.db")
    assert error.code is code
    assert "data/x/jackin.db" in error.message
    assert word in (error.hint or "")


def test_a_disk_without_room_for_the_side_files_is_a_full_one() -> None:
    error = translate(apsw.exception_for(apsw.SQLITE_IOERR_SHMSIZE), "x.db")  # type: ignore[arg-type]
    assert error.code is ErrorCode.DISK_FULL
    error = translate(apsw.exception_for(apsw.SQLITE_IOERR_WRITE), "x.db")  # type: ignore[arg-type]
    assert error.code is ErrorCode.STORAGE_FAILED


def test_a_file_that_can_not_be_reached_is_named_with_the_systems_word() -> None:
    error = translate(PermissionError(13, "Permission denied", "/secret/place"), "data/x/jackin.db")
    assert error.code is ErrorCode.DATABASE_UNAVAILABLE
    assert error.message == "data/x/jackin.db can't be reached: Permission denied"


@pytest.mark.parametrize(
    "kind", [apsw.ConstraintError, apsw.SQLError, apsw.MismatchError, apsw.TooBigError, apsw.Error]
)
def test_a_refused_statement_is_our_fault_and_quotes_nothing(kind: type[apsw.Error]) -> None:
    error = translate(kind(f"UNIQUE constraint failed: {STORED}"), "data/x/jackin.db")
    assert error.code is ErrorCode.INTERNAL_ERROR
    assert STORED not in f"{error} {error.data()}"

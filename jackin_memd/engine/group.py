"""Group commit: many writes, one transaction, each undone alone when it fails.

Pure APSW, no threads: what the writer runs, and what tests can drive directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

import apsw

from jackin_memd.storage.faults import translate
from jackin_memd.wire.errors import MemdError

T_co = TypeVar("T_co", covariant=True)

Outcome = Any | BaseException


class Write(Protocol[T_co]):
    """A change to one database. It may be run twice: once with its neighbours,
    and again alone when the neighbours' savepoint was undone."""

    @property
    def row_count(self) -> int:
        """Rows that it adds or changes, for the statistics."""
        ...

    def apply(self, connection: apsw.Connection) -> T_co:
        """Make the change and return its result. Whatever it raises undoes it."""
        ...


class Appending(Write[T_co], Protocol[T_co]):
    """A write that can share one statement with neighbours of its own class."""

    @classmethod
    def apply_run(cls, connection: apsw.Connection, run: Sequence[Any]) -> list[Any]:
        """The results of several writes, in their order."""
        ...


def commit_group(
    connection: apsw.Connection, writes: Sequence[Write[Any]], verify: Callable[[], None], what: str
) -> list[Outcome]:
    """Run the writes in one transaction and commit it; a result or an error for each.

    `verify` runs after the commit and before anything is acknowledged; what it
    raises is everyone's error. A failed commit is everyone's too.
    """
    runs = list(_runs(writes))
    try:
        outcomes = _commit_one_run(connection, runs[0]) if len(runs) == 1 else None
        if outcomes is None:
            outcomes = _in_transaction(connection, lambda: _apply_runs(connection, runs, what))
        verify()
    except apsw.Error as error:
        return [translate(error, what)] * len(writes)
    except MemdError as error:
        return [error] * len(writes)
    return outcomes


def _in_transaction(connection: apsw.Connection, act: Callable[[], list[Outcome]]) -> list[Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = act()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes


def _commit_one_run(connection: apsw.Connection, run: Sequence[Write[Any]]) -> list[Outcome] | None:
    """The usual group, of one run, needs no savepoint: the transaction is undone whole.
    None where a write of it failed, so that they must be tried one by one."""
    try:
        return _in_transaction(connection, lambda: _apply(connection, run))
    except apsw.ConstraintError:
        return None
    except apsw.Error:
        raise  # the disk's or the file's fault, so everyone's
    except Exception:  # noqa: BLE001 - it becomes the outcome of the one that raised it
        return None


def _apply(connection: apsw.Connection, run: Sequence[Write[Any]]) -> list[Outcome]:
    if len(run) == 1:
        return [run[0].apply(connection)]
    results: list[Outcome] = type(run[0]).apply_run(connection, run)  # type: ignore[attr-defined]
    return results


def _apply_runs(
    connection: apsw.Connection, runs: Sequence[Sequence[Write[Any]]], what: str
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for run in runs:
        together = _apply_together(connection, run) if len(run) > 1 else None
        if together is not None:
            outcomes += together
        else:
            outcomes += [_apply_alone(connection, write, what) for write in run]
    return outcomes


def _runs(writes: Sequence[Write[Any]]) -> Iterator[list[Write[Any]]]:
    """Neighbours of one appending class together, every other write by itself."""
    for kind, run in groupby(writes, type):
        if hasattr(kind, "apply_run"):
            yield list(run)
        else:
            for write in run:
                yield [write]


def _apply_together(connection: apsw.Connection, run: Sequence[Write[Any]]) -> list[Outcome] | None:
    """The results of the run, or None where it must be tried one by one."""
    connection.execute("SAVEPOINT run")
    try:
        results = _apply(connection, run)
    except Exception:
        if not _undo(connection, "run"):
            raise
        return None
    connection.execute("RELEASE run")
    return results


def _apply_alone(connection: apsw.Connection, write: Write[Any], what: str) -> Outcome:
    connection.execute("SAVEPOINT write")
    try:
        result = write.apply(connection)
    except apsw.Error as error:
        if not _undo(connection, "write"):
            raise
        return translate(error, what)
    except Exception as error:
        if not _undo(connection, "write"):
            raise
        return error
    connection.execute("RELEASE write")
    return result


def _undo(connection: apsw.Connection, savepoint: str) -> bool:
    """Undo one write. False where SQLite has undone the whole transaction by itself
    (disk full, I/O error): nothing is left to save, and the error is everyone's."""
    if not connection.in_transaction:
        return False
    connection.execute(f"ROLLBACK TO {savepoint}; RELEASE {savepoint}")
    return True

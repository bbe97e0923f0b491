"""ADR 1: APSW, pyturso and the standard library's sqlite3, doing the same work.

All three write in WAL mode with `synchronous=FULL` through the same few lines;
what differs is the library below `execute`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol, cast

import apsw
import turso

from benchmarks import turso_processes
from benchmarks.measure import Settings, each_us, median, scratch, us
from benchmarks.report import Table

INSERT = "INSERT INTO status_log(occurred_at, new_status, metadata) VALUES (?, ?, ?)"
BATCH_ROWS = 100
READ_ROWS = 10_000
_ROW = (1_796_000_000, "working", None)

#: SQLite's documentation gives 3.7.0 to 3.51.2 as affected by the WAL-reset
#: bug, 3.51.3 as fixed, with the fix also in 3.50.7 and 3.44.6.
_FIXED = (3, 51, 3)
_BACKPORTS = ((3, 50, 7), (3, 44, 6))


class Connection(Protocol):
    """The part of the three interfaces that they have in common."""

    def execute(self, sql: str, bindings: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Any: ...
    def close(self) -> None: ...


def _open_apsw(path: Path) -> Connection:
    return cast("Connection", apsw.Connection(str(path)))


def _open_turso(path: Path) -> Connection:
    return cast("Connection", turso.connect(str(path), isolation_level=None))


def _open_stdlib(path: Path) -> Connection:
    return cast("Connection", sqlite3.connect(path, isolation_level=None))


BINDINGS: dict[str, Callable[[Path], Connection]] = {
    "APSW": _open_apsw,
    "pyturso": _open_turso,
    "sqlite3": _open_stdlib,
}


def run(settings: Settings) -> Iterator[Table]:
    yield _versions()
    yield _speed(settings)
    yield from turso_processes.tables()


def has_wal_reset_bug(version: str) -> bool:
    """By the version number alone; a distributor may have patched an older one."""
    number = tuple(int(part) for part in version.split("."))[:3]
    backported = any(number[:2] == fix[:2] and number >= fix for fix in _BACKPORTS)
    return (3, 7, 0) <= number < _FIXED and not backported


def _versions() -> Table:
    carried = [
        ("APSW", apsw.apsw_version(), apsw.sqlite_lib_version(), "carried in the wheel"),
        ("sqlite3", "–", sqlite3.sqlite_version, "whatever this Python was linked with"),
    ]
    rows = [
        [name, version, sqlite, whose, "yes" if has_wal_reset_bug(sqlite) else "no"]
        for name, version, sqlite, whose in carried
    ]
    claimed = turso.connect(":memory:").execute("SELECT sqlite_version()").fetchone()[0]
    # Not a build of SQLite: the number says which SQL it aims at.
    rows.append(["pyturso", _turso_version(), f"says {claimed}", "a rewrite in Rust", "–"])
    return Table(
        title="Versions",
        header=["binding", "version", "SQLite", "where it comes from", "WAL-reset bug by number"],
        rows=rows,
        notes=[
            (
                "The bug needs several connections that write and checkpoint one WAL file. "
                "SQLite's documentation gives 3.7.0 to 3.51.2 as affected, 3.51.3 as fixed, and "
                "the fix as carried back to 3.50.7 and 3.44.6."
            )
        ],
    )


def _turso_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return version("pyturso")


def _speed(settings: Settings) -> Table:
    works: dict[str, Callable[[Connection, Settings], list[float]]] = {
        "one row, one durable commit": _single_commits,
        f"{BATCH_ROWS} rows, one durable commit": _batches,
        f"read one of {READ_ROWS:,} rows by its id": _point_reads,
    }
    p50s: dict[tuple[str, str], list[float]] = {(w, n): [] for w in works for n in BINDINGS}
    means: dict[tuple[str, str], list[float]] = {(w, n): [] for w in works for n in BINDINGS}
    with scratch() as folder:
        for turn in settings.turns():
            names = list(BINDINGS)[turn % 3 :] + list(BINDINGS)[: turn % 3]
            for name in names:
                connection = _prepared(BINDINGS[name], folder / f"{name}-{turn}.db")
                for work, measure in works.items():
                    taken = measure(connection, settings)
                    p50s[work, name].append(median(taken))
                    means[work, name].append(fmean(taken))
                connection.close()
    rows = []
    for work in works:
        for kind, measured in (("p50", p50s), ("mean", means)):
            ours = median(measured[work, "APSW"])
            cells = [_beside(median(measured[work, name]), ours) for name in BINDINGS]
            rows.append([f"{work}, {kind}", *cells])
    return Table(
        title=f"The same work (median of {settings.rounds} rounds, taken in turns)",
        header=["work", *BINDINGS],
        rows=rows,
        notes=[
            (
                "WAL, `synchronous=FULL`, one connection, default checkpointing of each library; "
                "the mean has the checkpoints in it."
            )
        ],
    )


def _beside(value: float, ours: float) -> str:
    text = f"{value:.1f} µs" if value < 100 else us(value)
    return text if value == ours else f"{text} ({value / ours:.1f}×)"


def _prepared(open_: Callable[[Path], Connection], path: Path) -> Connection:
    connection = open_(path)
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=FULL").fetchall()
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    connection.execute(
        "CREATE TABLE status_log(id INTEGER PRIMARY KEY, occurred_at INTEGER NOT NULL, "
        "new_status TEXT NOT NULL, metadata TEXT)"
    )
    return connection


def _single_commits(connection: Connection, settings: Settings) -> list[float]:
    return each_us(lambda: connection.execute(INSERT, _ROW), settings.times(500))


def _batches(connection: Connection, settings: Settings) -> list[float]:
    rows = [_ROW] * BATCH_ROWS

    def commit_batch() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, rows)
        connection.execute("COMMIT")

    return each_us(commit_batch, settings.times(100))


def _point_reads(connection: Connection, settings: Settings) -> list[float]:
    connection.execute("DELETE FROM status_log")
    connection.execute("BEGIN")
    connection.executemany(INSERT, [_ROW] * READ_ROWS)
    connection.execute("COMMIT")
    first = connection.execute("SELECT min(id) FROM status_log").fetchone()[0]
    wanted = iter(range(first, first + READ_ROWS))
    sql = "SELECT occurred_at, new_status, metadata FROM status_log WHERE id = ?"
    return each_us(
        lambda: connection.execute(sql, (next(wanted),)).fetchone(), settings.times(5000)
    )

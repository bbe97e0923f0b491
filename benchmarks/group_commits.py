"""ADR 3: the table that is written to, and three ways to commit a group of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import msgspec

Row = tuple[int, str, str | None]
Commit = Callable[[apsw.Connection, Sequence[Row]], None]

INSERT = "INSERT INTO status_log(occurred_at, new_status, metadata) VALUES (?, ?, ?)"
INSERT_JSON = (
    "INSERT INTO status_log(occurred_at, new_status, metadata) "
    "SELECT value->>0, value->>1, value->>2 FROM json_each(?)"
)
CREATE = (
    "CREATE TABLE IF NOT EXISTS status_log(id INTEGER PRIMARY KEY, occurred_at INTEGER NOT NULL, "
    "new_status TEXT NOT NULL, metadata TEXT)"
)


def open_database(path: Path, synchronous: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(CREATE)
    return connection


def commit_savepoints(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    """Each row undoable alone: three statements a row."""
    connection.execute("BEGIN IMMEDIATE")
    for row in rows:
        connection.execute("SAVEPOINT write")
        connection.execute(INSERT, row)
        connection.execute("RELEASE write")
    connection.execute("COMMIT")


def commit_executemany(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    """One call, one statement step a row; the group is undone together and tried again."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, rows)
    connection.execute("COMMIT")


def commit_json(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    """One statement for the whole group, which is a transaction by itself."""
    connection.execute(INSERT_JSON, (msgspec.json.encode(rows).decode(),))

"""Database files as tests need them: of an older version, by another hand, as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from jackin_memd.core.cursors import Epoch
from jackin_memd.storage.connection import Sync, close, open_writer
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.schema import Schema, prepare

EPOCH = Epoch("00112233445566ff")

Contents = dict[str, list[tuple[object, ...]]]
"""Rows by their table's name."""


def make(path: Path, schema: Schema = INSTANCE_SCHEMA) -> Epoch:
    """A database as the daemon makes it, closed again."""
    with opened(path, schema) as connection:
        return Epoch(str(connection.execute("SELECT value FROM _meta WHERE key='database_id'").get))


def make_version(
    path: Path, version: int, schema: Schema = INSTANCE_SCHEMA, *, journal: str = "wal"
) -> None:
    """A database as the build that knew `version` migrations left it."""
    with by_hand(path) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        for migration in schema.migrations[:version]:
            for statement in migration.statements:
                connection.execute(statement)
        connection.execute(
            "INSERT INTO _meta VALUES ('schema_version', ?), ('database_id', ?)",
            (str(version), EPOCH),
        )


def prepare_at(path: Path, schema: Schema = INSTANCE_SCHEMA, *, create: bool = False) -> Epoch:
    """Open and accept what is at the path, and close it again as the engine does."""
    connection = open_writer(path, Sync.NORMAL, create=create)
    try:
        return prepare(connection, schema, what="jackin.db", create=create)
    finally:
        connection.close()


@contextmanager
def opened(path: Path, schema: Schema = INSTANCE_SCHEMA) -> Iterator[apsw.Connection]:
    """The writing connection of a database, made where it is absent."""
    connection = open_writer(path, Sync.NORMAL, create=True)
    try:
        prepare(connection, schema, what="jackin.db", create=True)
        yield connection
    finally:
        close(connection)


@contextmanager
def by_hand(path: Path) -> Iterator[apsw.Connection]:
    """A connection of another program, that knows nothing of the daemon's rules."""
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()


def change_by_hand(path: Path, *statements: str) -> None:
    with by_hand(path) as connection:
        for statement in statements:
            connection.execute(statement)


def set_meta(path: Path, key: str, value: str | float | bytes) -> None:
    with by_hand(path) as connection:
        connection.execute("UPDATE _meta SET value = ? WHERE key = ?", (value, key))


def meta(path: Path) -> dict[str, str]:
    return {str(key): str(value) for key, value in contents(path)["_meta"]}


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(path: Path) -> Contents:
    """Every row of every table, in the order of the rows."""
    with by_hand(path) as connection:
        return contents_of(connection)


def contents_of(connection: apsw.Connection) -> Contents:
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name")
    names = [str(name) for (name,) in tables]
    return {name: list(connection.execute(f'SELECT * FROM "{name}"')) for name in names}  # noqa: S608


def in_memory(schema: Schema = INSTANCE_SCHEMA) -> apsw.Connection:
    """Today's tables, without a file."""
    connection = apsw.Connection(":memory:")
    for migration in schema.migrations:
        for statement in migration.statements:
            connection.execute(statement)
    return connection

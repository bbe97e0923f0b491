"""Migrations in code, and whether a file is what its version promises.

A file's version is `_meta.schema_version`. On opening, its real tables are
compared with those that the migrations up to that version make; a difference
is named and refused. Pending migrations run in one transaction.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

import apsw
import msgspec

from jackin_memd.core.cursors import Epoch
from jackin_memd.storage.connection import begin_wal
from jackin_memd.wire.errors import ErrorCode, MemdError

_VERSION = "schema_version"
_EPOCH = "database_id"

#: Nine digits: more than there will ever be, few enough to be read.
_VERSION_FORM = re.compile(r"[1-9][0-9]{0,8}\Z")
_EPOCH_FORM = re.compile(r"[0-9a-f]{16}\Z")


class Migration(msgspec.Struct, frozen=True):
    name: str
    statements: tuple[str, ...]


class Schema(msgspec.Struct, frozen=True):
    """One kind of database. Migration k (from 1) makes version k of k-1."""

    kind: str
    migrations: tuple[Migration, ...]

    @property
    def version(self) -> int:
        return len(self.migrations)


def prepare(
    connection: apsw.Connection,
    schema: Schema,
    *,
    what: str,
    create: bool,
    expected: Epoch | None = None,
) -> Epoch:
    """Migrate or accept the database, or make it where `create` says so; return its
    epoch, which must be the expected one.

    A file that is refused keeps its bytes. Raises MemdError (DATABASE_TOO_NEW,
    DATABASE_SCHEMA_MISMATCH, DATABASE_REPLACED, MIGRATION_FAILED).
    """
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    version, epoch = _recognise(connection, schema, what)
    if expected is not None and epoch != expected:
        raise MemdError(
            ErrorCode.DATABASE_REPLACED,
            f"{what} is not the database that was loaded",
            hint="load the instance again if this file is meant, or put the right one back",
        )
    if not version:
        if not create:
            raise _mismatch(what, ["it is empty"])
        begin_wal(connection)  # from its first table on
    if version < schema.version or epoch is None:
        epoch = _migrate(connection, schema, version, what)
    if version:
        begin_wal(connection)  # last, so that a failed migration leaves the mode as well
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    return epoch


def _recognise(connection: apsw.Connection, schema: Schema, what: str) -> tuple[int, Epoch | None]:
    """Version and epoch of a file that is what they promise; (0, None) of an empty one."""
    version = _read_version(connection, what)
    if version > schema.version:
        raise MemdError(
            ErrorCode.DATABASE_TOO_NEW,
            f"{what} has schema version {version}; this build knows up to {schema.version}",
            hint="run the newer jackin-memd that wrote it, or restore an older backup",
            details={"found": version, "known": schema.version},
        )
    if not version:
        return 0, None
    _compare(connection, schema, version, what)
    return version, _read_epoch(connection, what)


def _read_version(connection: apsw.Connection, what: str) -> int:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
    if not names:
        return 0
    columns = connection.execute("SELECT name FROM pragma_table_info('_meta')")
    if not {"key", "value"} <= {name for (name,) in columns}:
        raise _mismatch(what, ["table _meta is missing, so it is not a database of jackin-memd"])
    text = _read_meta(connection, _VERSION)
    if not (isinstance(text, str) and _VERSION_FORM.match(text)):
        raise _mismatch(what, ["_meta.schema_version is not a positive number"])
    return int(text)


def _read_epoch(connection: apsw.Connection, what: str) -> Epoch | None:
    """None where another program made the file."""
    text = _read_meta(connection, _EPOCH)
    if text is None:
        return None
    if not (isinstance(text, str) and _EPOCH_FORM.match(text)):
        raise _mismatch(what, ["_meta.database_id is not 16 hexadecimal digits"])
    return Epoch(text)


def _read_meta(connection: apsw.Connection, key: str) -> object:
    return connection.execute("SELECT value FROM _meta WHERE key=?", (key,)).get


def _migrate(connection: apsw.Connection, schema: Schema, version: int, what: str) -> Epoch:
    current = "the database's id"
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in schema.migrations[version:]:
            current = migration.name
            _apply(connection, migration)
        epoch = _stamp(connection, schema)
        connection.execute("COMMIT")
    except apsw.Error as error:
        if connection.in_transaction:  # a failed disk makes SQLite undo it by itself
            connection.execute("ROLLBACK")
        if isinstance(error, _NO_FAULT_OF_THE_MIGRATION):
            raise
        raise MemdError(
            ErrorCode.MIGRATION_FAILED,
            f"migration {current!r} of {what} failed ({error}); the file is as it was",
            hint="keep the file, run the build that wrote it, and report this message",
            details={"from_version": version, "to_version": schema.version},
        ) from error
    return epoch


_NO_FAULT_OF_THE_MIGRATION = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.BusyError)


def _stamp(connection: apsw.Connection, schema: Schema) -> Epoch:
    """Write the version, and an epoch where there is none."""
    connection.execute(
        "INSERT INTO _meta(key, value) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_VERSION, str(schema.version)),
    )
    connection.execute(
        "INSERT INTO _meta(key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (_EPOCH, secrets.token_hex(8)),
    )
    return Epoch(str(_read_meta(connection, _EPOCH)))


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    for statement in migration.statements:
        connection.execute(statement, can_cache=False)


# -- comparing ------------------------------------------------------------

Shape = dict[str, str]
"""`table status_log column id` and the like, to what is said of it."""

_reference: dict[tuple[str, int], Shape] = {}


def _compare(connection: apsw.Connection, schema: Schema, version: int, what: str) -> None:
    expected, found = reference_shape(schema, version), shape(connection)
    differences = [
        f"{name}: {found.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    if differences:
        raise _mismatch(what, differences)


def reference_shape(schema: Schema, version: int) -> Shape:
    """What the migrations up to `version` make, found by running them in memory."""
    key = (schema.kind, version)
    if key not in _reference:
        memory = apsw.Connection(":memory:")
        for migration in schema.migrations[:version]:
            _apply(memory, migration)
        _reference[key] = shape(memory)
        memory.close()
    return _reference[key]


def shape(connection: apsw.Connection) -> Shape:
    """Every table, column, index, trigger and view of a database."""
    found: Shape = {}
    objects = list(
        connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
    )
    for kind, name, sql in objects:
        if kind == "table":
            found |= _columns(connection, str(name))
        else:
            found[f"{kind} {name}"] = " ".join(str(sql).split())
    return found


def _columns(connection: apsw.Connection, table: str) -> Shape:
    columns = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
        (table,),
    )
    found = {f"table {table}": "present"}
    for name, type_, not_null, default, key, hidden in columns:
        said = [str(type_) or "untyped"]
        said += ["not null"] if not_null else []
        said += [f"default {default}"] if default is not None else []
        said += [f"key {key}"] if key else []
        said += ["hidden"] if hidden else []
        found[f"table {table} column {name}"] = " ".join(said)
    unique = connection.execute(
        "SELECT l.name, group_concat(i.name) FROM pragma_index_list(?) l, "
        "pragma_index_info(l.name) i WHERE l.origin = 'u' GROUP BY l.name",
        (table,),
    )
    for _, names in unique:
        found[f"table {table} unique ({names})"] = "present"
    return found


_MAX_NAMED = 10


def _mismatch(what: str, differences: Sequence[str]) -> MemdError:
    shown = "; ".join(differences[:_MAX_NAMED])
    if len(differences) > _MAX_NAMED:
        shown += f"; {len(differences) - _MAX_NAMED} more"
    return MemdError(
        ErrorCode.DATABASE_SCHEMA_MISMATCH,
        f"{what} is not what its version promises: {shown}",
        hint="another program changed it: restore a backup, or purge the instance",
        details={"differences": list(differences[:_MAX_NAMED])},
    )

"""A file that is not what its version promises is named, refused, and keeps its bytes."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from jackin_memd.storage.faults import translate
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.storage.files import (
    change_by_hand,
    fingerprint,
    make,
    make_version,
    prepare_at,
    set_meta,
)
from tests.support.proves import proves

VERSION = INSTANCE_SCHEMA.version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


def refused(path: Path, *, create: bool = False) -> MemdError:
    """The refusal of a file, whose bytes and side files are as they were."""
    before = fingerprint(path)
    beside = sorted(path.parent.iterdir())
    with pytest.raises(MemdError) as caught:
        try:
            prepare_at(path, create=create)
        except apsw.Error as error:
            raise translate(error, "jackin.db") from error
    assert fingerprint(path) == before
    assert [name for name in beside if not name.exists()] == []
    return caught.value


@proves("store-too-new")
@pytest.mark.parametrize("version", [VERSION + 1, 1000])
def test_a_database_of_a_newer_build_is_refused_with_both_versions(
    path: Path, version: int
) -> None:
    make(path)
    set_meta(path, "schema_version", str(version))
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_TOO_NEW
    assert error.details == {"found": version, "known": VERSION}
    assert "newer jackin-memd" in (error.hint or "")


def test_a_newer_database_is_refused_whatever_else_it_has(path: Path) -> None:
    make(path)
    set_meta(path, "schema_version", str(VERSION + 1))
    change_by_hand(path, "CREATE TABLE brought_by_the_newer_build (x)")
    assert refused(path).code is ErrorCode.DATABASE_TOO_NEW


@proves("store-too-new")
def test_a_newer_database_with_commits_in_its_wal_keeps_the_wal_too(path: Path) -> None:
    make(path)
    writer = apsw.Connection(str(path))
    writer.execute("UPDATE _meta SET value = '1000' WHERE key = 'schema_version'")
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    wal = path.with_name("jackin.db-wal").read_bytes()
    copy.with_name("copy.db-wal").write_bytes(wal)
    writer.close()
    assert refused(copy).code is ErrorCode.DATABASE_TOO_NEW
    assert copy.with_name("copy.db-wal").read_bytes() == wal


@proves("store-schema-compared")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("ALTER TABLE tool_history DROP COLUMN duration_ms",
         "table tool_history column duration_ms: missing, expected INTEGER"),
        ("ALTER TABLE tool_history RENAME COLUMN tool_key TO tool",
         "table tool_history column tool: TEXT not null, expected none"),
        ("ALTER TABLE status_log ADD COLUMN extra TEXT",
         "table status_log column extra: TEXT, expected none"),
        ("ALTER TABLE status_log ADD COLUMN made TEXT AS (new_status)",
         "table status_log column made: TEXT hidden, expected none"),
        ("CREATE TABLE extra (id INTEGER)", "table extra: present, expected none"),
        ("DROP TABLE agent_tags", "table agent_tags: missing, expected present"),
        ("DROP INDEX usage_samples_by_time", "index usage_samples_by_time: missing"),
        ("CREATE INDEX extra ON status_log(new_status)", "index extra: CREATE INDEX"),
        ("CREATE VIEW extra AS SELECT 1", "view extra: CREATE VIEW"),
        ("CREATE TRIGGER extra AFTER INSERT ON status_log BEGIN DELETE FROM agent_tags; END",
         "trigger extra: CREATE TRIGGER"),
    ],
)  # fmt: skip
def test_a_changed_schema_is_named_and_refused(path: Path, change: str, named: str) -> None:
    make(path)
    change_by_hand(path, change)
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert any(difference.startswith(named) for difference in error.details["differences"])
    assert named in error.message
    assert "restore a backup" in (error.hint or "")


@proves("store-schema-compared")
@pytest.mark.parametrize(
    ("table", "was", "becomes", "named"),
    [
        ("status_log", "occurred_at INTEGER NOT NULL", "occurred_at TEXT NOT NULL",
         "column occurred_at: TEXT not null, expected INTEGER not null"),
        ("status_log", "new_status TEXT NOT NULL", "new_status TEXT",
         "column new_status: TEXT, expected TEXT not null"),
        ("status_log", "metadata TEXT", "metadata TEXT DEFAULT 'x'",
         "column metadata: TEXT default 'x', expected TEXT"),
        ("status_log", "id INTEGER PRIMARY KEY", "id INTEGER",
         "column id: INTEGER, expected INTEGER key 1"),
        ("agent_tags", "PRIMARY KEY (kind, value)", "PRIMARY KEY (value, kind)",
         "column kind: TEXT not null key 2, expected TEXT not null key 1"),
        ("request_keys", "UNIQUE (channel, key)", "UNIQUE (key)",
         "unique (channel,key): missing, expected present"),
        ("request_keys", ",\n        UNIQUE (channel, key)", "",
         "unique (channel,key): missing, expected present"),
    ],
)  # fmt: skip
def test_a_table_made_differently_is_named_and_refused(
    path: Path, table: str, was: str, becomes: str, named: str
) -> None:
    make(path)
    statement = next(
        statement
        for migration in INSTANCE_SCHEMA.migrations
        for statement in migration.statements
        if statement.startswith(f"CREATE TABLE {table} ")
    )
    assert was in statement
    change_by_hand(path, f"DROP TABLE {table}", statement.replace(was, becomes))
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert f"table {table} {named}" in error.details["differences"]


@proves("store-schema-compared")
@pytest.mark.parametrize(
    ("was", "becomes"),
    [("UNIQUE INDEX", "INDEX"), ("(source_hash)", "(source_hash, id)"),
     ("WHERE source_hash IS NOT NULL", "")],
)  # fmt: skip
def test_an_index_made_differently_is_named_and_refused(path: Path, was: str, becomes: str) -> None:
    make(path)
    made = next(s for s in INSTANCE_SCHEMA.migrations[0].statements if "by_source_hash" in s)
    change_by_hand(path, "DROP INDEX usage_samples_by_source_hash", made.replace(was, becomes))
    error = refused(path)
    assert "index usage_samples_by_source_hash" in error.message


def test_an_older_version_is_compared_with_what_that_version_was(path: Path) -> None:
    make_version(path, 1)
    change_by_hand(path, "DROP TABLE tool_history")
    assert "table tool_history: missing" in refused(path).message


def test_a_version_that_promises_more_than_the_file_has_is_refused(path: Path) -> None:
    make_version(path, 1)
    set_meta(path, "schema_version", "2")
    assert "table request_keys: missing" in refused(path).message


def test_of_many_differences_ten_are_named_and_the_rest_counted(path: Path) -> None:
    make(path)
    change_by_hand(path, *[f"CREATE VIEW v{number:02} AS SELECT 1" for number in range(14)])
    error = refused(path)
    assert len(error.details["differences"]) == 10
    assert error.message.endswith("; 4 more")

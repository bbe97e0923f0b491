"""jackin.db has the seed's tables: names, columns and indexes as they stand there.

The seed is `Persistent Storage and Workspace Memory Layer`, Tables (V1). Its
memory tables live in the workspace memory's own database.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.schema import Migration
from tests.support.proves import proves

Column = tuple[str, str, bool, int]
"""name, type, NOT NULL, place in the primary key (0 for none)."""

SEED_TABLES: dict[str, list[Column]] = {
    "status_log": [
        ("id", "INTEGER", False, 1),
        ("occurred_at", "INTEGER", True, 0),
        ("new_status", "TEXT", True, 0),
        ("metadata", "TEXT", False, 0),
    ],
    "agent_tags": [
        ("kind", "TEXT", True, 1),
        ("value", "TEXT", True, 2),
        ("first_seen", "INTEGER", True, 0),
        ("last_seen", "INTEGER", True, 0),
    ],
    "github_link_statuses": [
        ("url", "TEXT", False, 1),
        ("kind", "TEXT", True, 0),
        ("host", "TEXT", True, 0),
        ("owner", "TEXT", True, 0),
        ("repo", "TEXT", True, 0),
        ("resource_number", "INTEGER", True, 0),
        ("issue_state", "TEXT", False, 0),
        ("pr_state", "TEXT", False, 0),
        ("build_state", "TEXT", False, 0),
        ("review_state", "TEXT", False, 0),
        ("pr_is_draft", "INTEGER", False, 0),
        ("fetched_at", "INTEGER", True, 0),
        ("refresh_after", "INTEGER", True, 0),
        ("last_error", "TEXT", False, 0),
    ],
    "usage_samples": [
        ("id", "INTEGER", False, 1),
        ("occurred_at", "INTEGER", True, 0),
        ("session_id", "INTEGER", False, 0),
        ("workspace", "TEXT", False, 0),
        ("provider", "TEXT", True, 0),
        ("model", "TEXT", True, 0),
        ("token_input", "INTEGER", False, 0),
        ("token_output", "INTEGER", False, 0),
        ("token_cache_read", "INTEGER", False, 0),
        ("token_cache_write", "INTEGER", False, 0),
        ("cost_usd_micros", "INTEGER", False, 0),
        ("source_hash", "TEXT", False, 0),
    ],
    "tool_history": [
        ("id", "INTEGER", False, 1),
        ("occurred_at", "INTEGER", True, 0),
        ("tool_key", "TEXT", True, 0),
        ("exit_code", "INTEGER", False, 0),
        ("duration_ms", "INTEGER", False, 0),
    ],
    "_meta": [("key", "TEXT", False, 1), ("value", "TEXT", True, 0)],
}

Index = tuple[str, list[str], bool, str | None]
"""table, columns, UNIQUE, the condition of a partial one."""

SEED_INDEXES: dict[str, Index] = {
    "usage_samples_by_time": ("usage_samples", ["occurred_at"], False, None),
    "usage_samples_by_session": ("usage_samples", ["session_id", "occurred_at"], False, None),
    "usage_samples_by_workspace": ("usage_samples", ["workspace", "occurred_at"], False, None),
    "usage_samples_by_source_hash": (
        "usage_samples", ["source_hash"], True, "source_hash IS NOT NULL",
    ),
}  # fmt: skip


def made_by(migrations: tuple[Migration, ...]) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for migration in migrations:
        for statement in migration.statements:
            connection.execute(statement)
    return connection


@pytest.fixture(params=[1, INSTANCE_SCHEMA.version], ids=["version 1", "today's version"])
def database(request: pytest.FixtureRequest) -> Iterator[apsw.Connection]:
    connection = made_by(INSTANCE_SCHEMA.migrations[: request.param])
    yield connection
    connection.close()


def columns(database: apsw.Connection, table: str) -> list[Column]:
    found = database.execute(
        'SELECT name, type, "notnull", pk, dflt_value, hidden FROM pragma_table_xinfo(?)', (table,)
    )
    rows = list(found)
    assert all(default is None and not hidden for *_, default, hidden in rows)
    return [(name, type_, bool(not_null), key) for name, type_, not_null, key, _, _ in rows]


@proves("status-log")
@pytest.mark.parametrize("table", SEED_TABLES)
def test_a_table_of_the_seed_begins_with_the_seeds_columns_in_their_order(
    database: apsw.Connection, table: str
) -> None:
    assert columns(database, table)[: len(SEED_TABLES[table])] == SEED_TABLES[table]


@pytest.mark.parametrize("name", SEED_INDEXES)
def test_an_index_of_the_seed_is_on_the_seeds_columns(database: apsw.Connection, name: str) -> None:
    table, names, unique, condition = SEED_INDEXES[name]
    listed = database.execute(
        'SELECT "unique", origin FROM pragma_index_list(?) WHERE name = ?', (table, name)
    )
    assert list(listed) == [(int(unique), "c")]
    indexed = database.execute(
        'SELECT name, "desc", coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno', (name,)
    )
    assert list(indexed) == [(column, 0, "BINARY") for column in names]
    sql = str(database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)
    _, where, found = " ".join(sql.split()).partition(" WHERE ")
    assert (found if where else None) == condition


def test_version_1_is_the_seeds_tables_and_indexes_and_nothing_else() -> None:
    database = made_by(INSTANCE_SCHEMA.migrations[:1])
    found = database.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")
    assert set(found) == {("table", name) for name in SEED_TABLES} | {
        ("index", name) for name in SEED_INDEXES
    }
    assert {table: columns(database, table) for table in SEED_TABLES} == SEED_TABLES


def test_version_2_adds_the_answers_kept_for_retried_calls() -> None:
    database = made_by(INSTANCE_SCHEMA.migrations[:2])
    assert columns(database, "request_keys") == [
        ("id", "INTEGER", False, 1),
        ("channel", "TEXT", True, 0),
        ("key", "TEXT", True, 0),
        ("request_hash", "TEXT", True, 0),
        ("answer", "TEXT", True, 0),
        ("recorded_at", "INTEGER", True, 0),
    ]

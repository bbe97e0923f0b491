"""Making, accepting and migrating a database."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jackin_memd.storage import status_log
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.registry import REGISTRY_SCHEMA
from jackin_memd.storage.schema import Schema
from tests.storage.files import (
    EPOCH,
    change_by_hand,
    contents,
    fingerprint,
    make,
    make_version,
    meta,
    opened,
    prepare_at,
)
from tests.support.proves import proves

ROWS = """
INSERT INTO status_log(occurred_at, new_status, metadata)
    VALUES (1, 'busy', NULL), (2, 'question', '{"prompt":"go on?"}'), (3, '待機', NULL);
INSERT INTO agent_tags VALUES ('pr', 'https://github.com/o/r/pull/1', 5, 6);
INSERT INTO github_link_statuses VALUES ('https://github.com/o/r/pull/1', 'pr', 'github.com',
    'o', 'r', 1, NULL, 'open', 'pending', 'none', 0, 7, 8, NULL);
INSERT INTO usage_samples(occurred_at, provider, model, token_input, cost_usd_micros)
    VALUES (9, 'claude', 'opus', 9223372036854775807, 12);
INSERT INTO tool_history(occurred_at, tool_key, exit_code, duration_ms)
    VALUES (10, 'bash', -1, 0);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


@proves("store-meta", "store-epoch")
@pytest.mark.parametrize("schema", [INSTANCE_SCHEMA, REGISTRY_SCHEMA], ids=lambda s: str(s.kind))
def test_a_new_database_has_todays_version_and_an_epoch_of_its_own(
    path: Path, schema: Schema
) -> None:
    epoch = make(path, schema)
    assert re.fullmatch("[0-9a-f]{16}", epoch)
    assert meta(path) == {
        "schema_version": str(schema.version),
        "database_id": epoch,
    }


@proves("store-epoch")
def test_two_databases_never_have_the_same_epoch(tmp_path: Path) -> None:
    assert len({make(tmp_path / str(number)) for number in range(20)}) == 20


def test_a_database_keeps_its_epoch_and_its_bytes_when_it_is_opened_again(path: Path) -> None:
    epoch, before = make(path), fingerprint(path)
    assert make(path) == epoch
    assert fingerprint(path) == before


@proves("store-wal")
def test_a_database_is_in_wal_mode_from_its_first_table_on(path: Path) -> None:
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").get == "wal"
        with path.open("rb") as file:  # the tables are in the WAL still
            header = file.read(100)
    assert header[18:20] == b"\x02\x02"
    assert not path.with_name("jackin.db-journal").exists()


@proves("store-migrations")
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_an_older_version_is_migrated_with_every_row_and_its_epoch_kept(
    path: Path, journal: str
) -> None:
    make_version(path, 1, journal=journal)
    change_by_hand(path, ROWS)
    before = contents(path)
    assert prepare_at(path) == EPOCH
    after = contents(path)
    assert meta(path) == {"schema_version": str(INSTANCE_SCHEMA.version), "database_id": EPOCH}
    del before["_meta"]
    assert {table: after[table] for table in before} == before
    assert all(before.values()), "every table of version 1 had a row to lose"
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").get == "wal"
        assert status_log.append(connection, [(4, "idle", None)]) == 4


def test_a_migrated_database_is_like_one_that_was_made_today(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_version(old, 1)
    prepare_at(old)
    make(new)
    assert schema_of(old) == schema_of(new)


def schema_of(path: Path) -> list[tuple[object, ...]]:
    with opened(path) as connection:
        return sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


def test_a_database_of_the_seeds_version_1_without_an_epoch_gets_one(path: Path) -> None:
    make_version(path, 1)
    change_by_hand(path, "DELETE FROM _meta WHERE key = 'database_id'")
    epoch = prepare_at(path)
    assert re.fullmatch("[0-9a-f]{16}", epoch)
    assert prepare_at(path) == epoch


def test_a_database_of_todays_version_without_an_epoch_gets_one(path: Path) -> None:
    make(path)
    change_by_hand(path, "DELETE FROM _meta WHERE key = 'database_id'")
    epoch = prepare_at(path)
    assert re.fullmatch("[0-9a-f]{16}", epoch)
    assert prepare_at(path) == epoch


def test_a_database_whose_making_was_cut_short_is_made_again(path: Path) -> None:
    path.touch()  # SQLite had made the file, and nothing in it, when the power went
    assert re.fullmatch("[0-9a-f]{16}", prepare_at(path, create=True))


def test_statistics_that_analyze_left_are_no_difference(path: Path) -> None:
    make(path)
    change_by_hand(path, "INSERT INTO tool_history VALUES (1, 2, 'x', 3, 4)", "ANALYZE")
    prepare_at(path)

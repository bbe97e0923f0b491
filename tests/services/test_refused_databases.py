"""A database that can't be trusted: a hard error for its instance, and for it alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from tests.support.daemon import CONTAINER, OTHER, Daemon, StartError, record
from tests.support.instances import alter, get, load, purge, unload
from tests.support.proves import proves
from tests.support.raw import greeted


@pytest.fixture
def two(daemon: Daemon) -> Daemon:
    """A daemon that serves two instances, with a row each."""
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    with daemon.client() as operator:
        record(operator, "first", instance=CONTAINER)
        record(operator, "first", instance=OTHER)
    return daemon


# -- what can be wrong with a file -------------------------------------------------------


def newer(daemon: Daemon) -> None:
    alter(daemon.instance_db(), "UPDATE _meta SET value = '999' WHERE key = 'schema_version'")


def another_column(daemon: Daemon) -> None:
    alter(daemon.instance_db(), "ALTER TABLE status_log ADD COLUMN secret TEXT")


def a_table_less(daemon: Daemon) -> None:
    alter(daemon.instance_db(), "DROP TABLE tool_history")


def another_programs(daemon: Daemon) -> None:
    daemon.instance_db().unlink()
    alter(daemon.instance_db(), "CREATE TABLE theirs (id INTEGER PRIMARY KEY)")


def no_database(daemon: Daemon) -> None:
    daemon.instance_db().write_bytes(b"this was never a database" * 1000)


def a_broken_schema(daemon: Daemon) -> None:
    damage(daemon, page=1)


def damage(daemon: Daemon, *, page: int) -> None:
    """Overwrite a page but for the file's own header."""
    with closing(sqlite3.connect(daemon.instance_db())) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with daemon.instance_db().open("r+b") as file:
        file.seek((page - 1) * size + (100 if page == 1 else 0))
        file.write(b"\xa5" * (size - 100))


Spoil = Callable[[Daemon], None]

SPOILS = pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (newer, "DATABASE_TOO_NEW"),
        (another_column, "DATABASE_SCHEMA_MISMATCH"),
        (a_table_less, "DATABASE_SCHEMA_MISMATCH"),
        (another_programs, "DATABASE_SCHEMA_MISMATCH"),
        (no_database, "DATABASE_CORRUPT"),
        (a_broken_schema, "DATABASE_CORRUPT"),
    ],
)


@pytest.fixture
def spoiled(two: Daemon, spoil: Spoil, code: str) -> Iterator[Daemon]:
    """The daemon again, after the file of CONTAINER was spoiled while it was down."""
    assert two.terminate() == 0
    spoil(two)
    before = two.instance_db().read_bytes()
    two.start()
    yield two
    two.terminate()
    assert two.instance_db().read_bytes() == before  # not a byte of it was changed


def refused_record(daemon: Daemon) -> MemdError:
    with daemon.client() as client, pytest.raises(MemdError) as caught:
        record(client, "lost", instance=CONTAINER)
    return caught.value


@proves("store-others-go-on", "instance-problem")
@SPOILS
def test_a_write_is_refused_with_the_reason_and_the_instance_reads_as_failed(
    spoiled: Daemon, code: str
) -> None:
    error = refused_record(spoiled)
    assert error.code.word == code
    assert CONTAINER in error.message
    assert error.hint is not None
    found = get(spoiled)
    assert found.state is InstanceState.FAILED
    assert found.problem is not None
    assert (found.problem.code, found.problem.hint) == (code, error.hint)
    with spoiled.capsule(OTHER) as other:
        assert record(other, "on").first_id == 2


@proves("store-others-go-on")
@SPOILS
def test_a_read_is_refused_in_the_same_way(spoiled: Daemon, code: str) -> None:
    with greeted(spoiled.instance_socket()) as capsule:
        for method in ("status.latest", "status.list", "status.subscribe"):
            assert capsule.refused(method)["data"]["code"] == code
    assert get(spoiled).state is InstanceState.FAILED


@proves("store-others-go-on", "stream-end")
@SPOILS
def test_a_subscription_to_all_goes_on_with_the_others(spoiled: Daemon, code: str) -> None:
    with greeted(spoiled.socket) as follower:
        started = follower.call("status.subscribe")
        assert set(started["cursors"]) == {OTHER}
        with spoiled.capsule(OTHER) as other:
            record(other, "on")
        seen: dict[str, Any] = {}
        while len(seen) < 2 or seen.get(OTHER) == []:
            event = follower.read()["params"]
            seen[event["instance"]] = event.get("rows", event.get("code"))
    assert seen[CONTAINER] == code
    assert [row["new_status"] for row in seen[OTHER]] == ["on"]


@proves("store-hard-error", "store-too-new")
@SPOILS
def test_loading_it_is_refused_until_the_file_is_another(
    two: Daemon, spoil: Spoil, code: str
) -> None:
    unload(two)
    good = two.instance_db().read_bytes()
    spoil(two)
    bad = two.instance_db().read_bytes()
    with pytest.raises(MemdError) as caught:
        load(two)
    assert caught.value.code.word == code
    assert caught.value.hint is not None
    assert two.instance_db().read_bytes() == bad
    assert get(two).state is InstanceState.UNLOADED
    assert not two.instance_socket().exists()
    two.instance_db().write_bytes(good)
    assert load(two).state is InstanceState.LOADED
    with two.capsule() as capsule:
        assert record(capsule, "on").first_id == 2


@SPOILS
def test_it_can_be_purged(two: Daemon, spoil: Spoil, code: str) -> None:
    two.terminate()
    spoil(two)
    two.start()
    refused_record(two)
    assert f"data/{CONTAINER}/jackin.db" in purge(two).removed
    two.load()
    with two.capsule() as capsule:
        assert record(capsule, "anew").first_id == 1


@proves("store-schema-compared")
def test_a_difference_is_named(two: Daemon) -> None:
    two.terminate()
    another_column(two)
    two.start()
    assert "table status_log column secret" in refused_record(two).message


@proves("store-others-go-on")
def test_damage_that_is_met_later_fails_the_call_and_names_the_file(two: Daemon) -> None:
    with two.client() as operator:
        for _ in range(40):
            record(operator, *["x" * 100] * 20, instance=CONTAINER)
    two.terminate()
    with closing(sqlite3.connect(two.instance_db())) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    for page in range(pages // 2, pages + 1):
        damage(two, page=page)
    two.start()
    with greeted(two.socket) as operator:
        errors = [
            operator.call_raw("status.list", b'{"instance":"%s"}' % CONTAINER.encode()),
            operator.call_raw(
                "status.record",
                b'{"instance":"%s","entries":[{"new_status":"x"}]}' % CONTAINER.encode(),
            ),
        ]
        assert {error["error"]["data"]["code"] for error in errors} == {"DATABASE_CORRUPT"}
        assert operator.call("status.latest", instance=OTHER)["row"]["new_status"] == "first"
    assert get(two).state is InstanceState.FAILED


@proves("store-too-new")
@pytest.mark.parametrize("how", ["newer", "no database"])
def test_a_registry_that_cannot_be_trusted_stops_the_start_with_the_reason(
    two: Daemon, how: str
) -> None:
    two.terminate()
    registry = two.home / "data" / "daemon" / "registry.db"
    if how == "newer":
        alter(registry, "UPDATE _meta SET value = '999' WHERE key = 'schema_version'")
    else:
        registry.write_bytes(b"x" * 8192)
    with pytest.raises(StartError) as caught:
        two.start()
    code = ErrorCode[caught.value.failure["code"]]
    assert code is (ErrorCode.DATABASE_TOO_NEW if how == "newer" else ErrorCode.DATABASE_CORRUPT)
    assert caught.value.exit_status == code.exit_status
    assert "registry.db" in caught.value.failure["message"]
    assert caught.value.failure["hint"]
    assert not two.socket.exists()

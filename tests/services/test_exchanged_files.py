"""A database exchanged while nobody has it open: noticed, and told to who follows it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jackin_mem.subscription import Subscription
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import (
    InstanceLoadParams,
    InstancePurgeParams,
    InstanceState,
    InstanceUnloadParams,
)
from jackin_memd.wire.streams import EndEvent, GapEvent, RowsEvent, SubscribeParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import get
from tests.support.proves import proves


@pytest.fixture
def sleepy(stopped: Daemon) -> Daemon:
    """A daemon that closes a database as soon as it is not used."""
    stopped.configure(timeouts={"idle_close_s": 0.05})
    stopped.start()
    stopped.load()
    return stopped


def wait_until_closed(daemon: Daemon) -> None:
    """Its WAL goes when the last connection does."""
    wal = Path(f"{daemon.instance_db()}-wal")
    with daemon.client() as client:
        while wal.exists():
            client.call("ping", client_ping())


def client_ping() -> object:
    from jackin_memd.wire.session import PingParams

    return PingParams()


def next_rows(subscription: Subscription) -> tuple[list[int], list[object]]:
    """Ids up to the first rows that come, and the other events before them."""
    from msgspec import json

    others: list[object] = []
    for event in subscription:
        if isinstance(event, RowsEvent) and event.rows:
            return [json.decode(row)["id"] for row in event.rows], others
        if not isinstance(event, RowsEvent):
            others.append(event)
    raise AssertionError


@proves("stream-once-in-order", "store-epoch")
def test_followers_are_told_when_a_load_takes_another_database(sleepy: Daemon) -> None:
    with sleepy.capsule() as capsule, sleepy.client() as operator:
        record(capsule, *("working",) * 5)
        with operator.subscribe(SubscribeParams()) as follower:
            wait_until_closed(sleepy)
            sleepy.instance_db().unlink()
            sleepy.load()
            record(capsule, *("idle",) * 7)
            seen: list[int] = []
            others: list[object] = []
            while len(seen) < 7:
                ids, before = next_rows(follower)
                seen += ids
                others += before
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert [type(event) for event in others] == [EndEvent, GapEvent]


@proves("store-replaced")
def test_an_older_copy_put_in_place_while_closed_is_not_written(sleepy: Daemon) -> None:
    with sleepy.capsule() as capsule:
        record(capsule, *("working",) * 3)
        wait_until_closed(sleepy)
        copy = sleepy.home / "copy.db"
        shutil.copy(sleepy.instance_db(), copy)
        record(capsule, *("working",) * 5)
        wait_until_closed(sleepy)
        copy.rename(sleepy.instance_db())
        with pytest.raises(MemdError) as refused:
            record(capsule, "idle")
    assert refused.value.code is ErrorCode.DATABASE_REPLACED
    assert sleepy.rows("SELECT count(*) FROM status_log") == [(3,)]
    assert get(sleepy, CONTAINER).state is InstanceState.FAILED


@proves("store-epoch")
def test_a_load_that_failed_opens_no_door_to_another_instances_database(sleepy: Daemon) -> None:
    sleepy.load(OTHER, "reviewer")
    with sleepy.capsule() as capsule:
        record(capsule, "working")
        wait_until_closed(sleepy)
        own = sleepy.instance_db().read_bytes()
        sleepy.instance_db().write_bytes(b"damaged" + own[7:])
        with pytest.raises(MemdError) as damaged, sleepy.client() as operator:
            operator.call("instance.load", InstanceLoadParams(container=CONTAINER))
        assert damaged.value.code is ErrorCode.DATABASE_CORRUPT
        with closing(sqlite3.connect(sleepy.instance_db(OTHER))) as other:
            other.execute("VACUUM INTO ?", (str(sleepy.home / "other.db"),))
        sleepy.instance_db().write_bytes((sleepy.home / "other.db").read_bytes())
        with pytest.raises(MemdError) as refused:
            record(capsule, "idle")
    assert refused.value.code is ErrorCode.DATABASE_REPLACED


@proves("wire-idempotency")
@pytest.mark.parametrize("method", ["instance.purge", "instance.unload"])
def test_a_keyed_call_repeated_while_the_first_is_under_way_gets_its_answer(
    daemon: Daemon, method: str
) -> None:
    daemon.load()
    kind = InstancePurgeParams if method == "instance.purge" else InstanceUnloadParams
    params = kind(instance=CONTAINER, idempotency_key="k")
    with daemon.client() as operator:
        first, second = operator.pipeline([(method, params), (method, params)])
    assert not isinstance(first, MemdError)
    assert first == second


@proves("daemon-stops-cleanly")
def test_a_stop_that_takes_longer_than_a_look_blames_nobody(stopped: Daemon) -> None:
    stopped.configure(timeouts={"watch_s": 0.01})
    stopped.start()
    for number in range(40):
        stopped.load(f"jk-{number:08d}-x")
    assert stopped.terminate() == 0
    assert stopped.log.matching(lambda line: " error " in line) == []

"""Who may follow what, from where, for how long, and at whose cost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.status import StatusRecordParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.following import Follower
from tests.support.instances import load, purge, unload
from tests.support.proves import proves
from tests.support.raw import Message, Raw, greeted, request

THIRD = "jk-c3d4e5f6-shop-tester"


@pytest.fixture
def two(daemon: Daemon) -> Daemon:
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    return daemon


@pytest.fixture
def operator(two: Daemon) -> Iterator[Raw]:
    with greeted(two.socket) as connection:
        yield connection


def fill(daemon: Daemon, rows: int, instance: str = CONTAINER, size: int = 0) -> None:
    with daemon.client() as client:
        entries = [entry("fill", "x" * size)] * rows
        client.call("status.record", StatusRecordParams(entries=entries, instance=instance))


# -- scope ---------------------------------------------------------------------------------


def test_a_subscription_to_some_gets_nothing_of_the_others(two: Daemon) -> None:
    with Follower(two.socket, instances=[OTHER]) as follower:
        fill(two, 3, CONTAINER)
        fill(two, 2, OTHER)
        follower.until_rows(OTHER, 2)
        fill(two, 3, CONTAINER)
        fill(two, 1, OTHER)
        follower.until_rows(OTHER, 3)
    assert dict(follower.ids) == {OTHER: [1, 2, 3]}


def test_instances_may_be_named_by_short_id_and_twice(two: Daemon) -> None:
    names = [CONTAINER, CONTAINER.split("-")[1], OTHER]
    with Follower(two.socket, instances=names) as follower:
        assert set(follower.started["cursors"]) == {CONTAINER, OTHER}
        fill(two, 2)
        follower.until_rows(CONTAINER, 2)
        fill(two, 1)
        follower.until_rows(CONTAINER, 3)
    assert follower.ids[CONTAINER] == [1, 2, 3]


def test_one_unknown_instance_refuses_the_whole_subscription(two: Daemon, operator: Raw) -> None:
    error = operator.refused("status.subscribe", instances=[CONTAINER, "jk-zzzzzzzz-no-such"])
    assert error["data"]["code"] == "INSTANCE_NOT_FOUND"
    assert two.status().subscriptions == 0


@proves("access-observer")
def test_an_observer_may_subscribe(two: Daemon) -> None:
    with greeted(two.socket, role="observer") as observer:
        observer.call("status.subscribe", start="oldest")
        fill(two, 1)
        while not observer.read()["params"]["rows"]:
            pass


def test_start_oldest_begins_at_the_first_row_and_now_after_the_last(two: Daemon) -> None:
    fill(two, 3)
    with (
        Follower(two.socket, start="oldest") as oldest,
        Follower(two.socket, start="now") as now,
        Follower(two.socket) as default,
    ):
        fill(two, 1)
        for follower in (oldest, now, default):
            follower.until(lambda me: me.ids[CONTAINER][-1:] == [4])
    assert oldest.ids[CONTAINER] == [1, 2, 3, 4]
    assert now.ids[CONTAINER] == default.ids[CONTAINER] == [4]


def test_with_after_an_instance_that_is_not_named_begins_at_its_oldest_row(two: Daemon) -> None:
    with Follower(two.socket, instances=[OTHER]) as follower:
        cursor = follower.started["cursors"][OTHER]
    fill(two, 2, CONTAINER)
    fill(two, 2, OTHER)
    with Follower(two.socket, after={OTHER: cursor}, start="now") as follower:
        follower.until(lambda me: len(me.ids[OTHER]) == len(me.ids[CONTAINER]) == 2)


@proves("stream-bad-cursor")
@pytest.mark.parametrize("text", ["", "1", "0123456789abcdef", "0123456789ABCDEF.1",
                                  "0123456789abcdef.01", "0123456789abcdef.-1",
                                  "x" * 64])  # fmt: skip
def test_text_that_is_no_cursor_is_refused_by_its_field(
    two: Daemon, operator: Raw, text: str
) -> None:
    error = operator.refused("status.subscribe", after={CONTAINER: text})
    assert error["data"]["code"] == "CURSOR_INVALID"
    assert error["data"]["field"] == f"after.{CONTAINER}"


# -- instances that come and go ------------------------------------------------------------


@proves("stream-later-instances")
@pytest.mark.parametrize("start", ["now", "oldest"])
def test_a_subscription_to_all_takes_in_an_instance_loaded_later(two: Daemon, start: str) -> None:
    with Follower(two.socket, start=start) as follower:
        load(two, THIRD, role_key="tester")
        follower.until(lambda me: THIRD in me.joined)
        fill(two, 3, THIRD)
        follower.until_rows(THIRD, 3)
    assert follower.ids[THIRD] == [1, 2, 3]


@proves("stream-later-instances")
def test_start_oldest_holds_for_an_instance_loaded_later_too(two: Daemon) -> None:
    fill(two, 3)
    unload(two)
    with Follower(two.socket, start="oldest") as follower:
        load(two)
        follower.until_rows(CONTAINER, 3)
    assert follower.ids[CONTAINER] == [1, 2, 3]


@proves("stream-later-instances")
def test_the_first_row_of_an_agent_that_waited_for_its_socket_is_seen(two: Daemon) -> None:
    """An agent tries until its socket is there, and writes at once."""
    stop = Event()

    def write_as_soon_as_possible() -> None:
        while not stop.is_set():
            try:
                with two.capsule(THIRD) as capsule:
                    record(capsule, "first")
                    return
            except MemdError:
                continue

    for _ in range(10):
        with (
            Follower(two.socket) as one,
            Follower(two.socket) as another,
            ThreadPoolExecutor(1) as threads,
        ):
            agent = threads.submit(write_as_soon_as_possible)
            try:
                load(two, THIRD, role_key="tester")
                for follower in (one, another):
                    assert follower.until_rows(THIRD, 1).ids[THIRD] == [1]
            finally:
                stop.set()
            agent.result()
        stop.clear()
        purge(two, THIRD)


def test_a_subscription_to_some_takes_in_no_other_instance(two: Daemon) -> None:
    with Follower(two.socket, instances=[CONTAINER]) as follower:
        load(two, THIRD, role_key="tester")
        fill(two, 1, THIRD)
        fill(two, 1, CONTAINER)
        follower.until_rows(CONTAINER, 1)
    assert (follower.joined, dict(follower.ids)) == ([CONTAINER], {CONTAINER: [1]})


@proves("stream-end")
def test_an_unloaded_instance_ends_and_joins_again_where_it_stood(two: Daemon) -> None:
    with Follower(two.socket, instances=[CONTAINER]) as follower:
        fill(two, 2)
        follower.until_rows(CONTAINER, 2)
        unload(two)
        follower.until(lambda me: bool(me.ends))
        load(two)
        fill(two, 1)
        follower.until_rows(CONTAINER, 3)
    assert follower.ids[CONTAINER] == [1, 2, 3]
    assert [end["code"] for end in follower.ends] == ["UNLOADED"]


# -- ends and limits -----------------------------------------------------------------------


@proves("stream-limits")
def test_a_cancelled_subscription_sends_nothing_more(two: Daemon, operator: Raw) -> None:
    kept = operator.call("status.subscribe", instances=[CONTAINER])["subscription"]
    gone = operator.call("status.subscribe", instances=[CONTAINER])["subscription"]
    assert operator.call("subscription.cancel", subscription=gone) == {"cancelled": True}
    operator.notifications.clear()
    fill(two, 1)
    seen: list[Message] = []
    while not seen or not seen[-1]["params"]["rows"]:
        seen.append(operator.read())
    assert operator.call("ping") == {}
    seen += operator.notifications
    assert {message["params"]["subscription"] for message in seen} == {kept}
    assert two.status().subscriptions == 1


@proves("stream-limits")
def test_a_subscription_may_be_cancelled_in_the_moment_it_begins(
    two: Daemon, operator: Raw
) -> None:
    for number in range(1, 101):
        subscribe = request("status.subscribe", id_="subscribe")
        cancel = request("subscription.cancel", b'{"subscription":"s%d"}' % number, "cancel")
        operator.send_frame(subscribe)
        while "id" not in operator.read():
            pass
        operator.send_frame(cancel)
        assert operator.read_answer()["result"] == {"cancelled": True}
    assert operator.call("ping") == {}
    assert two.status().subscriptions == 0


@proves("stream-limits")
@pytest.mark.parametrize("name", ["s1", "", "s999", "\0", "x" * 64])
def test_a_subscription_that_this_connection_has_not_is_not_found(
    two: Daemon, operator: Raw, name: str
) -> None:
    with Follower(two.socket):  # another connection's s1
        error = operator.refused("subscription.cancel", subscription=name)
        assert error["data"]["code"] == "SUBSCRIPTION_NOT_FOUND"
        assert two.status().subscriptions == 1


@proves("stream-limits")
def test_a_connection_may_have_64_subscriptions_and_no_more(two: Daemon, operator: Raw) -> None:
    ids = [operator.call("status.subscribe")["subscription"] for _ in range(64)]
    error = operator.refused("status.subscribe")
    assert error["data"]["code"] == "TOO_MANY_SUBSCRIPTIONS"
    assert error["data"]["limit"] == 64
    assert two.status().subscriptions == 64
    with Follower(two.socket) as other:  # another connection has its own
        fill(two, 1)
        other.until_rows(CONTAINER, 1)
    operator.call("subscription.cancel", subscription=ids[0])
    assert operator.call("status.subscribe")["subscription"] not in ids


@proves("stream-limits")
@pytest.mark.parametrize("end", ["close", "half-close", "broken frame"])
def test_subscriptions_end_with_their_connection(two: Daemon, end: str) -> None:
    with greeted(two.socket) as peer, two.client() as client:
        for _ in range(3):
            peer.call("status.subscribe")
        assert two.status().subscriptions == 3
        if end == "close":
            peer.close()
        else:
            peer.half_close() if end == "half-close" else peer.send(b"\0\0\0\0")
            peer.read_to_end()
        while two.status().subscriptions:  # each call is one more turn of the daemon's loop
            record(client, "working", instance=CONTAINER)


# -- slow ones -----------------------------------------------------------------------------


@proves("stream-slow-subscriber")
def test_a_slow_subscriber_catches_up_from_the_table_and_loses_nothing(two: Daemon) -> None:
    """It reads nothing while 12 MB are written: far more than is held for it."""
    with Follower(two.socket) as slow, Follower(two.socket) as quick:
        for _ in range(40):
            fill(two, 50, size=6000)
            quick.until(lambda me: me.ids[CONTAINER][-1:] == [len(me.ids[CONTAINER])])
        quick.until_rows(CONTAINER, 2000)
        slow.until_rows(CONTAINER, 2000)
    assert slow.ids[CONTAINER] == quick.ids[CONTAINER] == list(range(1, 2001))
    assert slow.gaps == []


@proves("stream-slow-subscriber", "stream-gap")
def test_a_subscriber_too_slow_for_the_window_is_told_the_gap_on_its_way(two: Daemon) -> None:
    with Follower(two.socket) as slow:
        for _ in range(12):
            fill(two, 1000, size=1000)
        slow.until(lambda me: me.ids[CONTAINER][-1:] == [12_000])
    missed = sum(gap["missed"] for gap in slow.gaps)
    assert missed > 0
    assert len(slow.ids[CONTAINER]) + missed == 12_000
    assert slow.ids[CONTAINER] == sorted(set(slow.ids[CONTAINER]))

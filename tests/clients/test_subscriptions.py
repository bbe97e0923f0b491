"""A subscription hands out each event once, whatever happens to its connections."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
import trio

from jackin_mem.aio_subscription import open_subscription
from jackin_mem.blocking import Client
from jackin_mem.session import Settings
from jackin_memd.wire import streams
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.streams import EndEvent, GapEvent, Start, SubscribeParams, SubscribeResult
from tests.clients.faces import SUBSCRIBE, Face, run
from tests.clients.scripted import Caller, ScriptedDaemon, ids_of, rows_event

ALL = SubscribeParams()

ENDED = EndEvent(subscription="s1", instance=None, code="PERMISSION_DENIED", message="m")


def test_events_come_in_order_and_the_end_ends_it(face: Face, path: Path) -> None:
    gap = GapEvent(subscription="s1", instance="a", missed=3, cursor="e.5", reason="r")

    def script(caller: Caller) -> None:
        caller.greet()
        assert caller.subscribed(a="e.0") == ALL
        caller.rows(1, 2)
        caller.notify(streams.GAP, gap)
        caller.rows(6)
        caller.notify(streams.END, ENDED)
        caller.until_closed()

    with ScriptedDaemon(path, script):
        events = face.follow(path, ALL, 99)
    assert ids_of(events[0]) == [1, 2]
    assert events[1] == gap
    assert ids_of(events[2]) == [6]
    assert events[3:] == [ENDED]


class Resuming:
    """Two connections of one subscription, and what the second asked for."""

    def __init__(self) -> None:
        self.asked: SubscribeParams | None = None

    def second(self, caller: Caller) -> None:
        caller.greet()
        self.asked = caller.subscribed("s2")
        caller.rows(9, subscription="s2")
        caller.until_closed()

    def after(self) -> dict[str, str]:
        assert self.asked is not None
        assert self.asked.after is not None
        return self.asked.after


def test_it_goes_on_after_the_last_event_of_every_instance(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed(a="e.0", b="f.7")
        caller.rows(1, 2)
        caller.rows(3, instance="c")
        caller.notify(
            streams.GAP,
            GapEvent(subscription="s1", instance="c", missed=None, cursor="g.0", reason="anew"),
        )

    resuming = Resuming()
    links: list[MemdError | None] = []
    with ScriptedDaemon(path, first, resuming.second):
        events = face.follow(path, ALL, 4, on_link=links.append)
    assert resuming.after() == {"a": "e.2", "b": "f.7", "c": "g.0"}
    assert ids_of(events[-1]) == [9]
    lost, back = links
    assert lost is not None
    assert lost.code is ErrorCode.CONNECTION_CLOSED
    assert back is None


def test_what_was_asked_for_is_asked_for_again(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed(a="e.0")

    params = SubscribeParams(instances=["a"], start=Start.OLDEST)
    resuming = Resuming()
    with ScriptedDaemon(path, first, resuming.second):
        face.follow(path, params, 1)
    assert resuming.asked == msgspec.structs.replace(params, after={"a": "e.0"})


def test_a_subscription_to_nothing_yet_resumes_from_the_oldest_rows(face: Face, path: Path) -> None:
    """`after` must be an empty object: left out, instances loaded meanwhile would
    start at now, and their first rows would be lost."""

    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()

    resuming = Resuming()
    with ScriptedDaemon(path, first, resuming.second):
        face.follow(path, ALL, 1)
    assert resuming.after() == {}


def test_half_an_event_was_not_seen(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed(a="e.0")
        caller.rows(1)
        event = encode({"jsonrpc": "2.0", "method": streams.ROWS, "params": rows_event(2)})
        caller.send_bytes(frame(event)[:-1])

    resuming = Resuming()
    with ScriptedDaemon(path, first, resuming.second):
        face.follow(path, ALL, 2)
    assert resuming.after() == {"a": "e.1"}


def test_events_that_overtake_the_answer_are_not_lost(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        call = caller.call("status.subscribe")
        caller.rows(1)
        caller.answer(call, SubscribeResult(subscription="s1", cursors={"a": "e.0"}))
        caller.rows(2)
        caller.until_closed()

    with ScriptedDaemon(path, script):
        events = face.follow(path, ALL, 2)
    assert [ids_of(event) for event in events] == [[1], [2]]


def test_events_of_another_subscription_are_not_ours(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        caller.rows(1, subscription="s0")
        caller.rows(2)
        caller.until_closed()

    with ScriptedDaemon(path, script):
        assert ids_of(face.follow(path, ALL, 1)[0]) == [2]


def test_the_end_of_one_instance_is_not_the_end(face: Face, path: Path) -> None:
    unloaded = EndEvent(subscription="s1", instance="a", code="UNLOADED", message="m")

    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        caller.notify(streams.END, unloaded)
        caller.rows(1, instance="b")
        caller.until_closed()

    with ScriptedDaemon(path, script):
        events = face.follow(path, ALL, 2)
    assert events[0] == unloaded
    assert ids_of(events[1]) == [1]


def test_a_stopping_daemon_is_a_lost_connection(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed(a="e.4")
        stopping = msgspec.structs.replace(ENDED, code=ErrorCode.DAEMON_STOPPING.word)
        caller.notify(streams.END, stopping)
        caller.until_closed()

    resuming = Resuming()
    with ScriptedDaemon(path, first, resuming.second):
        assert ids_of(face.follow(path, ALL, 1)[0]) == [9]
    assert resuming.after() == {"a": "e.4"}


def test_refused_for_now_it_tries_again(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()

    def full(caller: Caller) -> None:
        caller.farewell(MemdError(ErrorCode.TOO_MANY_CONNECTIONS, "full"))

    with ScriptedDaemon(path, first, full, Resuming().second):
        assert ids_of(face.follow(path, ALL, 1)[0]) == [9]


def test_refused_for_good_it_raises(face: Face, path: Path) -> None:
    def first(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()

    def refused(caller: Caller) -> None:
        caller.greet()
        gone = MemdError(ErrorCode.INSTANCE_NOT_FOUND, "no such instance")
        caller.refuse(caller.call("status.subscribe"), gone)
        caller.until_closed()

    with ScriptedDaemon(path, first, refused), pytest.raises(MemdError) as told:
        face.follow(path, ALL, 1)
    assert told.value.code is ErrorCode.INSTANCE_NOT_FOUND


def test_the_first_attempt_is_not_repeated(face: Face, path: Path) -> None:
    with pytest.raises(MemdError) as refused:
        face.follow(path, ALL, 1)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE


def subscribed_and_lost(caller: Caller) -> None:
    caller.greet()
    caller.subscribed()


def test_it_may_be_told_not_to_reconnect(face: Face, path: Path) -> None:
    with ScriptedDaemon(path, subscribed_and_lost), pytest.raises(MemdError) as refused:
        face.follow(path, ALL, 1, reconnect_s=0)
    assert refused.value.code is ErrorCode.CONNECTION_CLOSED


def test_it_gives_up_when_its_time_is_over(face: Face, path: Path) -> None:
    with ScriptedDaemon(path, subscribed_and_lost), pytest.raises(MemdError) as refused:
        face.follow(path, ALL, 1, reconnect_s=0.2)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE


def test_nonsense_is_not_retried(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        caller.send(b"nonsense")
        caller.until_closed()

    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.follow(path, ALL, 1)
    assert refused.value.code is ErrorCode.PROTOCOL_VIOLATION


# -- the blocking face alone ----------------------------------------------------


def test_waiting_for_an_event_may_have_a_limit(path: Path) -> None:
    waited = threading.Event()

    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        assert waited.wait(20)
        caller.rows(1)
        caller.until_closed()

    with ScriptedDaemon(path, script), Client(path).subscribe(ALL) as subscription:
        with pytest.raises(MemdError) as refused:
            subscription.receive(0.05)
        waited.set()
        assert ids_of(subscription.receive(20)) == [1]
        assert subscription.cursors == {"a": "e.1"}
    assert refused.value.code is ErrorCode.REQUEST_TIMEOUT


def test_the_limit_holds_while_the_daemon_is_gone(path: Path) -> None:
    links: list[MemdError | None] = []
    with ScriptedDaemon(path, subscribed_and_lost):
        subscription = Client(path).subscribe(ALL, on_link=links.append)
        for _ in range(2):
            with pytest.raises(MemdError) as refused:
                subscription.receive(0.1)
            assert refused.value.code is ErrorCode.REQUEST_TIMEOUT
        subscription.close()
    assert len(links) == 1, "the loss is told once"


def test_another_thread_may_close_it(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        caller.rows(1)
        caller.until_closed()

    first = threading.Event()

    def follow() -> None:
        for event in subscription:
            seen.extend(ids_of(event))
            first.set()

    seen: list[int] = []
    with ScriptedDaemon(path, script):
        subscription = Client(path).subscribe(ALL)
        thread = threading.Thread(target=follow)
        thread.start()
        assert first.wait(20)
        subscription.close()
        thread.join(20)
    assert not thread.is_alive()
    assert seen == [1]


# -- the trio face alone ----------------------------------------------------------


def test_a_cancelled_wait_loses_no_event(path: Path) -> None:
    waited = threading.Event()

    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed(a="e.0")
        event = frame(encode({"jsonrpc": "2.0", "method": streams.ROWS, "params": rows_event(1)}))
        caller.send_bytes(event[:10])
        assert waited.wait(20)
        caller.send_bytes(event[10:])
        caller.rows(2)
        caller.until_closed()

    async def main() -> list[list[int]]:
        opened = open_subscription(
            Settings(path=path), SUBSCRIBE, ALL, reconnect_s=0, on_link=lambda _: None
        )
        async with opened as subscription:
            with trio.move_on_after(0.05) as scope:
                await anext(subscription)
            assert scope.cancelled_caught
            waited.set()
            return [ids_of(await anext(subscription)) for _ in range(2)]

    with ScriptedDaemon(path, script):
        assert run(main) == [[1], [2]]


def test_a_wait_that_is_cancelled_while_the_daemon_is_gone(path: Path) -> None:
    resuming = Resuming()
    links: list[MemdError | None] = []

    async def main() -> list[int]:
        opened = open_subscription(
            Settings(path=path), SUBSCRIBE, ALL, reconnect_s=None, on_link=links.append
        )
        async with opened as subscription:
            with trio.move_on_after(0.1) as scope:
                await anext(subscription)
            assert scope.cancelled_caught
            with ScriptedDaemon(path, resuming.second):
                found = ids_of(await anext(subscription))
                subscription.close()
            return found

    with ScriptedDaemon(path, subscribed_and_lost):
        assert run(main) == [9]
    assert len(links) == 2


def test_closing_ends_the_iteration_of_another_task(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.subscribed()
        caller.until_closed()

    async def main() -> None:
        opened = open_subscription(
            Settings(path=path), SUBSCRIBE, ALL, reconnect_s=None, on_link=lambda _: None
        )
        async with opened as subscription, trio.open_nursery() as nursery:

            async def follow() -> None:
                assert [event async for event in subscription] == []

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            subscription.close()

    with ScriptedDaemon(path, script):
        run(main)

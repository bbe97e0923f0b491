"""What only the trio client does: many calls at once, any of them cancelled."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from jackin_mem.aio import AsyncClient, open_client
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import PingParams, PingResult
from jackin_memd.wire.status import (
    StatusEntry,
    StatusLatestParams,
    StatusLatestResult,
    StatusRecordParams,
)
from tests.clients.faces import run, with_client
from tests.clients.scripted import HELLO, Caller, ScriptedDaemon

PING = ("ping", PingParams())
LATEST = ("status.latest", StatusLatestParams())


def latest(cursor: str) -> StatusLatestResult:
    return StatusLatestResult(row=None, cursor=cursor)


def test_calls_are_answered_in_any_order(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        calls = [caller.params("status.latest", StatusLatestParams) for _ in range(3)]
        for call, params in reversed(calls):
            caller.answer(call, latest(params.instance))
        caller.until_closed()

    async def use(client: AsyncClient) -> dict[str, str]:
        async def one(name: str) -> None:
            result = await client.call("status.latest", StatusLatestParams(instance=name))
            found[name] = result.cursor

        found: dict[str, str] = {}
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(one, name)
        return found

    with ScriptedDaemon(path, script):
        assert with_client(path, use) == {"a": "a", "b": "b", "c": "c"}


def test_a_cancelled_call_disturbs_no_other(path: Path) -> None:
    cancelled = threading.Event()

    def script(caller: Caller) -> None:
        caller.greet()
        late = caller.call("status.latest")
        assert cancelled.wait(20)
        caller.answer(late, latest("late"))
        caller.answer(caller.call("status.latest"), latest("mine"))
        caller.until_closed()

    async def use(client: AsyncClient) -> StatusLatestResult:
        with trio.move_on_after(0.05) as scope:
            await client.call(*LATEST)
        assert scope.cancelled_caught
        cancelled.set()
        result: StatusLatestResult = await client.call(*LATEST)
        assert client._pump is not None
        assert client._pump.link.session.answers == {}, "nobody will ever fetch it"
        return result

    with ScriptedDaemon(path, script):
        assert with_client(path, use) == latest("mine")


def test_a_call_cancelled_while_its_frame_is_sent_tears_nothing(path: Path) -> None:
    """The daemon reads nothing until the large call was cancelled; then it must find
    whole frames, the small call's among them."""
    cancelled = threading.Event()
    large = StatusRecordParams(entries=[StatusEntry(new_status="x" * 128)] * 5000)

    def script(caller: Caller) -> None:
        caller.greet()
        assert cancelled.wait(20)
        caller.call("status.record")
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    async def use(client: AsyncClient) -> object:
        with trio.move_on_after(0.1) as scope:
            await client.call("status.record", large)
        assert scope.cancelled_caught
        cancelled.set()
        return await client.call(*PING)

    with ScriptedDaemon(path, script):
        assert with_client(path, use) == PingResult()


def test_a_lost_connection_fails_every_open_call_and_the_next_connects(path: Path) -> None:
    def lost(caller: Caller) -> None:
        caller.greet()
        for _ in range(3):
            caller.call("ping")

    def served(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    async def use(client: AsyncClient) -> list[ErrorCode]:
        async def one() -> None:
            with pytest.raises(MemdError) as refused:
                await client.call(*PING)
            codes.append(refused.value.code)

        codes: list[ErrorCode] = []
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(one)
        assert await client.call(*PING) == PingResult()
        return codes

    with ScriptedDaemon(path, lost, served):
        assert with_client(path, use) == [ErrorCode.CONNECTION_CLOSED] * 3


def test_calls_that_find_no_connection_make_one_together(path: Path) -> None:
    """The script has one second connection only: two would find nobody listening."""

    def lost(caller: Caller) -> None:
        caller.greet()
        caller.call("ping")

    def served(caller: Caller) -> None:
        caller.greet()
        for _ in range(3):
            caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    async def use(client: AsyncClient) -> None:
        with pytest.raises(MemdError):
            await client.call(*PING)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(client.call, *PING)

    with ScriptedDaemon(path, lost, served):
        with_client(path, use)


def test_a_call_that_is_cancelled_while_it_connects_leaves_the_client_usable(
    path: Path,
) -> None:
    def lost(caller: Caller) -> None:
        caller.greet()
        caller.call("ping")

    def served(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    async def use(client: AsyncClient) -> object:
        with pytest.raises(MemdError):
            await client.call(*PING)
        with trio.move_on_after(0.05) as scope:
            await client.call(*PING)
        assert scope.cancelled_caught
        return await client.call(*PING)

    with ScriptedDaemon(path, lost, Caller.until_closed, served):
        assert with_client(path, use) == PingResult()


def greeted(caller: Caller) -> None:
    caller.greet()
    caller.until_closed()


def test_what_the_body_raises_comes_out_bare(path: Path) -> None:
    async def use(_: AsyncClient) -> None:
        raise MemdError(ErrorCode.CURSOR_INVALID, "from the body") from KeyError("cause")

    with ScriptedDaemon(path, greeted), pytest.raises(MemdError) as raised:
        with_client(path, use)
    assert raised.value.message == "from the body"
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_group_that_the_body_raises_stays_as_it_is(path: Path) -> None:
    async def use(_: AsyncClient) -> None:
        raise ExceptionGroup("mine", [ValueError("one")])

    with ScriptedDaemon(path, greeted), pytest.raises(ExceptionGroup) as raised:
        with_client(path, use)
    assert raised.value.message == "mine"


def test_a_cancelled_client_closes_and_lets_the_cancel_through(path: Path) -> None:
    async def main() -> bool:
        with trio.move_on_after(0.1) as scope:
            async with open_client(path):
                await trio.sleep_forever()
        return scope.cancelled_caught

    with ScriptedDaemon(path, greeted):  # ends when the connection is closed
        assert run(main)


def test_hello_is_told_while_it_is_open(path: Path) -> None:
    async def use(client: AsyncClient) -> object:
        return client.hello

    with ScriptedDaemon(path, greeted):
        assert with_client(path, use) == HELLO


def test_a_farewell_is_read_by_calls_that_can_not_send_any_more(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.farewell(MemdError(ErrorCode.DAEMON_STOPPING, "stopping"))

    async def use(client: AsyncClient) -> ErrorCode:
        with pytest.raises(MemdError) as refused:
            while True:
                await client.call(*PING)
        return refused.value.code

    with ScriptedDaemon(path, script):
        # The farewell, or that nobody listens when it was read before the call.
        assert with_client(path, use) in {ErrorCode.DAEMON_STOPPING, ErrorCode.DAEMON_UNREACHABLE}

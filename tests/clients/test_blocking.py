"""What only the blocking client does: one connection through good and bad, pipelines."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from jackin_mem.blocking import Client
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import HelloParams, PingParams, PingResult
from jackin_memd.wire.status import (
    StatusEntry,
    StatusLatestParams,
    StatusLatestResult,
    StatusRecordParams,
)
from jackin_memd.wire.vocab import Role
from tests.clients.scripted import HELLO, Caller, ScriptedDaemon, mismatch

PING = ("ping", PingParams())
LATEST = ("status.latest", StatusLatestParams())


def latest(cursor: str) -> StatusLatestResult:
    return StatusLatestResult(row=None, cursor=cursor)


def test_it_connects_when_it_is_used_and_tells_what_hello_said(path: Path) -> None:
    client = Client(path, role=Role.OBSERVER)  # nobody listens yet

    def script(caller: Caller) -> None:
        call, hello = caller.params("hello", HelloParams)
        assert hello.role is Role.OBSERVER
        caller.answer(call, HELLO)
        caller.until_closed()

    with ScriptedDaemon(path, script), client:
        assert client.hello == HELLO


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(path: Path) -> None:
    timed_out = threading.Event()

    def script(caller: Caller) -> None:
        caller.greet()
        late = caller.call("status.latest")
        assert timed_out.wait(20)
        caller.answer(late, latest("late"))
        caller.answer(caller.call("status.latest"), latest("mine"))
        caller.until_closed()

    with ScriptedDaemon(path, script), Client(path) as client:
        with pytest.raises(MemdError) as refused:
            client.call(*LATEST, timeout_s=0.1)
        timed_out.set()
        assert client.call(*LATEST) == latest("mine")
    assert refused.value.code is ErrorCode.REQUEST_TIMEOUT


def test_after_a_lost_connection_the_next_call_makes_a_new_one(path: Path) -> None:
    def lost(caller: Caller) -> None:
        caller.greet()
        caller.call("ping")

    def served(caller: Caller) -> None:
        caller.greet(build="the new one")
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    with ScriptedDaemon(path, lost, served), Client(path) as client:
        with pytest.raises(MemdError):
            client.call(*PING)
        assert client.call(*PING) == PingResult()
        assert client.hello is not None
        assert client.hello.build == "the new one"


def test_after_nonsense_the_connection_is_not_used_again(path: Path) -> None:
    def nonsense(caller: Caller) -> None:
        caller.greet()
        caller.call("ping")
        caller.send(b"nonsense")
        caller.silent_until_closed()

    def served(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    with ScriptedDaemon(path, nonsense, served), Client(path) as client:
        with pytest.raises(MemdError):
            client.call(*PING)
        assert client.call(*PING) == PingResult()


def test_raw_calls_take_and_give_json(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        call = caller.call("future.method")
        assert bytes(call.params) == b'{"a":1}'  # type: ignore[arg-type]
        caller.answer(call, {"b": 2})
        caller.until_closed()

    with ScriptedDaemon(path, script), Client(path) as client:
        result = client.call_raw("future.method", msgspec.Raw(b'{"a":1}'))
    assert bytes(result) == b'{"b":2}'


def test_raw_calls_of_any_version_pass_a_mismatch(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.refuse(caller.call("hello"), mismatch())
        caller.answer(caller.call("shutdown"), {"accepted": True})
        caller.silent_until_closed()

    with ScriptedDaemon(path, script), Client(path) as client:
        assert client.call_raw("shutdown", msgspec.Raw(b"{}"))
        with pytest.raises(MemdError) as refused:
            client.call_raw("future.method", msgspec.Raw(b"{}"))
    assert refused.value.code is ErrorCode.PROTOCOL_MISMATCH


# -- pipelines ------------------------------------------------------------------


def test_a_pipeline_keeps_the_order_of_its_calls(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        calls = [caller.call("status.latest") for _ in range(3)]
        for number, call in reversed(list(enumerate(calls))):
            caller.answer(call, latest(f"e.{number}"))
        caller.until_closed()

    with ScriptedDaemon(path, script), Client(path) as client:
        assert client.pipeline([LATEST] * 3) == [latest("e.0"), latest("e.1"), latest("e.2")]


def test_a_refused_call_of_a_pipeline_leaves_the_others_alone(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        gone = MemdError(ErrorCode.INSTANCE_NOT_FOUND, "no such instance")
        caller.refuse(caller.call("status.latest"), gone)
        caller.answer(caller.call("ping"), [])  # of the wrong shape
        caller.until_closed()

    with ScriptedDaemon(path, script), Client(path) as client:
        fine, refused, odd = client.pipeline([PING, LATEST, PING])
    assert fine == PingResult()
    assert refused.code is ErrorCode.INSTANCE_NOT_FOUND
    assert odd.code is ErrorCode.PROTOCOL_VIOLATION


def test_an_empty_pipeline_needs_no_daemon(path: Path) -> None:
    assert Client(path).pipeline([]) == []


def test_a_pipeline_reads_while_it_writes(path: Path) -> None:
    """Both directions are larger than what sockets buffer, so that two ends which
    only write would wait for each other for ever."""
    size, calls = 50_000, 40

    def script(caller: Caller) -> None:
        caller.greet()
        for _ in range(calls):
            caller.answer(caller.call("status.record"), {"x": "y" * size})
        caller.until_closed()

    large = StatusRecordParams(entries=[StatusEntry(new_status="s", metadata="m" * size)])
    with ScriptedDaemon(path, script), Client(path) as client:
        results = client.pipeline([("status.record", large)] * calls)
    assert [result.code for result in results] == [ErrorCode.PROTOCOL_VIOLATION] * calls


def test_a_pipeline_has_one_deadline(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    with (
        ScriptedDaemon(path, script),
        Client(path) as client,
        pytest.raises(MemdError) as refused,
    ):
        client.pipeline([PING] * 2, timeout_s=0.2)
    assert refused.value.code is ErrorCode.REQUEST_TIMEOUT
    assert "2 calls" in refused.value.message


def test_a_pipeline_whose_connection_closes(path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())

    with (
        ScriptedDaemon(path, script),
        Client(path) as client,
        pytest.raises(MemdError) as refused,
    ):
        client.pipeline([PING] * 2)
    assert refused.value.code is ErrorCode.CONNECTION_CLOSED

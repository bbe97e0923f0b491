"""Timeouts, lost connections and nonsense: the caller gets one precise error."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Call
from jackin_memd.wire.session import PingParams, PingResult
from jackin_memd.wire.status import (
    StatusEntry,
    StatusLatestParams,
    StatusLatestResult,
    StatusRecordParams,
    StatusRecordResult,
)
from jackin_memd.wire.streams import EndEvent
from tests.clients.faces import Face
from tests.clients.scripted import Caller, Script, ScriptedDaemon

PING = ("ping", PingParams())
LATEST = ("status.latest", StatusLatestParams())
RECORD = ("status.record", StatusRecordParams(entries=[StatusEntry(new_status="idle")]))
RECORDED = StatusRecordResult(first_id=1, last_id=1, cursor="e.1")


def greeting(then: Script) -> Script:
    def script(caller: Caller) -> None:
        caller.greet()
        then(caller)

    return script


def failing(face: Face, path: Path, script: Script, timeout_s: float = 20.0) -> MemdError:
    with ScriptedDaemon(path, greeting(script)), pytest.raises(MemdError) as refused:
        face.calls(path, PING, timeout_s=timeout_s)
    return refused.value


# -- time ---------------------------------------------------------------------


def test_no_answer_in_time(face: Face, path: Path) -> None:
    error = failing(face, path, Caller.until_closed, timeout_s=0.2)
    assert error.code is ErrorCode.REQUEST_TIMEOUT
    assert error.message == "ping was not answered within 0.2 s"


def test_the_deadline_is_for_the_whole_call_not_for_each_byte(face: Face, path: Path) -> None:
    def trickle(caller: Caller) -> None:
        caller.call("ping")
        pause = threading.Event()
        try:
            for byte in frame(b" " * 500):  # ten seconds of signs of life
                caller.send_bytes(bytes([byte]))
                pause.wait(0.02)
        except OSError:
            return  # the client gave up, as it should

    assert failing(face, path, trickle, timeout_s=0.3).code is ErrorCode.REQUEST_TIMEOUT


def test_a_daemon_that_stops_reading_in_a_large_call(face: Face, path: Path) -> None:
    large = StatusRecordParams(entries=[StatusEntry(new_status="x" * 128)] * 5000)
    gone = threading.Event()

    def script(caller: Caller) -> None:
        caller.greet()
        gone.wait(20)

    with ScriptedDaemon(path, script):
        with pytest.raises(MemdError) as refused:
            face.calls(path, ("status.record", large), timeout_s=0.3)
        gone.set()
    assert refused.value.code is ErrorCode.REQUEST_TIMEOUT


# -- lost connections -----------------------------------------------------------


def test_closed_before_the_answer(face: Face, path: Path) -> None:
    error = failing(face, path, lambda caller: void(caller.call("ping")))
    assert error.code is ErrorCode.CONNECTION_CLOSED
    assert "idempotency key" in (error.hint or "")


def test_closed_in_the_middle_of_the_answer(face: Face, path: Path) -> None:
    def half(caller: Caller) -> None:
        caller.call("ping")
        caller.send_bytes(frame(b'{"jsonrpc":"2.0","id":2,"result":{}}')[:-5])

    assert failing(face, path, half).code is ErrorCode.CONNECTION_CLOSED


def void(_: object) -> None:
    """For scripts in one line."""


# -- nonsense -------------------------------------------------------------------


def answering(payload: bytes) -> Script:
    def script(caller: Caller) -> None:
        caller.call("ping")
        caller.send(payload)
        caller.until_closed()

    return script


@pytest.mark.parametrize(
    "payload",
    [
        b"GET / HTTP/1.1",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"jsonrpc":"1.0","id":2,"result":{}}',
        b'{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"2","result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":2,"result":[1]}',
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"stream.rows","params":{"rows":1}}',
        b'{"jsonrpc":"2.0","method":"stream.rows"}',
    ],
)
def test_what_is_not_the_protocol_is_a_violation(face: Face, path: Path, payload: bytes) -> None:
    error = failing(face, path, answering(payload))
    assert error.code is ErrorCode.PROTOCOL_VIOLATION
    assert str(path) in error.message
    assert error.hint


@pytest.mark.parametrize("prefix", [b"\0\0\0\0", b"HTTP", b"\xff\xff\xff\xff"])
def test_a_length_that_is_none_is_a_violation(face: Face, path: Path, prefix: bytes) -> None:
    def script(caller: Caller) -> None:
        caller.call("ping")
        caller.send_bytes(prefix)
        caller.until_closed()

    assert failing(face, path, script).code is ErrorCode.PROTOCOL_VIOLATION


def test_notifications_of_a_newer_daemon_are_ignored(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        call = caller.call("ping")
        caller.notify("weather.changed", {"sun": True})
        caller.notify("stream.end", EndEvent(subscription="s", instance=None, code="C", message=""))
        caller.answer(call, PingResult())
        caller.until_closed()

    with ScriptedDaemon(path, greeting(script)):
        assert face.calls(path, PING) == [PingResult()]


def test_a_result_with_members_of_a_newer_daemon_is_read(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.answer(caller.call("status.latest"), {"row": None, "cursor": "e.0", "new": [1]})
        caller.until_closed()

    with ScriptedDaemon(path, greeting(script)):
        assert face.calls(path, LATEST) == [StatusLatestResult(row=None, cursor="e.0")]


# -- retry ------------------------------------------------------------------------


class Keys:
    """Scripts for connections that see one status.record each."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def lost(self, caller: Caller) -> None:
        self._note(caller)

    def answered(self, caller: Caller) -> None:
        caller.answer(self._note(caller), RECORDED)
        caller.until_closed()

    def _note(self, caller: Caller) -> Call:
        caller.greet()
        call, params = caller.params("status.record", StatusRecordParams)
        self.seen.append(params.idempotency_key)
        return call


def test_a_retried_write_carries_one_key_on_both_connections(face: Face, path: Path) -> None:
    keys = Keys()
    with ScriptedDaemon(path, keys.lost, keys.answered):
        assert face.calls(path, RECORD, retry=True) == [RECORDED]
    first, second = keys.seen
    assert first == second
    assert first is not None
    assert len(first) == 32


def test_every_retried_call_has_a_key_of_its_own(face: Face, path: Path) -> None:
    keys = Keys()

    def twice(caller: Caller) -> None:
        for _ in range(2):
            if not keys.seen:
                caller.greet()
            call, params = caller.params("status.record", StatusRecordParams)
            keys.seen.append(params.idempotency_key)
            caller.answer(call, RECORDED)
        caller.until_closed()

    with ScriptedDaemon(path, twice):
        face.calls(path, RECORD, RECORD, retry=True)
    assert len(set(keys.seen)) == 2


def test_a_given_key_is_kept(face: Face, path: Path) -> None:
    keys = Keys()
    own = StatusRecordParams(entries=[StatusEntry(new_status="idle")], idempotency_key="mine")
    with ScriptedDaemon(path, keys.lost, keys.answered):
        face.calls(path, ("status.record", own), retry=True)
    assert keys.seen == ["mine", "mine"]


def test_without_retry_nothing_is_repeated_and_no_key_made_up(face: Face, path: Path) -> None:
    keys = Keys()
    with ScriptedDaemon(path, keys.lost), pytest.raises(MemdError) as refused:
        face.calls(path, RECORD)
    assert refused.value.code is ErrorCode.CONNECTION_CLOSED
    assert keys.seen == [None]


def test_it_is_repeated_once_and_no_more(face: Face, path: Path) -> None:
    keys = Keys()
    with ScriptedDaemon(path, keys.lost, keys.lost), pytest.raises(MemdError) as refused:
        face.calls(path, RECORD, retry=True)
    assert refused.value.code is ErrorCode.CONNECTION_CLOSED
    assert len(keys.seen) == 2


def test_reads_are_repeated_too(face: Face, path: Path) -> None:
    newest = StatusLatestResult(row=None, cursor="e.0")

    def answered(caller: Caller) -> None:
        caller.answer(caller.call("status.latest"), newest)
        caller.until_closed()

    lost = greeting(lambda caller: void(caller.call("status.latest")))
    with ScriptedDaemon(path, lost, greeting(answered)):
        assert face.calls(path, LATEST, retry=True) == [newest]


def test_a_refusal_is_not_repeated(face: Face, path: Path) -> None:
    def refused(caller: Caller) -> None:
        error = MemdError(ErrorCode.INSTANCE_NOT_FOUND, "no", field="instance", hint="load it")
        caller.refuse(caller.call("status.record"), error)
        caller.until_closed()

    with ScriptedDaemon(path, greeting(refused)), pytest.raises(MemdError) as told:
        face.calls(path, RECORD, retry=True)
    assert told.value.code is ErrorCode.INSTANCE_NOT_FOUND
    assert (told.value.field, told.value.hint) == ("instance", "load it")

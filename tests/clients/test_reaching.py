"""What a client says where it can't reach a daemon, or not one that it can talk to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import (
    DaemonStatus,
    DaemonStatusParams,
    HelloParams,
    Latency,
    PingParams,
    PingResult,
)
from jackin_memd.wire.status import StatusEntry, StatusRecordParams
from jackin_memd.wire.vocab import PROTOCOL_VERSION, Role
from tests.clients.faces import Face
from tests.clients.scripted import Caller, ScriptedDaemon, mismatch

PING = ("ping", PingParams())
STATUS = ("status", DaemonStatusParams())


def test_no_socket_says_how_to_start_the_daemon(face: Face, path: Path) -> None:
    with pytest.raises(MemdError) as refused:
        face.calls(path, PING)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE
    assert str(path) in refused.value.message
    assert "jackin-memd start" in (refused.value.hint or "")
    assert isinstance(refused.value.__cause__, FileNotFoundError)


def test_a_socket_that_nobody_serves_any_more(face: Face, path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(str(path))
    with pytest.raises(MemdError) as refused:
        face.calls(path, PING)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE
    assert "nobody listens" in refused.value.message


def test_a_file_in_the_place_of_the_socket(face: Face, path: Path) -> None:
    path.write_text("not a socket", encoding="utf-8")
    with pytest.raises(MemdError) as refused:
        face.calls(path, PING)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE


def test_a_path_over_the_system_limit(face: Face, path: Path) -> None:
    with pytest.raises(MemdError) as refused:
        face.calls(path.parent / ("x" * 120), PING)
    assert refused.value.code is ErrorCode.SOCKET_PATH_TOO_LONG


@contextmanager
def full_queue(path: Path) -> Iterator[None]:
    """A listener that accepts nobody and has no place left in its queue."""
    with ExitStack() as stack:
        listener = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
        listener.bind(str(path))
        listener.listen(0)
        while True:
            waiting = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
            waiting.setblocking(False)
            try:
                waiting.connect(str(path))
            except BlockingIOError:
                break
        yield


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="Linux queues, others refuse")
def test_a_full_queue_is_waited_for_until_the_time_is_up(face: Face, path: Path) -> None:
    with full_queue(path), pytest.raises(MemdError) as refused:
        face.calls(path, PING, timeout_s=0.2)
    assert refused.value.code is ErrorCode.DAEMON_UNREACHABLE
    assert "queue is full" in refused.value.message


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="Linux queues, others refuse")
def test_a_place_that_comes_free_in_the_queue_is_taken(face: Face, path: Path) -> None:
    served = threading.Event()

    def serve() -> None:
        with ExitStack() as stack:
            while not served.is_set():
                connection, _ = listener.accept()
                stack.enter_context(connection)
                caller = Caller(connection)
                try:
                    caller.greet()
                    caller.answer(caller.call("ping"), PingResult())
                    served.set()
                except AssertionError:
                    pass  # one of those who only filled the queue

    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen(0)
        with closing(socket.socket(socket.AF_UNIX)) as waiting:
            waiting.connect(str(path))
        server = threading.Timer(0.1, serve)
        server.start()
        try:
            assert face.calls(path, PING) == [PingResult()]
        finally:
            server.join()


def test_hello_tells_version_build_and_role(path: Path, face: Face) -> None:
    def script(caller: Caller) -> None:
        call, hello = caller.params("hello", HelloParams)
        asked.append(hello)
        caller.refuse(call, MemdError(ErrorCode.TOO_MANY_CONNECTIONS, "full"))

    asked: list[HelloParams] = []
    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.calls(path, PING)
    assert refused.value.code is ErrorCode.TOO_MANY_CONNECTIONS
    assert asked[0].protocol_version == PROTOCOL_VERSION
    assert asked[0].build.startswith("jackin-mem/")
    assert asked[0].role is Role.OPERATOR


def test_a_daemon_that_does_not_answer_hello(face: Face, path: Path) -> None:
    with ScriptedDaemon(path, Caller.until_closed), pytest.raises(MemdError) as refused:
        face.calls(path, PING, timeout_s=0.1)
    assert refused.value.code is ErrorCode.REQUEST_TIMEOUT
    assert "0.1 s" in refused.value.message


def test_another_version_refuses_calls_but_those_of_any_version(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.refuse(caller.call("hello"), mismatch())
        caller.answer(caller.call("status"), A_STATUS)
        caller.until_closed()

    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.calls(path, STATUS, PING)
    assert refused.value.code is ErrorCode.PROTOCOL_MISMATCH
    assert refused.value.hint == "restart it"


def test_a_farewell_tells_why_the_connection_closed(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.farewell(MemdError(ErrorCode.TOO_MANY_CONNECTIONS, "64 are open"))

    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.calls(path, PING)
    assert refused.value.code is ErrorCode.TOO_MANY_CONNECTIONS


def test_a_call_over_the_daemons_frame_limit_is_not_sent(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet(max_frame_bytes=300)
        caller.answer(caller.call("ping"), PingResult())
        caller.silent_until_closed()

    large = StatusRecordParams(entries=[StatusEntry(new_status="x" * 120)] * 3)
    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.calls(path, PING, ("status.record", large))
    assert refused.value.code is ErrorCode.FRAME_TOO_LARGE
    assert refused.value.details["limit_bytes"] == 300


def test_an_unknown_method_is_refused_with_near_names(face: Face, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.until_closed()

    with ScriptedDaemon(path, script), pytest.raises(MemdError) as refused:
        face.calls(path, ("status.latst", PingParams()))
    assert refused.value.code is ErrorCode.METHOD_NOT_FOUND
    assert "status.latest" in (refused.value.hint or "")


A_STATUS = DaemonStatus(
    state="serving",
    pid=1,
    protocol_version=9,
    build="b",
    home="/h",
    socket="/s",
    sqlite_version="3",
    started_at=0,
    uptime_s=0.0,
    rss_bytes=0,
    threads=1,
    instances_loaded=0,
    instances_failed=0,
    databases_open=0,
    connections={},
    requests_in_flight=0,
    write_queue_depth=0,
    read_queue_depth=0,
    subscriptions=0,
    commits=0,
    rows=0,
    rows_per_commit=None,
    acknowledgement=Latency(samples=0, p50_ms=None, p99_ms=None),
)

"""A peer that does to a client what the real daemon never would: it follows a script."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from jackin_memd.wire import streams
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Call, Peer
from jackin_memd.wire.session import HelloResult
from jackin_memd.wire.streams import SubscribeParams, SubscribeResult
from jackin_memd.wire.vocab import Channel

PATIENCE_S = 20.0


class HungError(AssertionError):
    """The client did not do what the script waits for."""


class Caller:
    """The script's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._peer = Peer(answers=False)
        self._calls: deque[Call] = deque()

    # -- reading ---------------------------------------------------------------

    def call(self, method: str) -> Call:
        """The next call, which must be of this method."""
        while not self._calls:
            data = self._socket.recv(65536)
            if not data:
                raise HungError(f"the client left before it called {method}")
            self._calls += [e for e in self._peer.receive_data(data) if isinstance(e, Call)]
        call = self._calls.popleft()
        assert call.method == method
        return call

    def params(self, method: str, type_: type[Any]) -> tuple[Call, Any]:
        call = self.call(method)
        return call, msgspec.json.decode(bytes(call.params), type=type_)  # type: ignore[arg-type]

    def until_closed(self) -> None:
        """Wait for the client to close; what it still sends is thrown away."""
        while self._socket.recv(65536):
            pass

    def silent_until_closed(self) -> None:
        """Wait for the client to close; it must not call anything before."""
        data = self._socket.recv(65536)
        assert data == b"", f"the client sent {data[:200]!r}"

    # -- writing ---------------------------------------------------------------

    def greet(self, **changed: Any) -> None:
        self.answer(self.call("hello"), msgspec.structs.replace(HELLO, **changed))

    def answer(self, call: Call, result: Any) -> None:
        reply = self._peer.result(call, result)
        assert reply is not None
        self._socket.sendall(reply)

    def refuse(self, call: Call, error: MemdError) -> None:
        reply = self._peer.failure(call, error)
        assert reply is not None
        self._socket.sendall(reply)

    def farewell(self, error: MemdError) -> None:
        self._socket.sendall(self._peer.farewell(error))

    def send(self, payload: bytes) -> None:
        """One frame of any bytes."""
        self._socket.sendall(frame(payload))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    # -- streams -----------------------------------------------------------------

    def subscribed(self, subscription: str = "s1", **cursors: str) -> SubscribeParams:
        """Answer status.subscribe; returns what was asked for."""
        call, params = self.params("status.subscribe", SubscribeParams)
        self.answer(call, SubscribeResult(subscription=subscription, cursors=cursors))
        asked: SubscribeParams = params
        return asked

    def notify(self, method: str, event: Any) -> None:
        self._socket.sendall(self._peer.notify(method, event))

    def rows(self, *ids: int, instance: str = "a", subscription: str = "s1") -> None:
        self.notify(streams.ROWS, rows_event(*ids, instance=instance, subscription=subscription))


HELLO = HelloResult(
    protocol_version=1,
    build="scripted",
    channel=Channel.OPERATOR,
    instance=None,
    max_frame_bytes=4 * 1024 * 1024,
)


def rows_event(*ids: int, instance: str = "a", subscription: str = "s1") -> streams.RowsEvent:
    return streams.RowsEvent(
        subscription=subscription,
        instance=instance,
        cursor=f"e.{ids[-1]}",
        rows=[msgspec.Raw(b'{"id":%d}' % id_) for id_ in ids],
    )


def ids_of(event: Any) -> list[int]:
    assert isinstance(event, streams.RowsEvent), event
    return [msgspec.json.decode(row)["id"] for row in event.rows]


def mismatch() -> MemdError:
    return MemdError(ErrorCode.PROTOCOL_MISMATCH, "the daemon is older", hint="restart it")


Script = Callable[[Caller], None]


class ScriptedDaemon:
    """Serves the scripts in turn, one connection each; then nobody listens any more.

    Leaving the `with` waits for the scripts and raises what failed in them.
    """

    def __init__(self, path: Path, *scripts: Script) -> None:
        self.path = path
        self._scripts = scripts
        self._failure: BaseException | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(PATIENCE_S)
        path.unlink(missing_ok=True)  # of a daemon before
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, type_: type[BaseException] | None, *_: object) -> None:
        self._thread.join(PATIENCE_S)
        self._listener.close()
        if self._failure is not None and type_ is None:
            raise self._failure

    def _serve(self) -> None:
        try:
            for number, script in enumerate(self._scripts, 1):
                connection, _ = self._listener.accept()
                if number == len(self._scripts):
                    self._listener.close()
                with connection:
                    connection.settimeout(PATIENCE_S)
                    script(Caller(connection))
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's thread
            self._failure = failure

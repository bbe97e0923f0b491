"""A connection that sends what it is told, byte for byte.

The client libraries refuse to send most of what a daemon must withstand.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.framing import frame
from jackin_memd.wire.vocab import PROTOCOL_VERSION

PATIENCE_S = 20.0

Message = dict[str, Any]


class Raw:
    """Connected once it exists. Says nothing by itself, not even hello."""

    def __init__(self, path: Path, *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(os.fspath(path))
        self.notifications: list[Message] = []
        """What came unasked while an answer was waited for."""
        self._ids = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # -- sending ---------------------------------------------------------------

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self.send(frame(payload))

    def send_call(self, method: str, params: bytes = b"{}", id_: Any = 1) -> None:
        """A request with the params as they stand here."""
        self.send_frame(request(method, params, id_))

    def half_close(self) -> None:
        """Say that nothing more is sent; answers can still come."""
        self.socket.shutdown(socket.SHUT_WR)

    # -- receiving ----------------------------------------------------------------

    def read_payload(self) -> bytes:
        """The bytes of the next frame. Raises EOFError at the end."""
        return self._read_exactly(int.from_bytes(self._read_exactly(4), "big"))

    def read(self) -> Any:
        """The next frame, whatever it is."""
        return json.loads(self.read_payload())

    def read_answer(self) -> Message:
        """The next message that is not a notification."""
        while True:
            message: Message = self.read()
            if "method" not in message:
                return message
            self.notifications.append(message)

    def read_to_end(self) -> list[Any]:
        """All frames until the daemon closes."""
        frames = []
        while True:
            try:
                frames.append(self.read())
            except EOFError:
                return frames

    def _read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise EOFError(f"the daemon closed the connection after {bytes(data)!r}")
            data += more
        return bytes(data)

    # -- calls ------------------------------------------------------------------

    def call_raw(self, method: str, params: bytes = b"{}") -> Message:
        """Call and return the whole response."""
        self._ids += 1
        self.send_call(method, params, self._ids)
        answer = self.read_answer()
        # A frame that is no JSON as a whole has no id that could be quoted.
        unread = answer["id"] is None and code_of(answer) == "PARSE_ERROR"
        assert unread or answer["id"] == self._ids, answer
        return answer

    def call(self, method: str, **params: Any) -> Any:
        """The result of a call that must succeed."""
        answer = self.call_raw(method, json.dumps(params).encode())
        assert "result" in answer, answer
        return answer["result"]

    def refused(self, method: str, **params: Any) -> Message:
        """The error of a call that must fail."""
        answer = self.call_raw(method, json.dumps(params).encode())
        assert "error" in answer, answer
        error: Message = answer["error"]
        return error

    def hello(self, **params: Any) -> Any:
        given = {"protocol_version": PROTOCOL_VERSION, "build": "raw"} | params
        return self.call("hello", **given)


def request(method: str, params: bytes = b"{}", id_: Any = 1) -> bytes:
    head = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method})[:-1]
    return head.encode() + b', "params": ' + params + b"}"


def greeted(path: Path, **hello: Any) -> Raw:
    """A raw connection that has said hello."""
    connection = Raw(path)
    connection.hello(**hello)
    return connection


def code_of(message: Message) -> str:
    """The word of an error response, whose number must agree with it."""
    error = message["error"]
    word: str = error["data"]["code"]
    assert error["code"] == ErrorCode[word].number, error
    return word

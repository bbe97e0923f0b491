"""Daemons of other versions, holding the lock and the socket of a home."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from jackin_memd.wire.framing import frame
from jackin_memd.wire.session import DaemonStatus

#: This build's daemon in all but the protocol version that it speaks.
AS_VERSION = """
import sys
from jackin_memd.wire import vocab
vocab.PROTOCOL_VERSION = int(sys.argv[1])
from jackin_memd.cli import main
main(sys.argv[2:])
"""


def serve_as_version(version: int) -> tuple[str, ...]:
    """What a command line must begin with to be the daemon of another version."""
    return (sys.executable, "-c", AS_VERSION, str(version))


class Stranger:
    """A daemon of another world: it answers what every version must, and little else.

    One connection at a time; run as `python -m tests.support.other_builds HOME VERSION`.
    """

    def __init__(self, home: Path, version: int, *, stubborn: bool) -> None:
        """A `stubborn` one hears `shutdown` and does not answer."""
        run = home / "run"
        run.mkdir(mode=0o700, parents=True)
        self._lock = os.open(run / "memd.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, f"{os.getpid()}\n".encode())
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(run / "memd.sock"))
        self._listener.listen()
        self._socket = run / "memd.sock"
        self._home = home
        self._version = version
        self._stubborn = stubborn
        self._stopping = False

    def serve(self) -> None:
        while not self._stopping:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as stream:
                while head := stream.read(4):
                    call = json.loads(stream.read(int.from_bytes(head, "big")))
                    reply = self._answer(call)
                    if reply is not None:
                        message = {"jsonrpc": "2.0", "id": call["id"], **reply}
                        connection.sendall(frame(json.dumps(message).encode()))
        self._socket.unlink()

    def _answer(self, call: dict[str, Any]) -> dict[str, Any] | None:
        if call["method"] == "hello":
            return {"error": self._mismatch(call["params"]["protocol_version"])}
        if call["method"] == "status":
            return {"result": self._status()}
        if call["method"] == "shutdown":
            self._stopping = not self._stubborn
            return {"result": {"accepted": True, "pid": os.getpid()}} if self._stopping else None
        return {"error": {"code": -32601, "message": "what?", "data": {"code": "NO_IDEA"}}}

    def _mismatch(self, theirs: int) -> dict[str, Any]:
        older = "client" if theirs < self._version else "daemon"
        return {
            "code": 101,
            "message": f"you speak {theirs}, I speak {self._version}: the {older} is older",
            "data": {"code": "PROTOCOL_MISMATCH", "older": older, "of_later": {"x": [1]}},
        }

    def _status(self) -> dict[str, Any]:
        known: dict[str, Any] = dict.fromkeys(DaemonStatus.__struct_fields__, 0)
        texts = ("state", "build", "home", "socket", "sqlite_version")
        return known | dict.fromkeys(texts, "stranger") | {
            "pid": os.getpid(), "protocol_version": self._version, "connections": {},
            "acknowledgement": {"samples": 0, "p50_ms": None, "p99_ms": None},
            "of_later": True, "socket": str(self._socket), "home": str(self._home),
        }  # fmt: skip


if __name__ == "__main__":
    stranger = Stranger(Path(sys.argv[1]), int(sys.argv[2]), stubborn=sys.argv[3:] == ["stubborn"])
    print("ready", flush=True)  # noqa: T201
    stranger.serve()

"""The least that a blocking client can do: `wire.peer` on a socket.

Round trips are measured with it, so that they show the server and not the
comforts of the real client, which is measured beside it.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from jackin_memd.wire.framing import PREFIX_BYTES
from jackin_memd.wire.peer import Answer, Peer
from jackin_memd.wire.session import HelloParams
from jackin_memd.wire.vocab import PROTOCOL_VERSION


class SlimClient:
    def __init__(self, path: Path) -> None:
        self._peer = Peer(answers=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))

    def hello(self) -> None:
        self.call("hello", HelloParams(protocol_version=PROTOCOL_VERSION, build="benchmark"))

    def frame(self, method: str, params: Any) -> bytes:
        return self._peer.call(method, params)[1]

    def exchange(self, frame: bytes) -> None:
        """Send a frame and wait for one; what is in it is not looked at."""
        self.socket.sendall(frame)
        data = self.socket.recv(65536)
        wanted = PREFIX_BYTES + int.from_bytes(data[:PREFIX_BYTES], "big")
        while len(data) < wanted:
            data += self.socket.recv(65536)

    def call(self, method: str, params: Any) -> None:
        """Call and wait for the answer, which must not be an error."""
        id_, frame = self._peer.call(method, params)
        self.socket.sendall(frame)
        while True:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the daemon closed the connection")
            for event in self._peer.receive_data(data):
                if isinstance(event, Answer) and event.id == id_:
                    if event.error is not None:
                        raise event.error
                    return

    def close(self) -> None:
        self.socket.close()

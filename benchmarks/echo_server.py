"""A bare trio server that returns every frame: `python -m benchmarks.echo_server PATH`.

It does the framing as the daemon does and nothing else: what is left of a
round trip when there is no JSON, no dispatch and no database.
"""

from __future__ import annotations

import socket
import sys

import trio

from jackin_memd.wire.framing import FrameDecoder, frame


async def _serve(path: str) -> None:
    listener = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    await listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    await trio.serve_listeners(_echo, [trio.SocketListener(listener)])


async def _echo(stream: trio.SocketStream) -> None:
    decoder = FrameDecoder()
    async for data in stream:
        for payload in decoder.feed(bytes(data)):
            await stream.send_all(frame(payload))


if __name__ == "__main__":
    trio.run(_serve, sys.argv[1])

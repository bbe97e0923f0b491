"""One connection of the trio face: a Unix socket that drives a `Session`.

One task at a time may send and one may receive. A cancelled `receive` loses
nothing; a cancelled send leaves half a frame behind and ends the connection.
"""

from __future__ import annotations

import socket
from pathlib import Path

import trio

from jackin_mem import failures
from jackin_mem.session import Session, Settings
from jackin_memd.wire.address import check_length
from jackin_memd.wire.codec import RequestId
from jackin_memd.wire.peer import Answer

RECEIVE_BYTES = 64 * 1024

#: Between attempts to connect where the daemon's queue is full: nothing wakes us.
QUEUE_FULL_DELAY_S = 0.01


class AsyncLink:
    """Make one with `open_link`. Raises MemdError."""

    def __init__(self, settings: Settings, stream: trio.SocketStream) -> None:
        self.session = Session(settings)
        self._stream = stream

    def close(self) -> None:
        """At once, also from a cancelled task; wakes who waits on the connection."""
        self.session.fail(failures.closed(self.session.path))
        self._stream.socket.close()

    async def send(self, frame: bytes) -> bool:
        """False where the daemon takes no more; why, if it said so, is still to be read."""
        try:
            await self._stream.send_all(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        except BaseException:
            self.close()
            raise
        return True

    async def receive(self) -> None:
        """Wait for bytes and give them to the session."""
        try:
            data = await self._stream.receive_some(RECEIVE_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        self.session.receive(data)

    async def exchange(self, id_: RequestId, frame: bytes) -> Answer:
        """Send a call and wait for its answer, where no other task receives."""
        session = self.session
        await self.send(frame)
        while id_ not in session.answers:
            if session.over is not None:
                raise failures.again(session.over)
            await self.receive()
        return session.answers.pop(id_)


async def open_link(settings: Settings, deadline: float) -> AsyncLink:
    """Connect and say hello. Raises MemdError.

    The caller's cancel scope ends it; `deadline` (trio's clock) is when the
    scope will, so that the reason can be told in time.
    """
    link = AsyncLink(settings, await _connect(settings.path, deadline))
    try:
        link.session.greeted(await link.exchange(*link.session.begin_hello()))
    except BaseException:
        link.close()
        raise
    return link


async def _connect(path: Path, deadline: float) -> trio.SocketStream:
    check_length(path)
    while True:
        try:
            return _connect_at_once(path)
        except BlockingIOError as error:
            # Not `trio.socket`'s own connect: it takes EAGAIN of a full queue for
            # a connection that is under way, and returns one that never was.
            if trio.current_time() + 2 * QUEUE_FULL_DELAY_S > deadline:
                raise failures.unreachable(path, error) from error
        except OSError as error:
            raise failures.unreachable(path, error) from error
        await trio.sleep(QUEUE_FULL_DELAY_S)


def _connect_at_once(path: Path) -> trio.SocketStream:
    """A Unix socket connects without waiting, or fails."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(path))
        return trio.SocketStream(trio.socket.from_stdlib_socket(connection))
    except BaseException:
        connection.close()
        raise

"""One connection of the blocking face: a Unix socket that drives a `Session`.

Every wait has a deadline on the monotonic clock, so that a peer which sends a
byte now and then can't stretch it.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from jackin_mem import failures
from jackin_mem.session import Session, Settings
from jackin_memd.wire.address import check_length
from jackin_memd.wire.codec import RequestId
from jackin_memd.wire.peer import Answer

#: One read: many answers of a pipeline, and a page of stream rows in a few.
RECEIVE_BYTES = 64 * 1024


class Link:
    """Connected and greeted once it exists. Raises MemdError, and TimeoutError
    where the deadline passes while a call is under way."""

    def __init__(self, settings: Settings, deadline: float) -> None:
        self.session = Session(settings)
        self._socket = _connect(settings.path, deadline)
        # Non-blocking with a poll where it must wait: a time-out set on the socket
        # costs three more system calls for each call.
        self._socket.setblocking(False)
        self._readable = _poll_for(self._socket, select.POLLIN)
        self._either = _poll_for(self._socket, select.POLLIN | select.POLLOUT)
        try:
            self.session.greeted(self.exchange(*self.session.begin_hello(), deadline))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Also wakes a thread that waits in `receive`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def exchange(self, id_: RequestId, frame: bytes, deadline: float) -> Answer:
        """Send a call and wait for its answer; its error is not raised."""
        try:
            self._send(frame, deadline)
            return self._await(id_, deadline)
        except BaseException:
            self.session.give_up(id_)
            raise

    def exchange_all(
        self, ids: Sequence[RequestId], frames: bytes, deadline: float
    ) -> list[Answer]:
        """Send many calls in one stretch and wait for all answers, in the order of
        `ids`. Reads while it writes: the daemon stops reading where answers pile up."""
        try:
            self._send_while_receiving(memoryview(frames), deadline)
            return [self._await(id_, deadline) for id_ in ids]
        except BaseException:
            for id_ in ids:
                self.session.give_up(id_)
            raise

    def _await(self, id_: RequestId, deadline: float) -> Answer:
        session = self.session
        while id_ not in session.answers:
            if session.over is not None:
                raise failures.again(session.over)
            self.receive(deadline)
        return session.answers.pop(id_)

    def receive(self, deadline: float | None) -> None:
        """Wait for bytes and give them to the session. None waits for ever."""
        try:
            _wait(self._readable, deadline)
            data = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise
        except BlockingIOError:
            return  # the poll was wrong, as it may be; whoever waits looks again
        except OSError:  # reset by the daemon, or closed by another thread of ours
            data = b""
        self.session.receive(data)

    # -- sending ------------------------------------------------------------

    def _send(self, frame: bytes, deadline: float) -> None:
        try:
            sent = self._send_some(frame)
            if sent < len(frame):
                self._send_while_receiving(memoryview(frame)[sent:], deadline)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reason, if the daemon gave one before it closed, is still to be read
        except BaseException:
            self._torn()
            raise

    def _send_while_receiving(self, rest: memoryview, deadline: float) -> None:
        try:
            while rest and self.session.over is None:
                ready = _wait(self._either, deadline)
                if ready & ~select.POLLOUT:
                    self.receive(deadline)
                else:
                    rest = rest[self._send_some(rest) :]
        except (BrokenPipeError, ConnectionResetError):
            pass
        except BaseException:
            self._torn()
            raise

    def _send_some(self, rest: bytes | memoryview) -> int:
        try:
            return self._socket.send(rest)
        except BlockingIOError:
            return 0

    def _torn(self) -> None:
        """A frame went out in part: nothing more can be said on this connection."""
        self.session.fail(failures.closed(self.session.path))
        self.close()


def _poll_for(connection: socket.socket, events: int) -> select.poll:
    poll = select.poll()
    poll.register(connection, events)
    return poll


def _wait(poll: select.poll, deadline: float | None) -> int:
    """The events that are there. Raises TimeoutError at the deadline."""
    ready = poll.poll(None if deadline is None else _left(deadline) * 1000)
    if not ready:
        raise TimeoutError
    return ready[0][1]


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connect(path: Path, deadline: float) -> socket.socket:
    check_length(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A non-blocking connect fails at once where the daemon's queue is full; a
        # blocking one waits there, for as long as the send timeout says.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_left(deadline)))
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise failures.unreachable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _timeval(seconds: float) -> bytes:
    whole, part = divmod(seconds, 1)
    return struct.pack("@ll", int(whole), max(int(part * 1_000_000), 1))

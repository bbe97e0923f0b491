"""What a connection has still to send, bounded and never waited for by others."""

from __future__ import annotations

import socket
from collections.abc import Callable

import trio

#: Above this, a connection's requests are not read and its subscriptions rest.
HIGH_WATER_BYTES = 1024 * 1024


class Outbox:
    """Sends at once where the socket takes it, else keeps the bytes for `drain`.

    A reply then costs one system call in the callback that made it, and no
    task switch.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        on_blocked: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        """`on_blocked` is called once when bytes must wait; it should run `drain`.
        `on_broken` is called when the peer turns out to be gone."""
        self._socket = connection
        self._on_blocked = on_blocked
        self._on_broken = on_broken
        self._waiting = bytearray()
        self._drained: trio.Event | None = None
        """Set when `drain` ends; None while nothing waits."""
        self._room = trio.Event()
        self._room.set()
        self.broken = False
        """The peer is gone; what is sent goes nowhere."""

    @property
    def full(self) -> bool:
        return len(self._waiting) > HIGH_WATER_BYTES

    def send(self, frame: bytes) -> None:
        """Queue a frame. Never blocks, never raises for a peer that is gone."""
        if self.broken:
            return
        if not self._waiting:
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._break()
                return
            if sent == len(frame):
                return
            frame = frame[sent:]
        self._waiting += frame
        if self.full and self._room.is_set():
            self._room = trio.Event()
        if self._drained is None:
            self._drained = trio.Event()
            self._on_blocked()

    async def wait_for_room(self) -> None:
        await self._room.wait()

    async def wait_until_empty(self) -> None:
        """Everything is sent, or the peer is gone."""
        if self._drained is not None:
            await self._drained.wait()

    async def drain(self, stall_s: float) -> None:
        """Send what waits. Gives up when the peer takes nothing for `stall_s` seconds."""
        try:
            while self._waiting and not self.broken:
                with trio.move_on_after(stall_s) as stalled:
                    await trio.lowlevel.wait_writable(self._socket)
                if stalled.cancelled_caught:
                    self._break()
                    return
                self._send_some()
        finally:
            if self._drained is not None:
                self._drained.set()
            self._drained = None

    def _send_some(self) -> None:
        try:
            sent = self._socket.send(self._waiting)
        except BlockingIOError:
            return
        except OSError:
            self._break()
            return
        del self._waiting[:sent]
        if not self.full:
            self._room.set()

    def _break(self) -> None:
        self.broken = True
        self._waiting.clear()
        self._room.set()
        self._on_broken()

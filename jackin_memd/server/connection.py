"""One connection: read, dispatch, answer, and let go of it in order."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from types import CoroutineType
from typing import Any

import msgspec
import trio

from jackin_memd.core.access import Principal
from jackin_memd.engine.pending import Pending
from jackin_memd.host.config import Settings
from jackin_memd.server.dispatch import Dispatcher, as_memd_error
from jackin_memd.server.outbox import Outbox
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.peer import Broken, Call, Event, Peer, Refusal
from jackin_memd.wire.session import HelloParams
from jackin_memd.wire.vocab import Channel, Role

log = logging.getLogger(__name__)

RECEIVE_BYTES = 64 * 1024

#: Pages of rows that one connection has read for it at a time: each is held until
#: the outbox has it, so this bounds what a peer that does not read can cost.
ANSWERS = 8

#: What is kept of a frame before hello: room for any hello, and none for a thousand
#: connections that fill the memory with halves of frames.
HELLO_BYTES = 64 * 1024

#: For a peer that still sends after it was refused: how long its bytes are read
#: and thrown away, so that it gets to read why.
LINGER_S = 1.0


class Connection:
    """The session of one peer. Its tasks live in the nursery of `run`."""

    def __init__(
        self,
        connection: socket.socket,
        principal: Principal,
        dispatcher: Dispatcher,
        settings: Settings,
    ) -> None:
        self.principal = principal
        self._socket = connection
        self._dispatcher = dispatcher
        self._settings = settings
        self._peer = Peer(
            answers=False,
            max_frame_bytes=settings.limits.frame_bytes,
            max_batch=settings.limits.batch_calls,
        )
        self._outbox = Outbox(connection, on_blocked=self._drain_outbox, on_broken=self.stop)
        self._nursery: trio.Nursery | None = None
        self._greeted = False
        self._reading = trio.CancelScope()
        self._broken = False
        """What the peer sends has no frame boundary any more."""
        self._frame_deadline: float | None = None
        self._hello_deadline = trio.current_time() + settings.timeouts.hello_s
        self._changed = trio.Event()
        self._answering = trio.Semaphore(ANSWERS)
        self._subscriptions: dict[str, trio.CancelScope] = {}
        self._subscription_count = 0
        self.in_flight = 0

    # -- life ----------------------------------------------------------------

    async def run(self) -> None:
        """Serve until the peer is gone or `stop` is called; then answer what is in
        flight, send what waits, and close."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                with self._reading:
                    await self._read()
                await self._finish()
                nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
            self._socket.close()

    def stop(self) -> None:
        """Read no more; `run` returns once what was accepted is answered."""
        self._reading.cancel()

    def abort(self) -> None:
        """Let go now, whatever is in flight."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    async def _finish(self) -> None:
        for scope in self._subscriptions.values():
            scope.cancel()
        while self.in_flight:  # also for a peer that is gone: what was accepted is done
            await self._wait_for_change()
        await self._outbox.wait_until_empty()
        if self._broken:
            await self._linger()

    # -- reading ---------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            await self._wait_until_welcome()
            data = await self._receive()
            if not data:
                return
            for event in self._peer.receive_data(data):
                self._frame_deadline = None  # of the frame that has ended; the next has its own
                await self._wait_until_welcome()
                self._take(event)
                if self._broken:
                    return
            if not self._greeted and self._peer.buffered_bytes > HELLO_BYTES:
                self._take(_too_much_before_hello(self._peer))
                return

    async def _wait_until_welcome(self) -> None:
        """A peer that does not read its answers, or has too many open, waits."""
        while self._outbox.full or self.in_flight >= self._settings.limits.requests_in_flight:
            self._frame_deadline = None  # a frame that is not read now is not late
            if self._outbox.full:
                await self._outbox.wait_for_room()
            else:
                await self._wait_for_change()

    async def _receive(self) -> bytes:
        """The next bytes; none when the peer is gone or a deadline has passed."""
        deadline, late = self._deadline()
        if late is None:
            await trio.lowlevel.wait_readable(self._socket)
        else:
            with trio.move_on_at(deadline) as scope:
                await trio.lowlevel.wait_readable(self._socket)
            if scope.cancelled_caught:
                self._outbox.send(self._peer.farewell(late))
                return b""
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return await self._receive()
        except OSError:
            return b""

    def _deadline(self) -> tuple[float, MemdError | None]:
        """When to stop waiting, and what to say then; no error, no deadline."""
        timeouts = self._settings.timeouts
        if self._peer.mid_frame:
            if self._frame_deadline is None:
                self._frame_deadline = trio.current_time() + timeouts.frame_s
            return self._frame_deadline, MemdError(
                ErrorCode.FRAME_TIMEOUT,
                f"a frame was not complete {timeouts.frame_s:g} s after it began",
                hint="send a frame in one go",
            )
        if not self._greeted:
            return self._hello_deadline, MemdError(
                ErrorCode.HELLO_TIMEOUT,
                f"no hello came within {timeouts.hello_s:g} s",
                hint="call hello first on every connection",
            )
        return 0.0, None

    def _take(self, event: Event) -> None:
        if isinstance(event, Call):
            self._start(event)
        elif isinstance(event, Refusal | Broken):
            self._outbox.send(event.frame)
            self._broken = isinstance(event, Broken)

    async def _linger(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        with trio.move_on_after(LINGER_S):
            while await self._thrown_away():
                pass

    async def _thrown_away(self) -> bool:
        await trio.lowlevel.wait_readable(self._socket)
        try:
            return bool(self._socket.recv(RECEIVE_BYTES))
        except OSError:
            return False

    # -- calls -----------------------------------------------------------------

    def _start(self, call: Call) -> None:
        try:
            answer = self._dispatcher.start(call, self, greeted=self._greeted)
        except Exception as error:  # noqa: BLE001 - every failure becomes a reply
            self._reply(call, error)
            return
        if isinstance(answer, Pending):
            self.in_flight += 1
            answer.then(lambda outcome: self._answered(call, outcome))
        elif isinstance(answer, CoroutineType):
            self.in_flight += 1
            self._run_task(self._await(call, answer))
        else:
            self._reply(call, answer)

    async def _await(self, call: Call, answer: Coroutine[Any, Any, Any]) -> None:
        with closing(answer):
            async with self._answering:
                await self._outbox.wait_for_room()
                try:
                    outcome: Any = await answer
                except Exception as error:  # noqa: BLE001 - every failure becomes a reply
                    outcome = error
                self._answered(call, outcome)

    def _answered(self, call: Call, outcome: Any) -> None:
        self.in_flight -= 1
        self._reply(call, outcome)
        self._changed.set()

    def _reply(self, call: Call, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            frame = self._peer.failure(call, as_memd_error(outcome, call.method))
        else:
            frame = self._peer.result(call, outcome)
        if frame is not None:
            self._outbox.send(frame)

    # -- what services ask of their session --------------------------------------

    def greet(self, hello: HelloParams) -> Principal:
        self._greeted = True
        if self.principal.channel is Channel.OPERATOR and hello.role is Role.OBSERVER:
            self.principal = Principal(channel=Channel.OBSERVER)
        return self.principal

    async def notify(self, method: str, params: msgspec.Struct) -> None:
        await self._outbox.wait_for_room()
        self._outbox.send(self._peer.notify(method, params))

    def start_subscription(self, run: Callable[[str], Awaitable[None]]) -> str:
        limit = self._settings.limits.subscriptions
        if len(self._subscriptions) >= limit:
            raise MemdError(
                ErrorCode.TOO_MANY_SUBSCRIPTIONS,
                f"this connection has {limit} subscriptions already",
                hint="cancel one, or follow several instances in one subscription",
                details={"limit": limit},
            )
        self._subscription_count += 1
        id_ = f"s{self._subscription_count}"
        scope = self._subscriptions[id_] = trio.CancelScope()
        self._run_task(self._run_subscription(id_, scope, run))
        return id_

    async def _run_subscription(
        self, id_: str, scope: trio.CancelScope, run: Callable[[str], Awaitable[None]]
    ) -> None:
        try:
            with scope:  # which may be cancelled before this task begins
                await run(id_)
        finally:
            self._subscriptions.pop(id_, None)

    def cancel_subscription(self, subscription: str) -> bool:
        scope = self._subscriptions.pop(subscription, None)
        if scope is None:
            return False
        scope.cancel()
        return True

    # -- helpers -----------------------------------------------------------------

    @property
    def subscription_count(self) -> int:
        return len(self._subscriptions)

    def _drain_outbox(self) -> None:
        self._run_task(self._outbox.drain(self._settings.timeouts.send_s))

    def _run_task(self, task: Coroutine[Any, Any, None]) -> None:
        if self._nursery is None:
            task.close()  # the connection has ended; there is nobody to answer
            return
        self._nursery.start_soon(lambda: task)

    async def _wait_for_change(self) -> None:
        self._changed = trio.Event()
        await self._changed.wait()


def _too_much_before_hello(peer: Peer) -> Broken:
    error = MemdError(
        ErrorCode.FRAME_TOO_LARGE,
        f"a frame before hello is over {HELLO_BYTES} bytes",
        hint="call hello first on every connection",
        details={"limit_bytes": HELLO_BYTES},
    )
    return Broken(peer.farewell(error), error)

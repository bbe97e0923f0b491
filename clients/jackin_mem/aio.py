"""The trio client: many calls at once over one connection.

    async with open_client() as client:
        await client.call("status.record", StatusRecordParams(entries=[…]), retry=True)

It connects when it opens and again at the first call after its connection was
lost. Every failure is a MemdError, never an exception group around one. A
call may be cancelled at any time: its answer is dropped when it comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from jackin_mem import failures
from jackin_mem.aio_link import AsyncLink, open_link
from jackin_mem.aio_subscription import AsyncSubscription, open_subscription
from jackin_mem.resume import OnLink, ignore_link
from jackin_mem.session import (
    BUILD,
    DEFAULT_TIMEOUT_S,
    Settings,
    decode_result,
    find_method,
    may_repeat,
    with_key,
)
from jackin_memd.wire.address import find_socket
from jackin_memd.wire.codec import RequestId
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.methods import Method
from jackin_memd.wire.peer import Answer
from jackin_memd.wire.session import HelloResult
from jackin_memd.wire.streams import SubscribeParams
from jackin_memd.wire.vocab import Role

__all__ = ["AsyncClient", "AsyncSubscription", "open_client"]

#: Frames that wait for the socket; a caller beyond them waits, and may be cancelled.
_OUTBOX_FRAMES = 64

#: After a failed send the daemon's farewell may still be unread; it is given so long.
_FAREWELL_S = 1.0


@asynccontextmanager
async def open_client(
    path: Path | str | None = None,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    role: Role = Role.OPERATOR,
    build: str = BUILD,
) -> AsyncIterator[AsyncClient]:
    """A client of the daemon on `path`, the socket that `find_socket()` names if left
    out; connected on entry. Raises MemdError."""
    chosen = find_socket() if path is None else Path(path)
    settings = Settings(path=chosen, timeout_s=timeout_s, role=role, build=build)
    try:
        async with trio.open_nursery() as nursery:
            client = AsyncClient(settings, nursery)
            await client.connect()
            yield client
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error = _one_of(group)
        raise error from error.__cause__


def _one_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that the nursery wrapped; the group itself where it has several."""
    _, others = group.split(trio.Cancelled)
    if others is not None and len(others.exceptions) == 1:
        return others.exceptions[0]
    return group


class AsyncClient:
    """What `open_client` gives. Its tasks may share it."""

    def __init__(self, settings: Settings, nursery: trio.Nursery) -> None:
        self.settings = settings
        self._nursery = nursery
        self._connecting = trio.Lock()
        self._pump: _Pump | None = None

    @property
    def hello(self) -> HelloResult | None:
        """What the daemon said of itself and of this connection; None while there is
        no connection, and where the daemon speaks another protocol version."""
        return self._pump.link.session.hello if self._pump else None

    async def connect(self) -> None:
        """Connect and say hello now. Raises MemdError, but not for another protocol
        version: calls that are answered whatever the version still work."""
        with trio.move_on_after(self.settings.timeout_s) as scope:
            await self._ready(scope.deadline)
            return
        raise failures.timed_out("hello", self.settings.timeout_s)

    async def call(
        self,
        method: str | Method,
        params: Any,
        *,
        timeout_s: float | None = None,
        retry: bool = False,
    ) -> Any:
        """Call and return the method's result type. Raises MemdError.

        `retry` makes the call once more where the connection closes before its
        answer, within the same time. A call that writes carries an idempotency
        key then (its own or a new one), so it is done once.
        """
        known = find_method(method)
        if retry:
            params = with_key(known, params)
        given = self.settings.timeout_s if timeout_s is None else timeout_s
        with trio.move_on_after(given) as scope:
            answer = await self._answer(known, params, retry, scope.deadline)
            return decode_result(self.settings.path, known, answer)
        raise failures.timed_out(known.name, given)

    def subscribe(
        self,
        params: SubscribeParams,
        *,
        method: str | Method = "status.subscribe",
        reconnect_s: float | None = None,
        on_link: OnLink = ignore_link,
    ) -> AbstractAsyncContextManager[AsyncSubscription]:
        """Follow a table on a connection of its own: enter, then `async for`.

        Entered, it is subscribed. `reconnect_s` is for how long a lost connection
        is tried again: for ever if None, not at all if 0. Raises MemdError where
        the first attempt fails.
        """
        return open_subscription(
            self.settings, find_method(method), params, reconnect_s=reconnect_s, on_link=on_link
        )

    # -- helpers --------------------------------------------------------------

    async def _answer(self, method: Method, params: Any, retry: bool, deadline: float) -> Answer:
        try:
            return await (await self._ready(deadline)).exchange(method.name, params)
        except MemdError as error:
            if not (retry and may_repeat(method, error)):
                raise
        return await (await self._ready(deadline)).exchange(method.name, params)

    async def _ready(self, deadline: float) -> _Pump:
        async with self._connecting:
            pump = self._pump
            if pump is None or pump.link.session.over is not None:
                pump = self._pump = _Pump(await open_link(self.settings, deadline))
                self._nursery.start_soon(pump.run)
            return pump


class _Pump:
    """Moves the frames of all calls over one link: a task that sends, one that receives.

    Callers only queue their frame, so a cancelled call never tears one.
    """

    def __init__(self, link: AsyncLink) -> None:
        self.link = link
        self._waiting: dict[RequestId, trio.Event] = {}
        self._outbox, self._frames = trio.open_memory_channel[bytes](_OUTBOX_FRAMES)

    async def exchange(self, method: str, params: Any) -> Answer:
        session = self.link.session
        id_, frame = session.begin(method, params)
        answered = self._waiting[id_] = trio.Event()
        try:
            if session.over is None:
                await self._queue(frame)
                await answered.wait()
            if id_ in session.answers:
                return session.answers.pop(id_)
            raise failures.again(session.over or failures.closed(session.path))
        finally:
            del self._waiting[id_]
            session.give_up(id_)

    async def _queue(self, frame: bytes) -> None:
        with suppress(trio.BrokenResourceError):  # the link is over: `answered` is set
            await self._outbox.send(frame)

    async def run(self) -> None:
        """Until the link is over. Raises nothing but Cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send)
                await self._receive()
                nursery.cancel_scope.cancel()
        finally:
            self.link.close()
            self._frames.close()
            self._wake(set(self._waiting))

    async def _receive(self) -> None:
        session = self.link.session
        while session.over is None:
            await self.link.receive()
            self._wake(session.answers.keys() & self._waiting.keys())

    async def _send(self) -> None:
        async for frame in self._frames:
            if not await self.link.send(frame):
                break
        # No more can be sent. The receiver finds out why, or is told to stop.
        await trio.sleep(_FAREWELL_S)
        self.link.close()

    def _wake(self, ids: set[RequestId]) -> None:
        for id_ in ids:
            self._waiting[id_].set()

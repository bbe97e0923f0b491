"""The trio face of a subscription: an async iterator that outlives its connections.

Each has a connection of its own, so that a subscriber which reads slowly
slows nobody down but itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from jackin_mem import failures
from jackin_mem.aio_link import AsyncLink, open_link
from jackin_mem.resume import OnLink, Resume, delays
from jackin_mem.session import Settings, StreamEvent, decode_result
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.methods import Method
from jackin_memd.wire.streams import SubscribeParams


@asynccontextmanager
async def open_subscription(
    settings: Settings,
    method: Method,
    params: SubscribeParams,
    *,
    reconnect_s: float | None,
    on_link: OnLink,
) -> AsyncIterator[AsyncSubscription]:
    """Subscribed on entry; the connection is closed on exit. Raises MemdError."""
    plan = _Plan(settings, method, Resume(params))
    subscription = AsyncSubscription(plan, await plan.open_link(), reconnect_s, on_link)
    try:
        yield subscription
    finally:
        subscription.close()


class _Plan:
    """What every connection of one subscription begins with."""

    def __init__(self, settings: Settings, method: Method, resume: Resume) -> None:
        self._settings = settings
        self._method = method
        self.resume = resume

    async def open_link(self) -> AsyncLink:
        """Connect and subscribe. Raises MemdError."""
        timeout_s = self._settings.timeout_s
        with trio.move_on_after(timeout_s) as scope:
            link = await open_link(self._settings, scope.deadline)
            try:
                await self._start(link)
            except BaseException:
                link.close()
                raise
            return link
        raise failures.timed_out(self._method.name, timeout_s)

    async def _start(self, link: AsyncLink) -> None:
        id_, frame = link.session.begin(self._method.name, self.resume.params())
        answer = await link.exchange(id_, frame)
        self.resume.started(decode_result(self._settings.path, self._method, answer))


class AsyncSubscription:
    """What `open_subscription` gives. One task may iterate it."""

    def __init__(
        self, plan: _Plan, link: AsyncLink, reconnect_s: float | None, on_link: OnLink
    ) -> None:
        self._plan = plan
        self._resume = plan.resume
        self._link = link
        self._reconnect_s = reconnect_s
        self._on_link = on_link
        self._lost_at: float | None = None
        self._closed = False

    @property
    def cursors(self) -> dict[str, str]:
        """Container name to the place after the last event that was handed out: pass
        it as `after` to go on there later."""
        return dict(self._resume.cursors)

    def close(self) -> None:
        """End the subscription; iterating it stops."""
        self._closed = True
        self._link.close()

    def __aiter__(self) -> AsyncSubscription:
        return self

    async def __anext__(self) -> StreamEvent:
        """The next event. Raises MemdError when the connection can't be had again.

        A cancelled wait loses nothing: the event comes with the next one.
        """
        await trio.lowlevel.checkpoint()
        while not (self._closed or self._resume.ended):
            event = self._resume.take(self._link.session)
            if event is not None:
                return event
            await self._advance()
        raise StopAsyncIteration

    async def _advance(self) -> None:
        lost = self._link.session.over
        if lost is None:
            await self._link.receive()
        elif self._reconnect_s == 0 or lost.code not in failures.TRANSIENT:
            raise failures.again(lost)
        else:
            await self._reconnect(lost)

    async def _reconnect(self, lost: MemdError) -> None:
        self._link.close()
        if self._lost_at is None:
            self._lost_at = trio.current_time()
            self._on_link(lost)
        for delay_s in delays():
            try:
                self._link = await self._plan.open_link()
                break
            except MemdError as error:
                if error.code not in failures.TRANSIENT or self._given_up(delay_s):
                    raise
            await trio.sleep(delay_s)
        self._lost_at = None
        if self._closed:  # by another task, while there was no link to close
            self._link.close()
        self._on_link(None)

    def _given_up(self, delay_s: float) -> bool:
        """Whether the time for reconnecting ends before the next attempt."""
        if self._reconnect_s is None or self._lost_at is None:
            return False
        return trio.current_time() + delay_s > self._lost_at + self._reconnect_s

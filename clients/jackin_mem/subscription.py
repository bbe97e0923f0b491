"""The blocking face of a subscription: an iterator that outlives its connections.

Each has a connection of its own, so that a subscriber which reads slowly
slows nobody down but itself.
"""

from __future__ import annotations

from time import monotonic, sleep
from types import TracebackType
from typing import Self

from jackin_mem import failures
from jackin_mem.link import Link
from jackin_mem.resume import OnLink, Resume, delays
from jackin_mem.session import Settings, StreamEvent, decode_result
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.methods import Method
from jackin_memd.wire.streams import SubscribeParams


class Subscription:
    """Subscribed once it exists; iterate to receive, close when done."""

    def __init__(
        self,
        settings: Settings,
        method: Method,
        params: SubscribeParams,
        *,
        reconnect_s: float | None,
        on_link: OnLink,
    ) -> None:
        self._settings = settings
        self._method = method
        self._resume = Resume(params)
        self._reconnect_s = reconnect_s
        self._on_link = on_link
        self._lost_at: float | None = None
        self._closed = False
        self._link = self._subscribe()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> StreamEvent:
        event = self.receive(None)
        if event is None:
            raise StopIteration
        return event

    @property
    def cursors(self) -> dict[str, str]:
        """Container name to the place after the last event that was handed out: pass
        it as `after` to go on there later."""
        return dict(self._resume.cursors)

    def close(self) -> None:
        """End the subscription, also from another thread. Iterating it then stops."""
        self._closed = True
        self._link.close()

    def receive(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event, or None when nothing more comes. Waits for ever if None.

        Raises MemdError: REQUEST_TIMEOUT when nothing came in time (the
        subscription goes on), others when the connection can't be had again.
        """
        deadline = None if timeout_s is None else monotonic() + timeout_s
        try:
            while not (self._closed or self._resume.ended):
                event = self._resume.take(self._link.session)
                if event is not None:
                    return event
                self._advance(deadline)
        except TimeoutError:
            raise failures.timed_out("the next event", timeout_s or 0) from None
        return None

    def _advance(self, deadline: float | None) -> None:
        lost = self._link.session.over
        if lost is None:
            self._link.receive(deadline)
        elif self._reconnect_s == 0 or lost.code not in failures.TRANSIENT:
            raise failures.again(lost)
        else:
            self._reconnect(lost, deadline)

    def _subscribe(self) -> Link:
        deadline = monotonic() + self._settings.timeout_s
        try:
            link = Link(self._settings, deadline)
            try:
                self._start(link, deadline)
            except BaseException:
                link.close()
                raise
        except TimeoutError:
            raise failures.timed_out(self._method.name, self._settings.timeout_s) from None
        return link

    def _start(self, link: Link, deadline: float) -> None:
        id_, frame = link.session.begin(self._method.name, self._resume.params())
        answer = link.exchange(id_, frame, deadline)
        self._resume.started(decode_result(self._settings.path, self._method, answer))

    def _reconnect(self, lost: MemdError, deadline: float | None) -> None:
        self._link.close()
        if self._lost_at is None:
            self._lost_at = monotonic()
            self._on_link(lost)
        for delay_s in delays():
            try:
                link = self._subscribe()
                break
            except MemdError as error:
                if self._closed:
                    return
                if error.code not in failures.TRANSIENT or self._given_up(delay_s):
                    raise
            _pause(delay_s, deadline)
        self._link, self._lost_at = link, None
        if self._closed:  # by another thread, while the old link was in its hands
            link.close()
        self._on_link(None)

    def _given_up(self, delay_s: float) -> bool:
        """Whether the time for reconnecting ends before the next attempt."""
        if self._reconnect_s is None or self._lost_at is None:
            return False
        return monotonic() + delay_s > self._lost_at + self._reconnect_s


def _pause(delay_s: float, deadline: float | None) -> None:
    """Sleep, but raise TimeoutError at the deadline."""
    left = delay_s if deadline is None else deadline - monotonic()
    sleep(max(0.0, min(delay_s, left)))
    if left < delay_s:
        raise TimeoutError

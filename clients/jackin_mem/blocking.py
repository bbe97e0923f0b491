"""The plain blocking client: one connection, one call at a time.

    with Client() as client:
        client.call("status.record", StatusRecordParams(entries=[…]), retry=True)

A client belongs to one thread. It connects at its first use and again after
its connection was lost. Every failure is a MemdError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self

from msgspec import Raw

from jackin_mem import failures
from jackin_mem.link import Link
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
from jackin_mem.subscription import Subscription
from jackin_memd.wire.address import find_socket
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.methods import Method
from jackin_memd.wire.peer import Answer
from jackin_memd.wire.session import HelloResult
from jackin_memd.wire.streams import SubscribeParams
from jackin_memd.wire.vocab import Role

__all__ = ["Client", "Subscription"]


class Client:
    """Calls the daemon on `path`, the socket that `find_socket()` names if left out.

    `timeout_s` bounds each call as a whole, with the connecting that it needs.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        role: Role = Role.OPERATOR,
        build: str = BUILD,
    ) -> None:
        chosen = find_socket() if path is None else Path(path)
        self.settings = Settings(path=chosen, timeout_s=timeout_s, role=role, build=build)
        self._link: Link | None = None

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def hello(self) -> HelloResult | None:
        """What the daemon said of itself and of this connection; None while there is
        no connection, and where the daemon speaks another protocol version."""
        return self._link.session.hello if self._link else None

    def connect(self) -> None:
        """Connect and say hello now. Raises MemdError, but not for another protocol
        version: calls that are answered whatever the version still work."""
        self._ready("hello", self.settings.timeout_s, self._deadline(None))

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def call(
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
        deadline = self._deadline(timeout_s)
        try:
            answer = self._exchange(known.name, params, timeout_s, deadline)
        except MemdError as error:
            if not (retry and may_repeat(known, error)):
                raise
            answer = self._exchange(known.name, params, timeout_s, deadline)
        return decode_result(self.settings.path, known, answer)

    def call_raw(self, method: str, params: Raw, *, timeout_s: float | None = None) -> Raw:
        """Call a method that need not be in our table, JSON in and JSON out."""
        answer = self._exchange(method, params, timeout_s, self._deadline(timeout_s))
        if answer.error is not None:
            raise answer.error
        return answer.result

    def pipeline(
        self, calls: Iterable[tuple[str | Method, Any]], *, timeout_s: float | None = None
    ) -> list[Any]:
        """Send many calls at once and gather their results in order; a call that the
        daemon refused has its MemdError in the result's place. One time for all.

        Raises MemdError where the connection fails: then any of them may be done.
        """
        chosen = [(find_method(method), params) for method, params in calls]
        if not chosen:
            return []
        answers = self._exchange_all(chosen, timeout_s)
        return [self._outcome(m, a) for (m, _), a in zip(chosen, answers, strict=True)]

    def subscribe(
        self,
        params: SubscribeParams,
        *,
        method: str | Method = "status.subscribe",
        reconnect_s: float | None = None,
        on_link: OnLink = ignore_link,
    ) -> Subscription:
        """Follow a table on a connection of its own, from now on when this returns.

        `reconnect_s` is for how long a lost connection is tried again: for ever if
        None, not at all if 0. Raises MemdError where the first attempt fails.
        """
        return Subscription(
            self.settings, find_method(method), params, reconnect_s=reconnect_s, on_link=on_link
        )

    # -- helpers --------------------------------------------------------------

    def _deadline(self, timeout_s: float | None) -> float:
        return monotonic() + (self.settings.timeout_s if timeout_s is None else timeout_s)

    def _timed_out(self, method: str, timeout_s: float | None) -> MemdError:
        given = self.settings.timeout_s if timeout_s is None else timeout_s
        return failures.timed_out(method, given)

    def _ready(self, method: str, timeout_s: float | None, deadline: float) -> Link:
        link = self._link
        if link is None or link.session.over is not None:
            self.close()
            try:
                link = self._link = Link(self.settings, deadline)
            except TimeoutError:
                raise self._timed_out(method, timeout_s) from None
        return link

    def _exchange(
        self, method: str, params: Any, timeout_s: float | None, deadline: float
    ) -> Answer:
        link = self._ready(method, timeout_s, deadline)
        id_, frame = link.session.begin(method, params)
        try:
            return link.exchange(id_, frame, deadline)
        except TimeoutError:
            raise self._timed_out(method, timeout_s) from None

    def _exchange_all(
        self, calls: Sequence[tuple[Method, Any]], timeout_s: float | None
    ) -> list[Answer]:
        label, deadline = f"a pipeline of {len(calls)} calls", self._deadline(timeout_s)
        link = self._ready(label, timeout_s, deadline)
        begun = [link.session.begin(method.name, params) for method, params in calls]
        ids, frames = [id_ for id_, _ in begun], b"".join(frame for _, frame in begun)
        try:
            return link.exchange_all(ids, frames, deadline)
        except TimeoutError:
            raise self._timed_out(label, timeout_s) from None

    def _outcome(self, method: Method, answer: Answer) -> Any:
        try:
            return decode_result(self.settings.path, method, answer)
        except MemdError as error:
            return error

"""Pending: an answer that comes later, on the event loop, without a task to wait for it.

A write is acknowledged from the loop callback that ends its group commit.
Spawning a task for each request instead costs a quarter of the throughput
(docs/adr/0003-writer-model.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import trio

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """Settled once, with a value or an error, and taken once.

    Not thread-safe: everything happens on the event loop's thread.
    """

    __slots__ = ("_callback", "_outcome", "_settled")

    def __init__(self) -> None:
        self._settled = False
        self._outcome: T | BaseException | None = None
        self._callback: Callable[[T | BaseException], None] | None = None

    def settle(self, outcome: T | BaseException) -> None:
        """Give the value, or the error as an exception instance."""
        assert not self._settled, "settled twice"
        self._settled = True
        if self._callback is not None:
            self._callback(outcome)
        else:
            self._outcome = outcome

    def then(self, callback: Callable[[T | BaseException], None]) -> None:
        """Call back with the outcome, at once where it is there already."""
        assert self._callback is None, "taken twice"
        self._callback = callback
        if self._settled:
            callback(cast("T | BaseException", self._outcome))

    def map(self, change: Callable[[T], U]) -> Pending[U]:
        """The same, with the value changed; what `change` raises becomes the error."""
        mapped: Pending[U] = Pending()

        def pass_on(outcome: T | BaseException) -> None:
            if isinstance(outcome, BaseException):
                mapped.settle(outcome)
                return
            try:
                changed = change(outcome)
            except Exception as error:  # noqa: BLE001 - handed on to whoever takes it
                mapped.settle(error)
            else:
                mapped.settle(changed)

        self.then(pass_on)
        return mapped

    async def wait(self) -> T:
        """The value. A cancelled wait leaves the work going; its outcome is dropped."""
        arrived = trio.Event()
        outcome: T | BaseException | None = None

        def keep(value: T | BaseException) -> None:
            nonlocal outcome
            outcome = value
            arrived.set()

        self.then(keep)
        await arrived.wait()
        if isinstance(outcome, BaseException):
            raise outcome
        return cast("T", outcome)

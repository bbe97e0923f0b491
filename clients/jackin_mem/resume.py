"""What a subscriber has seen, and how it goes on after a lost connection. Pure.

Each row reaches the subscriber once: a cursor is noted when its event is
handed out, and a new subscription begins exactly at the noted cursors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from jackin_mem.session import Session, StreamEvent
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.streams import EndEvent, SubscribeParams, SubscribeResult

#: Seconds between attempts: quick enough for a restart, slow enough for a long stop.
FIRST_DELAY_S, MAX_DELAY_S = 0.05, 2.0

OnLink = Callable[[MemdError | None], None]
"""Called with the error when the connection is lost, with None when it is back."""


def ignore_link(_: MemdError | None) -> None:
    """The `OnLink` of a caller who does not want to know."""


def delays() -> Iterator[float]:
    """Seconds to wait after each failed attempt, without end."""
    delay = FIRST_DELAY_S
    while True:
        yield delay
        delay = min(delay * 2, MAX_DELAY_S)


class Resume:
    """The place of one subscriber in every instance that it follows."""

    def __init__(self, params: SubscribeParams) -> None:
        self._params = params
        self._subscription: str | None = None
        self.cursors: dict[str, str] = dict(params.after or {})
        """Container name to the cursor of what was last handed out."""
        self.ended = False
        """Whether the daemon said that nothing more comes."""

    def params(self) -> SubscribeParams:
        """What to subscribe with: as asked the first time, from the cursors after that."""
        if self._subscription is None:
            return self._params
        return msgspec.structs.replace(self._params, after=dict(self.cursors))

    def started(self, result: SubscribeResult) -> None:
        """Take the answer to a subscription; it tells where untouched instances begin."""
        self._subscription = result.subscription
        self.cursors = result.cursors | self.cursors

    def take(self, session: Session) -> StreamEvent | None:
        """The next event for the subscriber, its cursor noted; None: receive more.

        The end that a stopping daemon announces is a lost connection like any
        other, so it goes to `session.over` and not to the subscriber.
        """
        while session.events:
            event = session.events.popleft()
            if event.subscription != self._subscription:
                continue
            if not isinstance(event, EndEvent):
                self.cursors[event.instance] = event.cursor
            elif event.instance is None and event.code == ErrorCode.DAEMON_STOPPING.word:
                session.fail(MemdError(ErrorCode.DAEMON_STOPPING, event.message))
                continue
            elif event.instance is None:
                self.ended = True
            return event
        return None

"""What a subscriber was told, gathered from the wire."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.raw import Message, greeted


class Follower:
    """A subscriber that keeps everything it ever got; may leave and come back."""

    def __init__(self, socket: Path, **params: Any) -> None:
        """Subscribed once it exists."""
        self._socket = socket
        self._params = params
        self.ids: dict[str, list[int]] = defaultdict(list)
        """Of the rows, by instance, in the order they came."""
        self.words: dict[str, list[str]] = defaultdict(list)
        self.gaps: list[Message] = []
        self.ends: list[Message] = []
        self.joined: list[str] = []
        """Instances, each time that one joined without rows."""
        self.cursors: dict[str, str] = {}
        self._connect(params)

    def _connect(self, params: dict[str, Any]) -> None:
        self.connection = greeted(self._socket)
        self.started: Message = self.connection.call("status.subscribe", **params)
        self.cursors = self.started["cursors"] | self.cursors
        early, self.connection.notifications = self.connection.notifications, []
        for message in early:
            self._take(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Disconnect without a word."""
        self.connection.close()

    def come_back(self) -> None:
        """Connect again and go on from the last cursors."""
        self._connect({n: v for n, v in self._params.items() if n != "start"}
                      | {"after": self.cursors})  # fmt: skip

    def take(self) -> Message:
        """Wait for the next event."""
        message: Message = self.connection.read()
        self._take(message)
        return message

    def until(self, enough: Callable[[Follower], bool]) -> Self:
        """Take events until it is so."""
        while not enough(self):
            self.take()
        return self

    def until_rows(self, instance: str, count: int) -> Self:
        return self.until(lambda me: len(me.ids[instance]) >= count)

    def _take(self, message: Message) -> None:
        params = message["params"]
        assert params["subscription"] == self.started["subscription"]
        instance = params["instance"]
        if message["method"] == "stream.end":
            self.ends.append(params)
            return
        self.cursors[instance] = params["cursor"]
        if message["method"] == "stream.gap":
            self.gaps.append(params)
            return
        if not params["rows"]:
            self.joined.append(instance)
        self.ids[instance] += [row["id"] for row in params["rows"]]
        self.words[instance] += [row["new_status"] for row in params["rows"]]
        if params["rows"]:
            assert params["cursor"].endswith(f".{params['rows'][-1]['id']}")

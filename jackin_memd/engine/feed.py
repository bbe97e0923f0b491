"""The news of one table: rows just committed, kept for those who follow it.

A follower holds a place (the id of the last row it has) and pulls. What is
recent comes from memory, what is older from the table, so a slow follower
costs nothing and loses nothing that the table still has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Raw

from jackin_memd.core.cursors import Epoch
from jackin_memd.engine.database import Database

#: What the memory of one feed may hold. A follower that is further behind reads
#: the table, which costs a millisecond; guesses that bound 1,000 feeds to 64 MiB.
RECENT_ROWS = 256
RECENT_BYTES = 64 * 1024

#: One notification's rows; small enough to share a connection with replies.
PAGE_ROWS = 500
PAGE_BYTES = 256 * 1024


class TablePage(msgspec.Struct, frozen=True):
    """Rows after a place, as the table has them."""

    oldest_id: int
    """The oldest row that the table still has."""
    newest_id: int
    rows: Sequence[tuple[int, Raw]]


class FeedPage(msgspec.Struct, frozen=True):
    rows: list[Raw]
    place: int
    """Where the follower is once it has the rows."""
    missed: int
    """Rows between its place and the first of these that are gone for good."""
    more: bool


FetchAfter = Callable[[int, int, int], Awaitable[TablePage]]
"""(place, most rows, most bytes) to a page of the table."""


class Feed:
    """Belongs to the event loop's thread."""

    def __init__(self, database: Database, fetch: FetchAfter) -> None:
        self.database = database
        self._fetch = fetch
        self._head: int | None = None
        self._recent: deque[tuple[int, Raw]] = deque()
        self._recent_bytes = 0
        self._followers: dict[object, Callable[[], None]] = {}

    @property
    def epoch(self) -> Epoch | None:
        return self.database.epoch

    def saw_head(self, row_id: int) -> None:
        """The table was read and has rows up to `row_id`."""
        self._head = max(row_id, self._head or 0)

    async def span(self) -> tuple[int, int]:
        """The oldest and the newest id of the table; (1, 0) where it has no row."""
        table = await self._fetch(2**63 - 1, 1, 1)
        self.saw_head(table.newest_id)
        return table.oldest_id, table.newest_id

    def follow(self, key: object, wake: Callable[[], None]) -> None:
        self._followers[key] = wake

    def unfollow(self, key: object) -> None:
        self._followers.pop(key, None)
        if not self._followers:
            self._recent.clear()
            self._recent_bytes = 0

    def publish(self, first_id: int, rows: Callable[[], Sequence[Raw]], count: int) -> None:
        """`count` rows from `first_id` on are durable. `rows` is asked only where
        somebody follows. Called in the order of the commits."""
        self.saw_head(first_id + count - 1)
        if not self._followers:
            return
        for row_id, row in enumerate(rows(), first_id):
            self._recent.append((row_id, row))
            self._recent_bytes += len(bytes(row))
        while len(self._recent) > RECENT_ROWS or self._recent_bytes > RECENT_BYTES:
            _, dropped = self._recent.popleft()
            self._recent_bytes -= len(bytes(dropped))
        for wake in self._followers.values():
            wake()

    async def after(self, place: int) -> FeedPage | None:
        """The next rows for a follower; None where it has all."""
        if self._head is not None and place >= self._head:
            return None
        if self._recent and self._recent[0][0] <= place + 1:
            return self._page_of_recent(place)
        table = await self._fetch(place, PAGE_ROWS, PAGE_BYTES)
        if not table.rows:
            return None
        last = table.rows[-1][0]
        return FeedPage(
            rows=[row for _, row in table.rows],
            place=last,
            missed=table.rows[0][0] - place - 1,
            more=last < table.newest_id,
        )

    def _page_of_recent(self, place: int) -> FeedPage:
        skip = place + 1 - self._recent[0][0]
        rows: list[Raw] = []
        size = 0
        last = place
        for index in range(skip, len(self._recent)):
            row_id, row = self._recent[index]
            rows.append(row)
            last = row_id
            size += len(bytes(row))
            if len(rows) == PAGE_ROWS or size > PAGE_BYTES:
                break
        return FeedPage(rows=rows, place=last, missed=0, more=last < self._recent[-1][0])

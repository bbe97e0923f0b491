"""The news of a table: each follower gets every row once and in order, or is told
exactly how many it can't get any more."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import Raw

from jackin_memd.engine import feed as feeds
from jackin_memd.engine.database import Database
from jackin_memd.engine.feed import Feed, FeedPage, TablePage
from tests.support.proves import proves

RECENT_ROWS, RECENT_BYTES, PAGE_ROWS, PAGE_BYTES = 6, 60, 4, 40


class Table:
    """Rows by id. Rows leave at the old end only, and ids are never used again."""

    def __init__(self) -> None:
        self.oldest, self.newest = 1, 0

    def row(self, id_: int) -> Raw:
        return Raw(b"%d" % id_ + b" " * (id_ % 7 * 3))  # of different sizes

    async def fetch(self, place: int, limit: int, max_bytes: int) -> TablePage:
        """As the reader threads do it: some time passes before, and some after."""
        await _pause()
        rows: list[tuple[int, Raw]] = []
        size = 0
        for id_ in range(max(place + 1, self.oldest), self.newest + 1)[:limit]:
            rows.append((id_, self.row(id_)))
            size += len(bytes(self.row(id_)))
            if size > max_bytes:
                break
        page = TablePage(oldest_id=self.oldest, newest_id=self.newest, rows=rows)
        await _pause()
        return page


class _pause:  # noqa: N801 - awaited like a function
    def __await__(self) -> Generator[None, None, None]:
        yield


class Follower:
    """Reads when it is due, as a subscription does: one page at a time."""

    def __init__(self, feed: Feed, place: int) -> None:
        self.feed = feed
        self.place = place
        self.due = False
        self.got: list[int] = []
        self.gone: list[int] = []
        """Ids that it was told it can't get."""
        self.reading: Coroutine[Any, Any, FeedPage | None] | None = None

    def wake(self) -> None:
        self.due = True

    def step(self) -> None:
        """Begin to read, or go on with what was begun."""
        if self.reading is None:
            if not self.due:
                return
            self.due = False
            self.reading = self.feed.after(self.place)
        try:
            self.reading.send(None)
        except StopIteration as finished:
            self.reading = None
            self.take(finished.value)

    def take(self, page: FeedPage | None) -> None:
        if page is None:
            return
        first = self.place + page.missed + 1
        self.gone += range(self.place + 1, first)
        ids = [int(bytes(row)) for row in page.rows]
        assert ids == list(range(first, first + len(ids))), "in order, and none left out"
        assert page.place == (ids[-1] if ids else self.place)
        assert len(ids) <= PAGE_ROWS
        assert sum(len(bytes(row)) for row in page.rows[:-1]) <= PAGE_BYTES
        self.got += ids
        self.place = page.place
        self.due |= page.more

    def finish(self) -> None:
        while self.due or self.reading is not None:
            self.step()


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run to its end, with nothing in between."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


def new_feed(fetch: Callable[[int, int, int], Any]) -> Feed:
    database: Any = None  # the feed asks it for its epoch alone
    handle: Database = database
    return Feed(handle, fetch)


class FeedMachine(RuleBasedStateMachine):
    """Commits, publishes, trims and reads in any order, reads interrupted anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name in ("RECENT_ROWS", "RECENT_BYTES", "PAGE_ROWS", "PAGE_BYTES"):
            self.patch.setattr(feeds, name, globals()[name])
        self.table = Table()
        self.feed = new_feed(self.table.fetch)
        self.unpublished: list[tuple[int, int]] = []
        self.followers: list[Follower] = []
        self.away: list[Follower] = []

    def teardown(self) -> None:
        while self.unpublished:
            self.publish()
        for follower in self.followers:
            follower.finish()
            assert follower.place == self.table.newest, "nobody waits for a row that is there"
        for follower in self.away:
            if follower.reading is not None:
                follower.reading.close()
        self.patch.undo()

    @rule(count=st.integers(1, 9))
    def commit(self, count: int) -> None:
        self.unpublished.append((self.table.newest + 1, count))
        self.table.newest += count

    @precondition(lambda self: self.unpublished)
    @rule()
    def publish(self) -> None:
        first, count = self.unpublished.pop(0)
        ids = range(first, first + count)
        self.feed.publish(first, lambda: [self.table.row(id_) for id_ in ids], count)

    @rule(keep=st.integers(1, 12))
    def trim(self, keep: int) -> None:
        self.table.oldest = max(self.table.oldest, self.table.newest - keep + 1)

    @rule(from_oldest=st.booleans())
    def join(self, from_oldest: bool) -> None:
        follower = Follower(self.feed, 0)
        self.feed.follow(follower, follower.wake)
        oldest, newest = finished(self.feed.span())
        assert (oldest, newest) == (self.table.oldest, self.table.newest)
        follower.place = oldest - 1 if from_oldest else newest
        follower.due = True
        self.followers.append(follower)

    @precondition(lambda self: self.followers)
    @rule(data=st.data(), steps=st.integers(1, 3))
    def read(self, data: st.DataObject, steps: int) -> None:
        follower = data.draw(st.sampled_from(self.followers))
        for _ in range(steps):
            follower.step()

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        follower = data.draw(st.sampled_from(self.followers))
        self.followers.remove(follower)
        self.away.append(follower)
        self.feed.unfollow(follower)

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        follower = data.draw(st.sampled_from(self.away))
        self.away.remove(follower)
        self.followers.append(follower)
        self.feed.follow(follower, follower.wake)
        follower.due = True

    @invariant()
    def every_row_is_got_once_or_known_to_be_gone(self) -> None:
        for follower in self.followers + self.away:
            seen = sorted(follower.got + follower.gone)
            assert len(seen) == len(set(seen))
            assert not seen or seen == list(range(seen[0], follower.place + 1))
            assert all(id_ < self.table.oldest for id_ in follower.gone)

    @invariant()
    def memory_is_bounded(self) -> None:
        recent = self.feed._recent
        assert len(recent) <= RECENT_ROWS
        assert sum(len(bytes(row)) for _, row in recent) == self.feed._recent_bytes <= RECENT_BYTES
        assert self.followers or not recent


@proves("stream-once-in-order", "stream-gap", "stream-slow-subscriber")
def test_any_interleaving_gives_each_row_once_in_order_or_an_exact_gap() -> None:
    effort = settings(max_examples=150, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(FeedMachine, settings=effort)


def test_a_row_is_made_for_followers_only() -> None:
    feed = new_feed(Table().fetch)

    def must_not_be_asked() -> list[Raw]:
        raise AssertionError

    feed.publish(1, must_not_be_asked, 3)
    assert finished(feed.after(3)) is None


def test_a_follower_within_what_is_in_memory_asks_no_table() -> None:
    async def must_not_be_asked(place: int, limit: int, max_bytes: int) -> TablePage:
        raise AssertionError

    feed, follower = new_feed(must_not_be_asked), object()
    feed.follow(follower, lambda: None)
    feed.publish(1, lambda: [Raw(b"1"), Raw(b"2")], 2)
    page = finished(feed.after(0))
    assert [bytes(row) for row in page.rows] == [b"1", b"2"]
    assert (page.missed, page.more) == (0, False)
    assert finished(feed.after(2)) is None


def test_who_left_is_not_woken() -> None:
    feed, woken = new_feed(Table().fetch), []
    for name in ("stays", "leaves"):
        feed.follow(name, lambda name=name: woken.append(name))  # type: ignore[misc]
    feed.unfollow("leaves")
    feed.unfollow("was never there")
    feed.publish(1, lambda: [Raw(b"1")], 1)
    assert woken == ["stays"]

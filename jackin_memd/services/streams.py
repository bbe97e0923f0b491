"""Subscriptions to a table, for one instance, several, or all.

One implementation for every table: a `Stream` knows how to read rows after a
place, the rest is the same. A subscription pulls from the feeds at the pace
of its connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import trio

from jackin_memd.core.cursors import Epoch, is_cursor, make_cursor, place_in
from jackin_memd.engine.feed import Feed, FeedPage, TablePage
from jackin_memd.services.context import Session
from jackin_memd.services.instance_table import Entry, InstanceTable
from jackin_memd.wire import streams as wire
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.streams import (
    CancelParams,
    CancelResult,
    EndEvent,
    GapEvent,
    RowsEvent,
    Start,
    SubscribeParams,
    SubscribeResult,
)
from jackin_memd.wire.vocab import Channel, Container

#: After a read that failed for a reason that may pass, such as a disk's.
RETRY_S = 1.0

Fetch = Callable[[Entry, int, int, int], Awaitable[TablePage]]


class Place(msgspec.Struct):
    """Where a subscription stands in one instance's table."""

    epoch: Epoch
    row_id: int


class Stream:
    """The feeds of one table, over all instances, and who is subscribed."""

    def __init__(self, name: str, table: InstanceTable, fetch: Fetch) -> None:
        self.name = name
        self._table = table
        self._fetch = fetch
        self._feeds: dict[Container, Feed] = {}
        self._subscriptions: set[Subscription] = set()
        table.add_listener(self)

    def of(self, entry: Entry) -> Feed:
        """The feed of one instance, made when it is first asked for."""
        feed = self._feeds.get(entry.container)
        if feed is None or feed.database is not entry.database:
            feed = Feed(
                entry.database, lambda place, rows, size: self._read(entry, place, rows, size)
            )
            self._feeds[entry.container] = feed
        return feed

    def has(self, container: Container, feed: Feed) -> bool:
        """Whether the feed is still the instance's."""
        return self._feeds.get(container) is feed

    async def _read(self, entry: Entry, place: int, rows: int, size: int) -> TablePage:
        with self._table.watched(entry):
            return await self._fetch(entry, place, rows, size)

    @property
    def subscription_count(self) -> int:
        return len(self._subscriptions)

    async def subscribe(self, params: SubscribeParams, session: Session) -> SubscribeResult:
        """{name}.subscribe"""
        entries, follows_all = self._chosen(params, session)
        after = self._resume_points(params)
        subscription = Subscription(self, session, follows_all, after, params.start)
        self._subscriptions.add(subscription)  # from here on, instances loaded later join
        try:
            for entry in entries:
                if follows_all:
                    await subscription.try_join(entry)
                else:
                    await subscription.join(entry)
            id_ = session.start_subscription(subscription.run)
        except BaseException:
            self.dropped(subscription)
            raise
        return SubscribeResult(subscription=id_, cursors=subscription.cursors())

    def _chosen(self, params: SubscribeParams, session: Session) -> tuple[list[Entry], bool]:
        principal = session.principal
        if params.instances is not None:
            return [self._table.serving(name, principal) for name in params.instances], False
        if principal.channel is Channel.CAPSULE:
            return [self._table.serving(None, principal)], False
        return self._table.all_serving(), True

    def _resume_points(self, params: SubscribeParams) -> dict[str, str] | None:
        for name, cursor in (params.after or {}).items():
            if not is_cursor(cursor):
                raise MemdError(
                    ErrorCode.CURSOR_INVALID,
                    "the cursor is not one that this daemon made",
                    hint="pass cursors as they came, or leave `after` out",
                    field=f"after.{name}"[:100],
                )
        return params.after

    def dropped(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        for feed in self._feeds.values():
            feed.unfollow(subscription)

    # -- news of instances ---------------------------------------------------

    async def instance_served(self, entry: Entry) -> None:
        for subscription in list(self._subscriptions):
            if subscription.wants(entry):
                await subscription.try_join(entry)

    def instance_gone(self, entry: Entry, code: str, message: str) -> None:
        self._feeds.pop(entry.container, None)
        for subscription in self._subscriptions:
            subscription.leave(entry.container, code, message)


class Subscription:
    """One subscriber's places, and what it is still owed."""

    def __init__(
        self,
        stream: Stream,
        session: Session,
        follows_all: bool,
        after: dict[str, str] | None,
        start: Start,
    ) -> None:
        self._stream = stream
        self._session = session
        self._follows_all = follows_all
        self._after = after
        self._start = start
        self._places: dict[Container, Place] = {}
        self._feeds: dict[Container, Feed] = {}
        self._due: dict[Container, None] = {}
        self._notices: list[Callable[[str], tuple[str, msgspec.Struct]]] = []
        self._wake = trio.Event()

    def wants(self, entry: Entry) -> bool:
        return self._follows_all or entry.container in self._places

    def cursors(self) -> dict[str, str]:
        return {
            container: make_cursor(place.epoch, place.row_id)
            for container, place in self._places.items()
        }

    async def join(self, entry: Entry) -> None:
        """Follow an instance: from `after` where it is named there, from its oldest row
        where `after` names only others, else from `start`; or from where this
        subscription stood when the instance was served before. Raises MemdError."""
        container = entry.container
        feed = self._stream.of(entry)
        # Following begins before the head is read: a row committed in between is
        # then due, and the place says whether it is new.
        feed.follow(self, lambda: self._mark_due(container))
        oldest, head = await feed.span()
        if self._feeds.get(container) is feed:  # it has joined, and may have moved on
            return
        if not (entry.serving and self._stream.has(entry.container, feed)):
            feed.unfollow(self)  # it went out of service meanwhile
            self._end(container, ErrorCode.INSTANCE_NOT_LOADED.word, f"{container} is not served")
            return
        epoch = feed.epoch
        assert epoch is not None
        cursor = self._cursor_of(container)
        from_now = self._after is None and self._start is Start.NOW
        place = Place(epoch, head if from_now else oldest - 1)
        if cursor is not None:
            row_id = place_in(cursor, epoch, head)
            if row_id is None:
                place = Place(epoch, oldest - 1)
                reason = "the database was made anew or put back from a backup; it starts again"
                self._tell(lambda id_: _gap(id_, container, place, None, reason))
            else:
                place = Place(epoch, row_id)
        self._places[container] = place
        self._feeds[container] = feed
        if place.row_id == head and cursor is None:
            self._tell(lambda id_: _rows(id_, container, place, []))
        # Also at the head: a row committed since it was read found nobody joined yet.
        self._mark_due(container)

    async def try_join(self, entry: Entry) -> None:
        """`join`; an instance that can't be read ends for this subscription, others go on."""
        try:
            await self.join(entry)
        except MemdError as error:
            self._end(entry.container, error.code.word, error.message)

    def _cursor_of(self, container: Container) -> str | None:
        stood = self._places.get(container)
        if stood is not None:
            return make_cursor(stood.epoch, stood.row_id)
        return self._after.get(container) if self._after is not None else None

    def leave(self, container: Container, code: str, message: str) -> None:
        feed = self._feeds.pop(container, None)
        if feed is None:
            return
        feed.unfollow(self)
        self._due.pop(container, None)
        self._end(container, code, message)

    def _end(self, container: Container, code: str, message: str) -> None:
        self._tell(lambda id_: (wire.END, _end(id_, container, code, message)))

    def _mark_due(self, container: Container) -> None:
        self._due[container] = None
        self._wake.set()

    def _tell(self, notice: Callable[[str], tuple[str, msgspec.Struct]]) -> None:
        self._notices.append(notice)
        self._wake.set()

    async def run(self, id_: str) -> None:
        """Deliver until cancelled, one page of one instance at a time, in turns."""
        try:
            while True:
                while self._notices:
                    await self._session.notify(*self._notices.pop(0)(id_))
                while self._due and not self._notices:
                    await self._deliver_one(id_)
                if not self._due and not self._notices:
                    self._wake = trio.Event()
                    await self._wake.wait()
        finally:
            self._stream.dropped(self)

    async def _deliver_one(self, id_: str) -> None:
        container = next(iter(self._due))
        del self._due[container]
        feed, place = self._feeds.get(container), self._places.get(container)
        if feed is None or place is None:
            return
        try:
            page = await feed.after(place.row_id)
        except MemdError:
            if self._feeds.get(container) is feed:  # in service still: the fault may pass
                self._due[container] = None
                await trio.sleep(RETRY_S)
            return
        if page is None or self._feeds.get(container) is not feed:
            return
        await self._deliver(id_, container, place, page)
        if page.more:
            self._due[container] = None

    async def _deliver(self, id_: str, container: Container, place: Place, page: FeedPage) -> None:
        # The place moves before the frames are queued: what is queued is delivered once
        # or the connection is gone, and then the client's own cursor counts.
        skipped = Place(place.epoch, place.row_id + page.missed)
        place.row_id = page.place
        rows = _rows(id_, container, place, page.rows)
        if page.missed:
            reason = "the rows left the table's rolling window before they were read"
            await self._session.notify(*_gap(id_, container, skipped, page.missed, reason))
        if page.rows:
            await self._session.notify(*rows)


def cancel(params: CancelParams, session: Session) -> CancelResult:
    """subscription.cancel"""
    if not session.cancel_subscription(params.subscription):
        raise MemdError(
            ErrorCode.SUBSCRIPTION_NOT_FOUND,
            "this connection has no such subscription",
            hint="subscriptions end with their connection",
            field="subscription",
        )
    return CancelResult(cancelled=True)


def _rows(
    id_: str, container: Container, place: Place, rows: list[msgspec.Raw]
) -> tuple[str, msgspec.Struct]:
    cursor = make_cursor(place.epoch, place.row_id)
    return wire.ROWS, RowsEvent(subscription=id_, instance=container, cursor=cursor, rows=rows)


def _gap(
    id_: str, container: Container, place: Place, missed: int | None, reason: str
) -> tuple[str, msgspec.Struct]:
    cursor = make_cursor(place.epoch, place.row_id)
    return wire.GAP, GapEvent(
        subscription=id_, instance=container, missed=missed, cursor=cursor, reason=reason
    )


def _end(id_: str, container: Container, code: str, message: str) -> EndEvent:
    return EndEvent(subscription=id_, instance=container, code=code, message=message)

"""One database: opened at its first use, one writer at a time, readers beside it.

Writes queue here. The queue is a strand on the shared writer threads: at most
one thread works on it at a time, takes what has arrived, commits it as a
group, and goes to the back of the line for the next, so that one busy
database can't starve the others.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
import trio

from jackin_memd.core.cursors import Epoch
from jackin_memd.engine.group import Outcome, Write, commit_group
from jackin_memd.engine.pending import Pending
from jackin_memd.engine.stats import Stats
from jackin_memd.engine.threads import WorkerThreads
from jackin_memd.storage import connection as connections
from jackin_memd.storage.connection import FileIdentity, Sync
from jackin_memd.storage.faults import translate
from jackin_memd.storage.schema import Schema, prepare
from jackin_memd.wire.errors import ErrorCode, MemdError

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Writes in one commit. Bounds how long the last one waits for the first.
MAX_GROUP = 512

#: Reading connections kept open for each database; more are opened when needed.
KEPT_READERS = 1


class Database:
    """The handle that services hold. Its methods belong to the event loop's thread."""

    def __init__(
        self,
        path: Path,
        schema: Schema,
        sync: Sync,
        *,
        what: str,
        writers: WorkerThreads,
        readers: WorkerThreads,
        stats: Stats,
        owned: Callable[[], None],
        check_folder: Callable[[Path], None],
        opening: Callable[[], None],
    ) -> None:
        """`what` names the file in messages; `owned` raises where this daemon no
        longer holds its home; `check_folder` where the folder can't hold a database;
        `opening` is told, on the event loop, before the file is opened.
        A file is created by `load` alone."""
        self.path = path
        self.what = what
        self.last_used = trio.current_time()
        self.epoch: Epoch | None = None
        """Which database was loaded; a file with another one is refused."""
        self._loading = False
        self._last_file: FileIdentity | None = None
        """What was open before, so that a file exchanged meanwhile is noticed."""
        self._schema = schema
        self._sync = sync
        self._writers = writers
        self._reader_threads = readers
        self._stats = stats
        self._owned = owned
        self._check_folder = check_folder
        self._opening = opening
        self._connection: apsw.Connection | None = None
        self._identity: FileIdentity | None = None
        self._idle_readers: list[apsw.Connection] = []
        self._queue: deque[_Queued] = deque()
        self._scheduled = False
        self._reading = 0
        # One query at a time, so that a busy instance can't take all reader threads.
        self._turn = trio.Semaphore(1)

    # -- event loop side ---------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def is_idle(self) -> bool:
        return not self._scheduled and not self._queue and not self._reading

    @property
    def depth(self) -> int:
        return len(self._queue)

    def write(self, change: Write[T]) -> Pending[T]:
        """Queue a change; it is settled once it is durable, or failed."""
        pending: Pending[T] = Pending()
        self._queue.append(_Queued(change, pending, trio.current_time()))
        self._schedule()
        return pending

    async def load(self) -> Epoch:
        """Open what is at the path, creating or migrating as needed, and accept it
        as the database that is meant from now on. Raises MemdError."""
        if not await self._is_open_and_in_place():
            self._loading = True
            try:
                await self.write(_Nothing()).wait()
            finally:
                self._loading = False
        assert self.epoch is not None
        return self.epoch

    async def _is_open_and_in_place(self) -> bool:
        if not self.is_open:
            return False
        try:
            await self.write(_Nothing()).wait()
        except MemdError as error:
            if error.code is not ErrorCode.DATABASE_REPLACED:
                raise
            return False  # the writer has let go of it
        return True

    async def epoch_known(self) -> Epoch:
        """The epoch, from the file where it was not opened yet."""
        if self.epoch is None:
            await self.write(_Nothing()).wait()
        assert self.epoch is not None
        return self.epoch

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query on a reading connection, on a reader thread."""
        self._reading += 1
        try:
            if not self.is_open:
                await self.write(_Nothing()).wait()  # a reader can't migrate or recover
            async with self._turn:
                self.last_used = trio.current_time()
                pending: Pending[T] = Pending()
                self._reader_threads.submit(lambda: self._run_query(query, pending))
                return await pending.wait()
        except MemdError as error:
            if error.code is ErrorCode.DATABASE_REPLACED:
                self.write(_Nothing())  # makes the writer notice too, and let go
            raise
        finally:
            self._reading -= 1

    async def close(self) -> None:
        """Finish what is queued, checkpoint and close. The next use opens again."""
        await self.close_soon().wait()

    def close_soon(self) -> Pending[None]:
        """Like `close`, without waiting."""
        return self.write(_Close())

    def _schedule(self) -> None:
        self.last_used = trio.current_time()
        if not self._scheduled:
            self._scheduled = True
            if self._connection is None:
                self._opening()
            self._writers.submit(self._run_strand)

    def _settle(self, group: list[_Queued], outcomes: list[Outcome], idle: bool) -> None:
        now = trio.current_time()
        stored = 0
        for queued, outcome in zip(group, outcomes, strict=True):
            rows = queued.write.row_count
            if rows and not isinstance(outcome, BaseException):
                stored += rows
                self._stats.acknowledged(now - queued.since)
            queued.pending.settle(outcome)
        if stored:
            self._stats.committed(stored)
        if idle:
            self._scheduled = False
            if self._queue:
                self._schedule()

    # -- writer thread side --------------------------------------------------

    def _run_strand(self) -> None:
        """Commit one group, then go to the back of the line or fall idle."""
        group = self._take_group()
        try:
            outcomes = self._commit([queued.write for queued in group])
        except Exception as error:  # noqa: BLE001 - the thread goes on; the callers are told
            outcomes = [error] * len(group)
        more = bool(self._queue)
        self._writers.call_soon(self._settle, group, outcomes, not more)
        if more:
            self._writers.submit(self._run_strand)

    def _take_group(self) -> list[_Queued]:
        """What has arrived, at least one; a closing is a group of its own."""
        group = [self._queue.popleft()]
        while self._queue and len(group) < MAX_GROUP:
            if isinstance(self._queue[0].write, _Close) or isinstance(group[0].write, _Close):
                break
            group.append(self._queue.popleft())
        return group

    def _commit(self, writes: list[Write[Any]]) -> list[Outcome]:
        if isinstance(writes[0], _Close):
            self._close_now()
            return [None]
        try:
            connection = self._opened()
            self._verify()  # here still nothing of the group is stored
            outcomes = commit_group(connection, writes, self._verify_place, self.what)
        except MemdError as error:
            outcomes = [error] * len(writes)
        except (apsw.Error, OSError) as error:
            outcomes = [translate(error, self.what)] * len(writes)
        if any(_is_replaced(outcome) for outcome in outcomes):
            self._abandon()
        return outcomes

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._owned()
            self._check_folder(self.path.parent)
            if self._last_file is not None and not self._loading:
                self._last_file.check()  # a copy put in its place has the same epoch
            connection = connections.open_writer(self.path, self._sync, create=self._loading)
            try:
                self.epoch = prepare(
                    connection,
                    self._schema,
                    what=self.what,
                    create=self._loading,
                    expected=None if self._loading else self.epoch,
                )
                self._identity = FileIdentity.of(self.path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._last_file = self._identity.without_wal()
        return self._connection

    def _verify(self) -> None:
        self._owned()
        self._verify_place()

    def _verify_place(self) -> None:
        """Before any acknowledgement: the file is still the one at its path."""
        assert self._identity is not None
        self._identity.check()

    def _close_now(self) -> None:
        self._close_readers()
        connection, self._connection, self._identity = self._connection, None, None
        if connection is None:
            return
        try:
            connections.close(connection)
        except apsw.Error as error:  # nobody's failure: the next opening finds all in the WAL
            log.warning("%s was closed with its WAL beside it: %s", self.what, type(error).__name__)

    def _abandon(self) -> None:
        """Let go of a file that is not at its path any more."""
        self._close_readers()
        connection, self._connection = self._connection, None
        identity, self._identity = self._identity, None
        if connection is not None and identity is not None:
            with suppress(apsw.Error):  # the callers are told that the file is gone, no more
                connections.abandon(connection, in_place=identity.in_place)

    def _close_readers(self) -> None:
        # A reader at work keeps the old list, so that it can't come back into the new one;
        # each connection is popped by one thread alone.
        drained, self._idle_readers = self._idle_readers, []
        with suppress(IndexError):
            while True:
                drained.pop().close()

    # -- reader thread side ----------------------------------------------------

    def _run_query(self, query: Callable[[apsw.Connection], T], pending: Pending[T]) -> None:
        outcome: Outcome
        try:
            outcome = self._query(query)
        except (apsw.Error, OSError) as error:
            outcome = translate(error, self.what)
        except Exception as error:  # noqa: BLE001 - it is the query's outcome
            outcome = error
        self._reader_threads.call_soon(pending.settle, outcome)

    def _query(self, query: Callable[[apsw.Connection], T]) -> T:
        identity, idle = self._identity, self._idle_readers
        if identity is not None:
            identity.check()
        try:
            reader = idle.pop()  # atomic, as is append
        except IndexError:
            reader = connections.open_reader(self.path)
        try:
            reader.execute("BEGIN")  # the query sees one state, whatever is committed meanwhile
            result = query(reader)
            reader.execute("COMMIT")
        except BaseException:
            reader.close()
            raise
        kept = identity is not None and idle is self._idle_readers  # not closed meanwhile
        if kept and len(idle) < KEPT_READERS:
            idle.append(reader)
        else:
            reader.close()
        return result


class _Queued:
    """A write, who waits for it, and since when (trio's clock)."""

    __slots__ = ("pending", "since", "write")

    def __init__(self, write: Write[Any], pending: Pending[Any], since: float) -> None:
        self.write = write
        self.pending = pending
        self.since = since


class _Nothing:
    """A write that only wants the database to be open."""

    row_count = 0

    def apply(self, connection: apsw.Connection) -> None:
        pass


class _Close:
    """Handled by the strand itself, in the order of the queue."""

    row_count = 0

    def apply(self, connection: apsw.Connection) -> None:
        raise NotImplementedError


def _is_replaced(outcome: Outcome) -> bool:
    return isinstance(outcome, MemdError) and outcome.code is ErrorCode.DATABASE_REPLACED

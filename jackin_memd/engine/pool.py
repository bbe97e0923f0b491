"""All databases of the daemon: shared threads, and closing what is idle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from jackin_memd.core.cursors import Epoch
from jackin_memd.engine.database import Database
from jackin_memd.engine.stats import Stats
from jackin_memd.engine.threads import WorkerThreads, worker_threads
from jackin_memd.storage.connection import Sync
from jackin_memd.storage.filesystem import MountGuard
from jackin_memd.storage.schema import Schema

#: Commits that may be at the disk at the same time, each of another database.
WRITER_THREADS = 4
READER_THREADS = 4


class DatabasePool:
    """Handles by name. A handle costs no file until it is used."""

    def __init__(
        self,
        writers: WorkerThreads,
        readers: WorkerThreads,
        *,
        owned: Callable[[], None],
        idle_close_s: float,
        max_open: int,
    ) -> None:
        self.stats = Stats()
        self._writers = writers
        self._readers = readers
        self._owned = owned
        self._mounts = MountGuard()
        self._idle_close_s = idle_close_s
        self._max_open = max_open
        self._databases: dict[str, Database] = {}

    def add(
        self, what: str, path: Path, schema: Schema, sync: Sync, epoch: Epoch | None = None
    ) -> Database:
        """The handle of `path`; `what` names it in messages, `epoch` is the one expected."""
        database = Database(
            path,
            schema,
            sync,
            what=what,
            writers=self._writers,
            readers=self._readers,
            stats=self.stats,
            owned=self._owned,
            check_folder=self._mounts.check,
            opening=self._make_room,
        )
        database.epoch = epoch
        self._databases[what] = database
        return database

    async def remove(self, database: Database) -> None:
        """Close for good, after what is queued."""
        self._databases.pop(database.what, None)
        await database.close()

    @property
    def open_count(self) -> int:
        return sum(database.is_open for database in self._databases.values())

    @property
    def write_queue_depth(self) -> int:
        return sum(database.depth for database in self._databases.values())

    @property
    def read_queue_depth(self) -> int:
        return self._readers.depth

    def _make_room(self) -> None:
        """Before one more is opened: close the least recently used where there are many."""
        opened = [database for database in self._databases.values() if database.is_open]
        if len(opened) >= self._max_open:
            idle = [database for database in opened if database.is_idle]
            if idle:
                min(idle, key=lambda database: database.last_used).close_soon()

    async def close_idle(self) -> None:
        """Runs for ever: close databases that were not used for a while."""
        while True:
            await trio.sleep(self._idle_close_s / 2)
            unused_since = trio.current_time() - self._idle_close_s
            for database in list(self._databases.values()):
                if database.is_open and database.is_idle and database.last_used <= unused_since:
                    await database.close()

    async def close_all(self) -> None:
        async with trio.open_nursery() as nursery:
            for database in self._databases.values():
                if database.is_open or not database.is_idle:
                    nursery.start_soon(database.close)


@asynccontextmanager
async def database_pool(
    *, owned: Callable[[], None], idle_close_s: float, max_open: int
) -> AsyncIterator[DatabasePool]:
    """The pool and its threads; leaving the block drains and closes every database."""
    async with (
        worker_threads("writer", WRITER_THREADS) as writers,
        worker_threads("reader", READER_THREADS) as readers,
    ):
        pool = DatabasePool(
            writers, readers, owned=owned, idle_close_s=idle_close_s, max_open=max_open
        )
        try:
            yield pool
        finally:
            with trio.CancelScope(shield=True):  # bounded by SQLite's busy timeout
                await pool.close_all()

"""A pool of databases under a test, and ways to see and to hold what its threads do."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any, ParamSpec

import apsw
import psutil
import trio
from trio.testing import MockClock

from jackin_memd.core.cursors import Epoch
from jackin_memd.engine.database import Database
from jackin_memd.engine.pool import DatabasePool, database_pool
from jackin_memd.storage.connection import Sync, open_reader
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA

P = ParamSpec("P")

#: No test waits for so long; it is where a lost wake-up becomes a failed test.
PATIENCE_S = 20.0


def in_trio(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """A plain test function, that runs the test on an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        async def limited() -> None:
            with trio.fail_after(PATIENCE_S):
                await test(*arguments, **options)

        trio.run(limited)

    return run


def on_a_set_clock(test: Callable[[MockClock], Awaitable[None]]) -> None:
    """Run on a clock that stands still until the test moves it."""
    clock = MockClock()
    trio.run(test, clock, clock=clock)


def nobody_else() -> None:
    """The daemon still holds its home."""


@asynccontextmanager
async def pooled(
    *,
    owned: Callable[[], None] = nobody_else,
    idle_close_s: float = 3600,
    max_open: int = 100,
) -> AsyncIterator[DatabasePool]:
    async with database_pool(owned=owned, idle_close_s=idle_close_s, max_open=max_open) as pool:
        yield pool


def add(
    pool: DatabasePool, path: Path, epoch: Epoch | None = None, *, sync: Sync = Sync.NORMAL
) -> Database:
    return pool.add(f"{path.parent.name}/{path.name}", path, INSTANCE_SCHEMA, sync, epoch)


@asynccontextmanager
async def loaded(path: Path, **options: Any) -> AsyncIterator[Database]:
    """One loaded database of a pool of its own."""
    async with pooled(**options) as pool:
        database = add(pool, path)
        await database.load()
        yield database


def is_open(database: Database) -> bool:
    """Asked anew each time: a type checker takes two looks at a property for one."""
    return database.is_open


def opening_of(database: Database) -> object:
    """Another one after each time that the database was opened."""
    assert database.is_open
    return database._connection


class Hold:
    """A write that stays on the writer thread until it is released."""

    row_count = 0

    def __init__(self) -> None:
        self._begun = Event()
        self._released = Event()

    def apply(self, connection: apsw.Connection) -> None:
        self.act(connection)
        self._begun.set()
        assert self._released.wait(PATIENCE_S)

    def act(self, connection: apsw.Connection) -> None:
        """What it does before it waits."""

    async def begun(self) -> None:
        await trio.to_thread.run_sync(self._begun.wait)

    def release(self) -> None:
        self._released.set()


def words(connection: apsw.Connection) -> list[str]:
    """The query that most tests ask."""
    found = connection.execute("SELECT new_status FROM status_log ORDER BY id")
    return [str(word) for (word,) in found]


def on_disk(path: Path) -> list[str]:
    """What another program sees."""
    reader = open_reader(path)
    try:
        return words(reader)
    finally:
        reader.close()


def open_files(folder: Path) -> list[str]:
    """Names of the files below the folder that this process has open."""
    opened = [Path(file.path) for file in psutil.Process().open_files()]
    return sorted(file.name for file in opened if file.is_relative_to(folder))

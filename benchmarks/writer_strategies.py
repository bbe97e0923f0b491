"""ADR 3: the ways a write can get from the event loop to the disk and back.

Each strategy opens databases and gives one async `write(row)` for each; the
await ends when the row is committed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import apsw
import apsw.aio
import trio

from benchmarks.group_commits import (
    CREATE,
    INSERT,
    Commit,
    Row,
    commit_executemany,
    commit_json,
    commit_savepoints,
    open_database,
)

Write = Callable[[Row], Awaitable[None]]
Strategy = Callable[[Sequence[Path], str], AbstractAsyncContextManager[list[Write]]]

_Item = tuple[Row, trio.Event]

MAX_GROUP = 512
POOL_SIZE = 4

# -- the strategies -----------------------------------------------------------


@asynccontextmanager
async def on_the_loop(paths: Sequence[Path], synchronous: str) -> AsyncIterator[list[Write]]:
    async with AsyncExitStack() as stack:
        writes: list[Write] = []
        for path in paths:
            connection = open_database(path, synchronous)
            stack.callback(connection.close)

            async def write(row: Row, connection: apsw.Connection = connection) -> None:
                connection.execute(INSERT, row)
                await trio.lowlevel.checkpoint()

            writes.append(write)
        yield writes


@asynccontextmanager
async def hop_per_write(paths: Sequence[Path], synchronous: str) -> AsyncIterator[list[Write]]:
    """`trio.to_thread.run_sync` for each row, one at a time for each database."""
    async with AsyncExitStack() as stack:
        writes: list[Write] = []
        for path in paths:
            connection = open_database(path, synchronous)
            stack.callback(connection.close)
            one_at_a_time = trio.CapacityLimiter(1)

            async def write(
                row: Row,
                connection: apsw.Connection = connection,
                limiter: trio.CapacityLimiter = one_at_a_time,
            ) -> None:
                await trio.to_thread.run_sync(connection.execute, INSERT, row, limiter=limiter)

            writes.append(write)
        yield writes


class _Queue:
    """Rows that wait for a group commit, and the events of those who wait for them."""

    def __init__(self) -> None:
        self.waiting: deque[_Item] = deque()
        self.arrived = trio.Event()

    def take(self) -> list[_Item]:
        return [self.waiting.popleft() for _ in range(min(len(self.waiting), MAX_GROUP))]


def _settle(group: Sequence[_Item]) -> None:
    for _, done in group:
        done.set()


@asynccontextmanager
async def hop_per_group(
    paths: Sequence[Path], synchronous: str, *, commit: Commit
) -> AsyncIterator[list[Write]]:
    """A task for each database that takes what has arrived to a thread of trio's cache."""

    async def serve(queue: _Queue, connection: apsw.Connection) -> None:
        limiter = trio.CapacityLimiter(1)
        while True:
            if not queue.waiting:
                queue.arrived = trio.Event()
                await queue.arrived.wait()
            group = queue.take()
            rows = [row for row, _ in group]
            await trio.to_thread.run_sync(commit, connection, rows, limiter=limiter)
            _settle(group)

    async def write(row: Row, queue: _Queue) -> None:
        done = trio.Event()
        queue.waiting.append((row, done))
        queue.arrived.set()
        await done.wait()

    async with AsyncExitStack() as stack:
        connections = [open_database(path, synchronous) for path in paths]
        for connection in connections:
            stack.callback(connection.close)
        async with trio.open_nursery() as nursery:
            writes: list[Write] = []
            for connection in connections:
                queue = _Queue()
                nursery.start_soon(serve, queue, connection)
                writes.append(partial(write, queue=queue))
            yield writes
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def thread_per_database(
    paths: Sequence[Path], synchronous: str, *, commit: Commit
) -> AsyncIterator[list[Write]]:
    """A dedicated thread for each database that sleeps on a queue."""
    token = trio.lowlevel.current_trio_token()

    def serve(jobs: SimpleQueue[_Item | None], connection: apsw.Connection) -> None:
        while (item := jobs.get()) is not None:
            group = [item]
            while len(group) < MAX_GROUP and not jobs.empty():
                following = jobs.get()
                if following is None:
                    jobs.put(None)
                    break
                group.append(following)
            commit(connection, [row for row, _ in group])
            token.run_sync_soon(_settle, group)

    async def write(row: Row, jobs: SimpleQueue[_Item | None]) -> None:
        done = trio.Event()
        jobs.put((row, done))
        await done.wait()

    async with AsyncExitStack() as stack:
        writes: list[Write] = []
        for path in paths:
            connection = open_database(path, synchronous)
            jobs: SimpleQueue[_Item | None] = SimpleQueue()
            thread = threading.Thread(target=serve, args=(jobs, connection))
            thread.start()
            stack.callback(connection.close)
            stack.callback(thread.join)
            stack.callback(jobs.put, None)
            writes.append(partial(write, jobs=jobs))
        yield writes


class _Strand:
    """One database: rows wait here, and a thread of the pool commits them as a group."""

    def __init__(self, pool: _Pool, connection: apsw.Connection, commit: Commit) -> None:
        self._pool = pool
        self._connection = connection
        self._commit = commit
        self._queue = _Queue()
        self._scheduled = False

    async def write(self, row: Row) -> None:
        done = trio.Event()
        self._queue.waiting.append((row, done))
        if not self._scheduled:
            self._scheduled = True
            self._pool.jobs.put(self._run)
        await done.wait()

    def _run(self) -> None:
        """On a thread of the pool; then to the back of the line, or idle."""
        group = self._queue.take()
        self._commit(self._connection, [row for row, _ in group])
        more = bool(self._queue.waiting)
        self._pool.token.run_sync_soon(self._committed, group, more)
        if more:
            self._pool.jobs.put(self._run)

    def _committed(self, group: Sequence[_Item], more: bool) -> None:
        _settle(group)
        if not more:
            self._scheduled = bool(self._queue.waiting)
            if self._scheduled:
                self._pool.jobs.put(self._run)


class _Pool:
    """A few threads that run jobs in the order they were given."""

    def __init__(self) -> None:
        self.token = trio.lowlevel.current_trio_token()
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job()


@asynccontextmanager
async def strands_on_pool(
    paths: Sequence[Path], synchronous: str, *, commit: Commit, size: int = POOL_SIZE
) -> AsyncIterator[list[Write]]:
    """A few threads for all databases; at most one works on a database at a time."""
    pool = _Pool()
    async with AsyncExitStack() as stack:
        writes: list[Write] = []
        for path in paths:
            connection = open_database(path, synchronous)
            stack.callback(connection.close)
            writes.append(_Strand(pool, connection, commit).write)
        for _ in range(size):
            thread = threading.Thread(target=pool.work)
            thread.start()
            stack.callback(thread.join)
        for _ in range(size):
            stack.callback(pool.jobs.put, None)
        yield writes


@asynccontextmanager
async def apsw_async(
    paths: Sequence[Path], synchronous: str, *, commit: Commit | None
) -> AsyncIterator[list[Write]]:
    """APSW's own trio support: it starts a thread for each connection.

    With `commit`, rows are grouped by us and a group is one `async_run`.
    """

    async def write_alone(row: Row, connection: apsw.AsyncConnection) -> None:
        await connection.execute(INSERT, row)

    async def serve(queue: _Queue, connection: apsw.AsyncConnection) -> None:
        assert commit is not None
        while True:
            if not queue.waiting:
                queue.arrived = trio.Event()
                await queue.arrived.wait()
            group = queue.take()
            rows = [row for row, _ in group]
            await connection.async_run(commit, connection, rows)
            _settle(group)

    async def write_grouped(row: Row, queue: _Queue) -> None:
        done = trio.Event()
        queue.waiting.append((row, done))
        queue.arrived.set()
        await done.wait()

    async with AsyncExitStack() as stack:
        connections = [await apsw.Connection.as_async(str(path)) for path in paths]
        for connection in connections:
            stack.push_async_callback(connection.aclose)
            await (await connection.execute("PRAGMA journal_mode=WAL")).fetchall()
            await connection.execute(f"PRAGMA synchronous={synchronous}")
            await connection.execute(CREATE)
        # Inside, so that its cancellation does not reach the closing of the connections.
        async with trio.open_nursery() as nursery:
            writes: list[Write] = []
            for connection in connections:
                if commit is None:
                    writes.append(partial(write_alone, connection=connection))
                else:
                    queue = _Queue()
                    nursery.start_soon(serve, queue, connection)
                    writes.append(partial(write_grouped, queue=queue))
            yield writes
            nursery.cancel_scope.cancel()


STRATEGIES: dict[str, Strategy] = {
    "event loop, a commit each": on_the_loop,
    "`to_thread` hop, a commit each": hop_per_write,
    "`to_thread` hop, group, executemany": partial(hop_per_group, commit=commit_executemany),
    "APSW async, a commit each": partial(apsw_async, commit=None),
    "APSW async, group, executemany": partial(apsw_async, commit=commit_executemany),
    "own thread, group, savepoint a row": partial(thread_per_database, commit=commit_savepoints),
    "own thread, group, executemany": partial(thread_per_database, commit=commit_executemany),
    "own thread, group, json_each": partial(thread_per_database, commit=commit_json),
    "strand on pool, group, savepoint a row": partial(strands_on_pool, commit=commit_savepoints),
    "strand on pool, group, executemany": partial(strands_on_pool, commit=commit_executemany),
    "strand on pool, group, json_each": partial(strands_on_pool, commit=commit_json),
}

#: For many databases: how far a larger pool is from a thread for each database.
MANY: dict[str, Strategy] = {
    "`to_thread` hop, group, executemany": STRATEGIES["`to_thread` hop, group, executemany"],
    "APSW async, a commit each": STRATEGIES["APSW async, a commit each"],
    "own thread, group, executemany": STRATEGIES["own thread, group, executemany"],
    **{
        f"strand on a pool of {size}, group, executemany": partial(
            strands_on_pool, commit=commit_executemany, size=size
        )
        for size in (2, 4, 8, 16)
    },
}

"""The writer of one database: alone, in order, many writes in one commit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from jackin_memd.wire.errors import MemdError
from tests.engine.driving import (
    PATIENCE_S,
    Hold,
    add,
    in_trio,
    loaded,
    on_disk,
    pooled,
)
from tests.engine.writes import VIOLATING, Change, append, keyed
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


@in_trio
async def test_what_is_acknowledged_is_what_another_program_sees(path: Path) -> None:
    async with loaded(path) as database:
        for number in range(20):
            await database.write(append(str(number))).wait()
            assert on_disk(path) == [str(seen) for seen in range(number + 1)]


@in_trio
async def test_acknowledgements_come_in_the_order_of_the_calls(path: Path) -> None:
    order: list[int] = []
    ids: list[int] = []
    async with loaded(path) as database:
        writes = [append(str(n)) if n % 3 else keyed(str(n), str(n)) for n in range(1500)]
        for number, write in enumerate(writes):
            pending = database.write(write)

            def note(outcome: Any, number: int = number) -> None:
                order.append(number)
                ids.append(outcome)

            pending.then(note)
        await database.write(append("last")).wait()
    assert order == list(range(1500))
    assert ids == list(range(1, 1501))


@proves("store-single-writer")
@in_trio
async def test_never_are_two_threads_at_one_database(path: Path) -> None:
    at_work = threading.Lock()
    threads: set[int] = set()

    def probe(connection: apsw.Connection) -> None:
        assert at_work.acquire(blocking=False), "another thread is at it"
        threads.add(threading.get_ident())
        connection.execute("SELECT 1").fetchall()  # lets other threads run
        at_work.release()

    async with loaded(path) as database:
        for _ in range(200):
            pendings = [database.write(Change(probe)) for _ in range(5)]
            for pending in pendings:
                await pending.wait()
    assert threads


@in_trio
async def test_several_databases_commit_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(4)
    meet = Change(lambda _: together.wait(PATIENCE_S))
    async with pooled() as pool:
        databases = [add(pool, tmp_path / f"{number}.db") for number in range(4)]
        for database in databases:
            await database.load()
        for pending in [database.write(meet) for database in databases]:
            await pending.wait()


@proves("store-group-commit")
@in_trio
async def test_writes_that_arrive_during_a_commit_share_the_next_one(path: Path) -> None:
    async with pooled() as pool:
        database = add(pool, path)
        await database.load()
        commits = pool.stats.commits
        hold = Hold()
        held = database.write(hold)
        await hold.begun()
        waiting = [database.write(append(str(number))) for number in range(100)]
        assert database.depth == pool.write_queue_depth == 100
        hold.release()
        await held.wait()
        assert [await pending.wait() for pending in waiting] == list(range(1, 101))
        assert pool.stats.commits - commits == 1
        assert (database.depth, database.is_idle) == (0, True)


@in_trio
async def test_a_write_that_fails_is_told_to_its_caller_alone(path: Path) -> None:
    async with loaded(path) as database:
        pendings = [database.write(write) for write in (append("a"), VIOLATING, append("b"))]
        assert await pendings[0].wait() == 1
        with pytest.raises(MemdError):
            await pendings[1].wait()
        assert await pendings[2].wait() == 2
        assert on_disk(path) == ["a", "b"]


@in_trio
async def test_a_cancelled_caller_leaves_its_write_done_once(path: Path) -> None:
    async with loaded(path) as database:
        hold = Hold()
        held = database.write(hold)
        await hold.begun()
        with trio.CancelScope() as scope:
            scope.cancel()
            await database.write(append("abandoned")).wait()
        assert scope.cancelled_caught
        hold.release()
        await held.wait()
        assert await database.write(append("next")).wait() == 2
        assert on_disk(path) == ["abandoned", "next"]


@in_trio
async def test_the_statistics_count_what_was_stored_and_nothing_else(path: Path) -> None:
    async with pooled() as pool:
        database, stats = add(pool, path), pool.stats
        await database.load()
        assert (stats.commits, stats.rows, stats.latency().samples) == (0, 0, 0)
        await database.write(append("a", "b")).wait()
        with pytest.raises(MemdError):
            await database.write(VIOLATING).wait()
        await database.close()
        assert (stats.commits, stats.rows, stats.latency().samples) == (1, 2, 1)

"""All databases together: few open, none left behind, all closed at the end."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import apsw
import psutil
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from jackin_memd.engine.database import Database
from jackin_memd.engine.pool import READER_THREADS, WRITER_THREADS, DatabasePool
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.engine.driving import (
    Hold,
    add,
    in_trio,
    on_a_set_clock,
    on_disk,
    open_files,
    opening_of,
    pooled,
    words,
)
from tests.engine.writes import Change, append
from tests.storage.faulty_disk import faulty_disk
from tests.storage.files import make
from tests.support.proves import proves


async def loaded_in(pool: DatabasePool, folder: Path, *names: str) -> list[Database]:
    databases = []
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        databases.append(add(pool, folder / name / "jackin.db"))
        await databases[-1].load()
    return databases


async def settled() -> None:
    """Let callbacks of the threads arrive."""
    await trio.lowlevel.checkpoint()


async def until_closed(*databases: Database) -> None:
    while any(database.is_open for database in databases):
        await settled()


# -- idle ----------------------------------------------------------------------


@proves("store-lazy-open")
def test_a_database_that_is_not_used_is_closed_and_one_that_is_used_stays(tmp_path: Path) -> None:
    async def test(clock: MockClock) -> None:
        async with pooled(idle_close_s=60) as pool, trio.open_nursery() as nursery:
            used, unused = await loaded_in(pool, tmp_path, "used", "unused")
            opening = opening_of(used)
            nursery.start_soon(pool.close_idle)
            for _ in range(2):
                await trio.testing.wait_all_tasks_blocked()
                clock.jump(30)
                await trio.testing.wait_all_tasks_blocked()  # what is due is being closed
                await used.write(append("x")).wait()
            await until_closed(unused)
            assert opening_of(used) is opening
            assert pool.open_count == 1
            nursery.cancel_scope.cancel()

    on_a_set_clock(test)


def test_reading_is_use_too(tmp_path: Path) -> None:
    async def test(clock: MockClock) -> None:
        async with pooled(idle_close_s=60) as pool, trio.open_nursery() as nursery:
            read, unused = await loaded_in(pool, tmp_path, "read", "unused")
            opening = opening_of(read)
            nursery.start_soon(pool.close_idle)
            for _ in range(2):
                await trio.testing.wait_all_tasks_blocked()
                clock.jump(30)
                await trio.testing.wait_all_tasks_blocked()  # what is due is being closed
                await read.read(words)
            await until_closed(unused)
            assert opening_of(read) is opening
            nursery.cancel_scope.cancel()

    on_a_set_clock(test)


def test_a_write_that_takes_long_is_use_until_it_ends(tmp_path: Path) -> None:
    async def test(clock: MockClock) -> None:
        async with pooled(idle_close_s=60) as pool, trio.open_nursery() as nursery:
            busy, unused = await loaded_in(pool, tmp_path, "busy", "unused")
            opening = opening_of(busy)
            nursery.start_soon(pool.close_idle)
            hold = Hold()
            held = busy.write(hold)
            await hold.begun()
            await trio.testing.wait_all_tasks_blocked()
            clock.jump(120)
            await until_closed(unused)
            hold.release()
            await held.wait()
            await busy.write(append("x")).wait()
            assert opening_of(busy) is opening
            nursery.cancel_scope.cancel()

    on_a_set_clock(test)


@proves("store-others-go-on")
def test_a_disk_that_fails_at_an_idle_close_ends_nothing_else(tmp_path: Path) -> None:
    async def test(clock: MockClock) -> None:
        async with pooled(idle_close_s=60) as pool, trio.open_nursery() as nursery:
            bad, good = await loaded_in(pool, tmp_path, "bad", "good")
            nursery.start_soon(pool.close_idle)
            await trio.testing.wait_all_tasks_blocked()
            disk.fail_at(1, apsw.IOError, below=tmp_path / "bad")
            clock.jump(60)
            await until_closed(bad, good)
            assert disk.failed
            disk.mend()
            await good.write(append("x")).wait()
            await bad.write(append("y")).wait()
            nursery.cancel_scope.cancel()

    with faulty_disk() as disk:
        on_a_set_clock(test)
    assert on_disk(tmp_path / "bad" / "jackin.db") == ["y"]


# -- how many ------------------------------------------------------------------


def test_opening_one_more_closes_the_least_recently_used(tmp_path: Path) -> None:
    async def test(clock: MockClock) -> None:
        async with pooled(max_open=3) as pool:
            names = ("one", "two", "three")
            one, two, three = await loaded_in(pool, tmp_path, *names)
            for database in (two, three, one):
                clock.jump(1)
                await database.write(append("x")).wait()
            clock.jump(1)
            (four,) = await loaded_in(pool, tmp_path, "four")
            await until_closed(two)
            assert [database.is_open for database in (one, three, four)] == [True] * 3

    on_a_set_clock(test)


@in_trio
async def test_many_databases_in_turn_never_keep_more_open_than_allowed(tmp_path: Path) -> None:
    async with pooled(max_open=4) as pool:
        databases = await loaded_in(pool, tmp_path, *(str(number) for number in range(12)))
        for turn in range(3):
            for database in databases:
                await database.write(append(str(turn))).wait()
                assert pool.open_count <= 4 + 1  # the one that is closing
    for database in databases:
        assert on_disk(database.path) == ["0", "1", "2"]


@in_trio
async def test_a_database_at_work_is_not_closed_for_another(tmp_path: Path) -> None:
    async with pooled(max_open=1) as pool:
        (busy,) = await loaded_in(pool, tmp_path, "busy")
        hold = Hold()
        held = busy.write(hold)
        await hold.begun()
        await loaded_in(pool, tmp_path, "other")
        assert busy.is_open
        hold.release()
        await held.wait()


@proves("store-lazy-open")
@in_trio
async def test_a_thousand_handles_cost_no_thread_and_no_file(tmp_path: Path) -> None:
    async with pooled() as pool:
        gc.collect()  # what earlier tests left to it
        threads, files = threading.active_count(), psutil.Process().num_fds()
        for number in range(1000):
            add(pool, tmp_path / f"{number}.db")
        assert threading.active_count() == threads
        assert psutil.Process().num_fds() == files
        assert pool.open_count == 0


@in_trio
async def test_a_pool_has_its_few_threads_and_takes_them_with_it(tmp_path: Path) -> None:
    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith(("writer-", "reader-"))]

    async with pooled() as pool:
        await loaded_in(pool, tmp_path, *(str(number) for number in range(10)))
        assert len(ours()) == WRITER_THREADS + READER_THREADS
    assert ours() == []


# -- the end -------------------------------------------------------------------


@in_trio
async def test_leaving_drains_what_is_queued_and_closes_every_file(tmp_path: Path) -> None:
    async with pooled() as pool:
        databases = await loaded_in(pool, tmp_path, "a", "b", "c")
        await databases[1].close()
        for database in databases:
            for number in range(1200):  # more than one group
                database.write(append(str(number)))
    for database in databases:
        assert [file.name for file in database.path.parent.iterdir()] == ["jackin.db"]
        assert on_disk(database.path) == [str(number) for number in range(1200)]
    assert open_files(tmp_path) == []


@pytest.mark.parametrize("leave", ["cancelled", "raised"])
def test_leaving_by_force_drains_as_well(tmp_path: Path, leave: str) -> None:
    @in_trio
    async def test() -> None:
        with trio.CancelScope() as scope:
            async with pooled() as pool:
                (database,) = await loaded_in(pool, tmp_path, "a")
                for number in range(50):
                    database.write(append(str(number)))
                if leave == "raised":
                    raise ZeroDivisionError
                scope.cancel()
                await trio.lowlevel.checkpoint()

    if leave == "raised":
        with pytest.raises(ZeroDivisionError):
            test()
    else:
        test()
    assert len(on_disk(tmp_path / "a" / "jackin.db")) == 50


def test_a_database_that_can_not_be_closed_well_keeps_none_of_the_others_open(
    tmp_path: Path,
) -> None:
    @in_trio
    async def test() -> None:
        async with pooled() as pool:
            bad, *good = await loaded_in(pool, tmp_path, "bad", "b", "c")
            break_disk = Change(lambda _: disk.fail_at(3, apsw.IOError, below=tmp_path / "bad"))
            bad.write(break_disk)
            for database in good:
                for number in range(1200):
                    database.write(append(str(number)))
        assert disk.failed

    with faulty_disk() as disk:
        test()
        disk.mend()
    for name in ("b", "c"):
        assert [file.name for file in (tmp_path / name).iterdir()] == ["jackin.db"]
        assert len(on_disk(tmp_path / name / "jackin.db")) == 1200


@in_trio
async def test_a_removed_database_is_closed_after_what_was_queued(tmp_path: Path) -> None:
    async with pooled() as pool:
        (database,) = await loaded_in(pool, tmp_path, "a")
        database.write(append("last"))
        await pool.remove(database)
        assert not database.is_open
        assert on_disk(database.path) == ["last"]
        assert open_files(tmp_path) == []


@proves("store-others-go-on")
@in_trio
async def test_a_database_that_can_not_be_opened_is_no_ones_trouble_but_its_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "bad").mkdir()
    bad_path = tmp_path / "bad" / "jackin.db"
    make(bad_path)
    bad_path.write_bytes(b"garbage" * 1000)
    async with pooled() as pool:
        bad = add(pool, bad_path)
        (good,) = await loaded_in(pool, tmp_path, "good")
        for _ in range(6):
            with pytest.raises(MemdError) as refused:
                await bad.load()
            assert refused.value.code is ErrorCode.DATABASE_CORRUPT
        assert await good.write(append("x")).wait() == 1

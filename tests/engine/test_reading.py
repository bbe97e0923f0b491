"""Readers beside the writer: they wait for nobody, and see committed states only."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest
import trio
import trio.testing

from jackin_memd.engine.database import KEPT_READERS
from jackin_memd.engine.pool import READER_THREADS
from jackin_memd.storage import status_log
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.engine.driving import PATIENCE_S, Hold, add, in_trio, loaded, open_files, pooled, words
from tests.engine.writes import append
from tests.storage.files import make
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


class Unfinished(Hold):
    """Has inserted its row, and has not committed it."""

    def act(self, connection: apsw.Connection) -> None:
        append("unfinished").apply(connection)


@proves("store-readers-not-blocked")
@in_trio
async def test_a_reader_sees_what_is_committed_and_does_not_wait_for_the_rest(path: Path) -> None:
    async with loaded(path) as database:
        await database.write(append("before")).wait()
        hold = Unfinished()
        held = database.write(hold)
        await hold.begun()
        for _ in range(3):
            assert await database.read(words) == ["before"]
        hold.release()
        await held.wait()
        assert await database.read(words) == ["before", "unfinished"]


@in_trio
async def test_a_query_sees_one_state_though_a_write_is_committed_meanwhile(path: Path) -> None:
    asked, written = threading.Event(), threading.Event()

    def twice(connection: apsw.Connection) -> list[list[str]]:
        first = words(connection)
        asked.set()
        assert written.wait(PATIENCE_S)
        return [first, words(connection)]

    seen: list[list[str]] = []

    async with loaded(path) as database, trio.open_nursery() as nursery:

        async def read() -> None:
            seen.extend(await database.read(twice))

        nursery.start_soon(read)
        await trio.to_thread.run_sync(asked.wait)
        await database.write(append("meanwhile")).wait()
        written.set()
    assert seen == [[], []]


@in_trio
async def test_every_read_after_an_acknowledgement_sees_the_row(path: Path) -> None:
    async with loaded(path) as database:
        for number in range(1, 100):
            await database.write(append("x")).wait()
            assert len(await database.read(words)) == number


@in_trio
async def test_many_readers_at_once_keep_few_connections(path: Path) -> None:
    async with loaded(path) as database:
        await database.write(append("a")).wait()
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(database.read, words)
        assert open_files(path.parent).count("jackin.db") <= 1 + KEPT_READERS


@in_trio
async def test_a_page_that_stops_early_keeps_no_old_state(path: Path) -> None:
    async with loaded(path) as database:
        await database.write(append(*"abc")).wait()
        for newest in (3, 4, 5):
            page = await database.read(lambda c: status_log.page(c, None, 100, 1))
            assert [row.id for row in page] == [newest]
            await database.write(append("d")).wait()


@in_trio
async def test_a_query_that_fails_is_its_callers_error_and_the_next_one_works(path: Path) -> None:
    async with loaded(path) as database:
        with pytest.raises(MemdError) as refused:
            await database.read(lambda c: c.execute("NONSENSE"))
        assert refused.value.code is ErrorCode.INTERNAL_ERROR
        with pytest.raises(ZeroDivisionError):
            await database.read(lambda _: 1 // 0)
        with pytest.raises(MemdError) as refused:
            await database.read(lambda c: c.execute("DELETE FROM status_log"))
        assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE
        assert await database.read(words) == []
        assert database.is_idle


@in_trio
async def test_a_cancelled_reader_leaves_the_database_idle_and_readable(path: Path) -> None:
    async with loaded(path) as database:
        with trio.CancelScope() as scope:
            scope.cancel()
            await database.read(words)
        assert database.is_idle
        assert await database.read(words) == []


@in_trio
async def test_a_database_is_not_idle_while_it_is_read(path: Path) -> None:
    asked, answer = threading.Event(), threading.Event()

    def wait(connection: apsw.Connection) -> None:
        asked.set()
        assert answer.wait(PATIENCE_S)

    async with loaded(path) as database, trio.open_nursery() as nursery:
        nursery.start_soon(database.read, wait)
        await trio.to_thread.run_sync(asked.wait)
        assert not database.is_idle
        answer.set()


def made(path: Path) -> Path:
    make(path)
    return path


@in_trio
async def test_a_reader_that_is_late_for_a_close_keeps_no_file_open(path: Path) -> None:
    busy = [path.with_name(f"busy-{number}.db") for number in range(READER_THREADS)]
    async with pooled() as pool, trio.open_nursery() as nursery:
        database, others = add(pool, path), [add(pool, other) for other in map(made, busy)]
        for each in (database, *others):
            await each.load()
        begun, release = threading.Barrier(READER_THREADS + 1), threading.Event()

        def occupy(connection: apsw.Connection) -> None:
            begun.wait(PATIENCE_S)
            assert release.wait(PATIENCE_S)

        for other in others:  # one query of each at a time, so that no thread is left
            nursery.start_soon(other.read, occupy)
        await trio.to_thread.run_sync(begun.wait)
        late: list[list[str]] = []

        async def read() -> None:
            late.append(await database.read(words))

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert pool.read_queue_depth == 1
        await database.close()
        release.set()
        while not late:
            await trio.lowlevel.checkpoint()
        assert late == [[]]
        assert not database.is_open
        assert not [name for name in open_files(path.parent) if name.startswith("jackin.db")]

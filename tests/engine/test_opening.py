"""When a database is opened and closed, and which files are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.engine.driving import (
    add,
    in_trio,
    is_open,
    loaded,
    on_disk,
    open_files,
    pooled,
    words,
)
from tests.engine.writes import append
from tests.storage.files import fingerprint, make, make_version, set_meta
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


@proves("store-lazy-open")
@in_trio
async def test_a_handle_opens_nothing_until_it_is_used(path: Path) -> None:
    make(path)
    async with pooled() as pool:
        database = add(pool, path)
        assert not is_open(database)
        assert open_files(path.parent) == []
        assert await database.read(words) == []
        assert is_open(database)
        assert "jackin.db" in open_files(path.parent)


@in_trio
async def test_only_a_load_makes_a_file(path: Path) -> None:
    async with pooled() as pool:
        database = add(pool, path)
        for use in (database.write(append("a")).wait, lambda: database.read(words)):
            with pytest.raises(MemdError) as refused:
                await use()
            assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE
            assert list(path.parent.iterdir()) == []
        epoch = await database.load()
        assert await database.write(append("a")).wait() == 1
        assert database.epoch == epoch == await database.epoch_known()


@proves("store-lazy-open")
@in_trio
async def test_a_close_waits_its_turn_and_the_next_use_opens_again(path: Path) -> None:
    async with loaded(path) as database:
        before = database.write(append("before"))
        closed = database.close_soon()
        after = database.write(append("after"))
        assert [await pending.wait() for pending in (before, after)] == [1, 2]
        await closed.wait()
        assert is_open(database)
        await database.read(words)
        await database.close()
        assert not is_open(database)
        assert [file.name for file in path.parent.iterdir()] == ["jackin.db"]
        assert open_files(path.parent) == []
        assert await database.read(words) == ["before", "after"]
        assert is_open(database)


@in_trio
async def test_closing_what_is_closed_is_nothing(path: Path) -> None:
    async with loaded(path) as database:
        await database.close()
        await database.close()
        assert not database.is_open


@in_trio
async def test_an_empty_file_is_not_made_a_database_by_a_mere_use(path: Path) -> None:
    make_empty(path)
    before = fingerprint(path)
    async with pooled() as pool:
        with pytest.raises(MemdError) as refused:
            await add(pool, path).read(words)
    assert refused.value.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert fingerprint(path) == before


@in_trio
async def test_a_cancelled_load_may_be_tried_again(path: Path) -> None:
    async with pooled() as pool:
        database = add(pool, path)
        with trio.CancelScope() as scope:
            scope.cancel()
            await database.load()
        await database.load()
        assert await database.write(append("a")).wait() == 1


@proves("store-hard-error")
@in_trio
async def test_a_database_that_can_not_be_opened_is_one_callers_error_at_a_time(
    tmp_path: Path,
) -> None:
    gone, good = tmp_path / "gone" / "jackin.db", tmp_path / "jackin.db"
    async with pooled() as pool:
        threads = threading.active_count()
        broken, database = add(pool, gone), add(pool, good)
        for _ in range(8):  # more than there are writer threads
            with pytest.raises(MemdError) as refused:
                await broken.load()
            assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE
            assert "gone/jackin.db" in refused.value.message
        await database.load()
        assert await database.write(append("a")).wait() == 1
        gone.parent.mkdir()
        await broken.load()
        assert threading.active_count() == threads


@in_trio
async def test_a_daemon_that_lost_its_home_stores_nothing_of_the_call(path: Path) -> None:
    lost: list[MemdError] = []

    def owned() -> None:
        if lost:
            raise lost[0]

    async with loaded(path, owned=owned) as database:
        assert await database.write(append("a")).wait() == 1
        lost.append(MemdError(ErrorCode.DAEMON_STOPPING, "nothing of this call was stored"))
        for _ in range(2):
            with pytest.raises(MemdError) as refused:
                await database.write(append("b")).wait()
            assert refused.value is lost[0]
            assert on_disk(path) == ["a"]
            await database.close()


@proves("store-epoch")
@in_trio
async def test_a_file_with_another_epoch_is_refused_until_it_is_loaded(path: Path) -> None:
    async with loaded(path) as database:
        await database.close()
        set_meta(path, "database_id", "f" * 16)
        before = fingerprint(path)
        for _ in range(2):
            with pytest.raises(MemdError) as refused:
                await database.write(append("a")).wait()
            assert refused.value.code is ErrorCode.DATABASE_REPLACED
            assert "load the instance again" in (refused.value.hint or "")
            assert fingerprint(path) == before
        assert await database.load() == "f" * 16
        assert await database.write(append("a")).wait() == 1


def make_older(path: Path) -> None:
    path.unlink()
    make_version(path, 1)


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("make_other", [make_older, make_empty], ids=["older", "empty"])
@in_trio
async def test_another_database_is_neither_migrated_nor_begun_before_it_is_refused(
    path: Path, make_other: Callable[[Path], None]
) -> None:
    async with loaded(path) as database:
        await database.close()
        make_other(path)
        before = fingerprint(path)
        with pytest.raises(MemdError) as refused:
            await database.read(words)
        assert refused.value.code is ErrorCode.DATABASE_REPLACED
        assert fingerprint(path) == before

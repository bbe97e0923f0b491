"""A file that is taken away or exchanged under the daemon: nothing is acknowledged into it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackin_memd.engine.database import Database
from jackin_memd.engine.group import Write
from jackin_memd.engine.pending import Pending
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.engine.driving import Hold, in_trio, loaded, on_disk, open_files, words
from tests.engine.writes import Change, append, keyed
from tests.storage.files import fingerprint, make
from tests.support.proves import proves

Taking = Callable[[Path], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "jk-k7p9m2xq-shop"
    folder.mkdir()
    return folder / "jackin.db"


def side_files(path: Path) -> list[Path]:
    return [path.with_name("jackin.db-wal"), path.with_name("jackin.db-shm")]


def remove(path: Path) -> None:
    for file in (path, *side_files(path)):
        file.unlink()


def exchange(path: Path) -> None:
    """Another database in its place, as a restored backup would be."""
    remove(path)
    make(path)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


TAKEN: dict[str, Taking] = {
    "removed": remove,
    "moved": lambda path: path.rename(path.with_name("moved.db")),
    "exchanged": exchange,
    "folder removed": remove_folder,
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}
CHANGES = pytest.mark.parametrize("change", TAKEN.values(), ids=TAKEN)


async def code_of(pending: Pending[object]) -> str:
    try:
        await pending.wait()
    except MemdError as error:
        return error.code.word
    return "acknowledged"


async def load_again(database: Database) -> None:
    database.path.parent.mkdir(exist_ok=True)
    await database.load()


@proves("store-replaced")
@CHANGES
@in_trio
async def test_everyone_of_the_group_is_told_and_a_load_makes_the_handle_work_again(
    path: Path, change: Taking
) -> None:
    async with loaded(path) as database:
        old = database.epoch
        await database.write(append("before")).wait()
        hold = Hold()
        database.write(hold)
        await hold.begun()
        taking = Change(lambda _: change(path))
        writes: list[Write[Any]] = [append("a"), append("b"), taking, keyed("k", "c")]
        group = [database.write(write) for write in writes]
        hold.release()
        assert [await code_of(pending) for pending in group] == ["DATABASE_REPLACED"] * 4
        assert not database.is_open
        assert open_files(path.parent) == []

        await load_again(database)
        assert database.epoch != old
        assert await database.write(append("new")).wait() == 1
        assert await database.read(words) == on_disk(path) == ["new"]


@CHANGES
@in_trio
async def test_a_load_takes_what_is_there_now_though_nobody_had_noticed(
    path: Path, change: Taking
) -> None:
    async with loaded(path) as database:
        await database.write(append("before")).wait()
        assert await database.read(words) == ["before"]
        change(path)
        await load_again(database)
        assert await database.read(words) == []
        assert await database.write(append("new")).wait() == 1


@proves("store-replaced")
@CHANGES
@in_trio
async def test_a_reader_is_told_as_well_and_lets_the_writer_know(
    path: Path, change: Taking
) -> None:
    async with loaded(path) as database:
        await database.read(words)
        change(path)
        with pytest.raises(MemdError) as noticed:
            await database.read(words)
        assert noticed.value.code is ErrorCode.DATABASE_REPLACED
        await database.close()
        assert open_files(path.parent.parent) == []


@in_trio
async def test_the_file_in_its_place_is_not_touched_by_the_one_that_was_there(path: Path) -> None:
    async with loaded(path) as database:
        await database.write(append("before")).wait()
        await database.read(words)
        exchange(path)
        before = fingerprint(path)
        with pytest.raises(MemdError):
            await database.write(append("lost")).wait()
        assert fingerprint(path) == before
        with pytest.raises(MemdError) as refused:
            await database.write(append("lost")).wait()
        assert refused.value.code is ErrorCode.DATABASE_REPLACED
    assert fingerprint(path) == before
    assert on_disk(path) == []


@pytest.mark.parametrize("lost", [slice(0, 1), slice(0, 2)], ids=["WAL", "WAL and index"])
@in_trio
async def test_what_was_acknowledged_survives_the_removal_of_its_wal(
    path: Path, lost: slice
) -> None:
    async with loaded(path) as database:
        epoch = database.epoch
        for number in range(50):
            await database.write(append(str(number))).wait()
        for file in side_files(path)[lost]:
            file.unlink()
        with pytest.raises(MemdError) as noticed:
            await database.write(append("refused")).wait()
        assert noticed.value.code is ErrorCode.DATABASE_REPLACED
        assert await database.load() == epoch
        assert await database.read(words) == [str(number) for number in range(50)]
        assert await database.write(append("next")).wait() == 51


@in_trio
async def test_the_daemon_can_be_left_with_a_file_that_is_gone(path: Path) -> None:
    async with loaded(path) as database:
        await database.write(append("before")).wait()
        remove_folder(path)
    assert not path.parent.exists()

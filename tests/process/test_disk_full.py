"""A full disk: nothing is acknowledged that is not there, and room is all it takes to go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from tests.support.daemon import CONTAINER, OTHER, Daemon, StartError, new_daemon, record
from tests.support.instances import get, load, purge, unload
from tests.support.proves import proves
from tests.support.small_disk import Disk, small_disk

LONG = "x" * 100


@pytest.fixture
def disk(short_path: Path) -> Iterator[Disk]:
    with small_disk(short_path / "home", "4m") as mounted:
        yield mounted


@pytest.fixture
def cramped(disk: Disk) -> Iterator[Daemon]:
    """A daemon whose home is on the small disk, with two instances."""
    with new_daemon(disk.path.parent) as daemon:
        daemon.start()
        daemon.load(CONTAINER)
        daemon.load(OTHER, "reviewer")
        yield daemon


def record_until_refused(daemon: Daemon, word: str) -> tuple[list[int], MemdError]:
    """The ids that were acknowledged, and the refusal after them."""
    acknowledged: list[int] = []
    with daemon.capsule() as capsule:
        while True:
            try:
                recorded = record(capsule, *[word] * 20)
            except MemdError as error:
                return acknowledged, error
            acknowledged += range(recorded.first_id, recorded.last_id + 1)


def ids(daemon: Daemon) -> list[int]:
    return [id_ for (id_,) in daemon.rows("SELECT id FROM status_log ORDER BY id")]


@proves("store-disk-full", "store-atomic-call")
def test_a_full_disk_refuses_the_write_and_goes_on_once_there_is_room(
    cramped: Daemon, disk: Disk
) -> None:
    disk.fill()
    acknowledged, error = record_until_refused(cramped, LONG)
    assert error.code is ErrorCode.DISK_FULL
    assert error.hint is not None
    assert "again" in error.hint or "repeat" in error.hint
    assert ids(cramped) == acknowledged
    _, second = record_until_refused(cramped, LONG)
    assert second.code is ErrorCode.DISK_FULL
    assert get(cramped).state is InstanceState.LOADED  # the disk's fault, not the instance's

    disk.free()
    with cramped.capsule() as capsule:  # no restart, no load
        after = record(capsule, "room")
    assert ids(cramped) == [*acknowledged, after.first_id]


@proves("store-disk-full", "store-ack-survives-kill")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_what_was_acknowledged_on_a_full_disk_is_there_after_the_end(
    cramped: Daemon, disk: Disk, end: str
) -> None:
    disk.fill()
    acknowledged, _ = record_until_refused(cramped, LONG)
    if end == "SIGKILL":
        cramped.kill()
    else:
        assert cramped.terminate() == 0
    disk.free()
    cramped.start()
    with cramped.capsule() as capsule:
        after = record(capsule, "room")
    assert ids(cramped) == [*acknowledged, after.first_id]


@proves("store-disk-full", "store-hard-error")
def test_an_instance_that_has_no_room_is_not_half_loaded(cramped: Daemon, disk: Disk) -> None:
    disk.fill()
    third = "jk-c3d4e5f6-shop-tester"
    with pytest.raises(MemdError) as caught:
        load(cramped, third, role_key="tester")
    assert caught.value.code is ErrorCode.DISK_FULL
    with pytest.raises(MemdError) as unknown:
        get(cramped, third)
    assert unknown.value.code is ErrorCode.INSTANCE_NOT_FOUND
    assert not cramped.instance_socket(third).exists()
    disk.free()
    assert load(cramped, third, role_key="tester").state is InstanceState.LOADED


@proves("store-disk-full", "instance-purge")
def test_a_full_disk_can_be_relieved_by_a_purge(cramped: Daemon, disk: Disk) -> None:
    for _ in range(3):
        record_some(cramped, OTHER)
    disk.fill()
    record_until_refused(cramped, LONG)
    try:
        purge(cramped, OTHER)
    except MemdError as error:  # the registry has no room to forget it ...
        assert error.code is ErrorCode.DISK_FULL
        purge(cramped, OTHER)  # ... but its files are gone by now
    with cramped.capsule() as capsule:
        room = record(capsule, "room")
    assert ids(cramped)[-1] == room.first_id


def record_some(daemon: Daemon, container: str) -> None:
    with daemon.capsule(container) as capsule:
        record(capsule, *[LONG] * 2000)


@proves("store-disk-full", "store-lazy-open")
def test_resting_databases_are_closed_on_a_full_disk_without_harm(disk: Disk) -> None:
    with new_daemon(disk.path.parent) as daemon:
        daemon.configure(timeouts={"idle_close_s": 0.05})
        daemon.start()
        daemon.load(CONTAINER)
        disk.fill()
        acknowledged, _ = record_until_refused(daemon, LONG)
        while daemon.status().databases_open:  # each call is one more turn of its loop
            pass
        disk.free()
        with daemon.capsule() as capsule:
            after = record(capsule, "room")
        assert ids(daemon) == [*acknowledged, after.first_id]
        assert daemon.terminate() == 0


def test_an_unload_on_a_full_disk_is_done_or_refused_whole(cramped: Daemon, disk: Disk) -> None:
    disk.fill()
    acknowledged, _ = record_until_refused(cramped, LONG)
    try:
        state = unload(cramped).state
    except MemdError as error:
        assert error.code is ErrorCode.DISK_FULL
        state = InstanceState.LOADED
    assert get(cramped).state is state
    disk.free()
    load(cramped)
    with cramped.capsule() as capsule:
        after = record(capsule, "room")
    assert ids(cramped) == [*acknowledged, after.first_id]


def test_a_daemon_starts_on_a_full_disk_or_says_why_not(cramped: Daemon, disk: Disk) -> None:
    cramped.terminate()
    disk.fill()
    try:
        cramped.start()
    except StartError as refused:
        code = refused.failure["code"]
        assert code in {"DISK_FULL", "HOME_UNUSABLE", "STORAGE_FAILED"}
        assert refused.failure["hint"]
        assert refused.exit_status == ErrorCode[code].exit_status
        disk.free()
        cramped.start()
    assert get(cramped).state is InstanceState.LOADED


def test_a_database_that_is_opened_on_a_full_disk_is_refused_as_such(
    cramped: Daemon, disk: Disk
) -> None:
    cramped.terminate()
    cramped.start()
    disk.fill()
    acknowledged, error = record_until_refused(cramped, LONG)
    assert acknowledged == []
    assert error.code is ErrorCode.DISK_FULL


@pytest.mark.parametrize("before", ["an empty disk", "a used home"])
def test_a_home_on_a_read_only_disk_is_refused_with_what_to_do(disk: Disk, before: str) -> None:
    with new_daemon(disk.path.parent) as daemon:
        if before == "a used home":
            daemon.start()
            daemon.load()
            daemon.terminate()
        disk.make_read_only()
        for command in ("serve", "start", "restart"):
            ended = daemon.command(command)
            assert ended.status == ErrorCode.HOME_UNUSABLE.exit_status, ended
            assert str(daemon.home) in ended.err
            assert "hint:" in ended.err
            assert "Traceback" not in ended.err
        disk.make_read_only(False)
        daemon.start()

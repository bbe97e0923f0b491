"""A daemon that no longer owns its home: it refuses the next write, and stops."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import closing

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import StatusRecordParams
from tests.support.daemon import Daemon, entry, record
from tests.support.proves import proves
from tests.support.raw import greeted

STOPPED = ErrorCode.DAEMON_STOPPING.exit_status


@pytest.fixture
def blind(stopped: Daemon) -> Daemon:
    """A daemon with an instance that never looks around by itself."""
    stopped.configure(timeouts={"watch_s": 3600})
    stopped.start()
    stopped.load()
    return stopped


@pytest.fixture
def watchful(stopped: Daemon) -> Daemon:
    """One that looks around all the time."""
    stopped.configure(timeouts={"watch_s": 0.02})
    stopped.start()
    stopped.load()
    return stopped


# -- what can be taken from it -----------------------------------------------------------


def lock_removed(daemon: Daemon) -> None:
    (daemon.home / "run" / "memd.lock").unlink()


def lock_exchanged(daemon: Daemon) -> None:
    lock = daemon.home / "run" / "memd.lock"
    (daemon.home / "run" / "new").write_bytes(b"another's")
    (daemon.home / "run" / "new").rename(lock)


def run_folder_removed(daemon: Daemon) -> None:
    shutil.rmtree(daemon.home / "run")


def run_folder_exchanged_for_a_file(daemon: Daemon) -> None:
    run_folder_removed(daemon)
    (daemon.home / "run").write_bytes(b"")


def home_moved(daemon: Daemon) -> None:
    daemon.home.rename(daemon.home.parent / "moved")


def home_removed(daemon: Daemon) -> None:
    shutil.rmtree(daemon.home)


def socket_removed(daemon: Daemon) -> None:
    daemon.socket.unlink()


def socket_exchanged(daemon: Daemon) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as another:
        another.bind(os.fspath(daemon.home / "run" / "new"))
        (daemon.home / "run" / "new").rename(daemon.socket)


Loss = Callable[[Daemon], None]

LOCK_LOSSES = [lock_removed, lock_exchanged, run_folder_removed, run_folder_exchanged_for_a_file]


@proves("daemon-dispossessed", "daemon-lock-kept")
@pytest.mark.parametrize("lose", LOCK_LOSSES)
def test_a_write_after_the_lock_is_lost_is_not_acknowledged(blind: Daemon, lose: Loss) -> None:
    with blind.capsule() as capsule:
        record(capsule, "before")
        lose(blind)
        with pytest.raises(MemdError) as caught:
            record(capsule, "after")
    assert caught.value.code is ErrorCode.DAEMON_STOPPING
    assert "memd.lock" in caught.value.message
    assert blind.rows("SELECT new_status FROM status_log") == [("before",)]


@proves("daemon-dispossessed")
@pytest.mark.parametrize("method", ["instance.load", "instance.unload"])
def test_no_instance_is_loaded_or_unloaded_after_the_lock_is_lost(
    blind: Daemon, method: str
) -> None:
    with greeted(blind.socket) as operator:
        lock_removed(blind)
        params = (
            {"container": "jk-c3d4e5f6-x", "role_key": "r"}
            if method == "instance.load"
            else {"instance": "k7p9m2xq"}
        )
        assert operator.refused(method, **params)["data"]["code"] == "DAEMON_STOPPING"


@proves("daemon-dispossessed")
@pytest.mark.parametrize(
    "lose", [*LOCK_LOSSES, home_moved, home_removed, socket_removed, socket_exchanged]
)
def test_a_daemon_that_lost_its_lock_or_socket_stops_and_says_why(
    watchful: Daemon, lose: Loss
) -> None:
    lose(watchful)
    assert watchful.wait() == STOPPED
    watchful.log.ended()
    assert watchful.log.count("memd.lock was removed or replaced") + watchful.log.count(
        "memd.sock was removed or replaced"
    )
    assert watchful.log.count("Traceback") == 0


@proves("daemon-dispossessed", "daemon-singleton")
def test_the_next_daemon_has_all_that_was_acknowledged_before(watchful: Daemon) -> None:
    acknowledged = 0
    with watchful.capsule() as capsule:
        record(capsule, "first")
        lock_exchanged(watchful)
        try:
            while True:
                acknowledged = record(capsule, "on").last_id
        except MemdError as error:
            assert error.code in {ErrorCode.DAEMON_STOPPING, ErrorCode.CONNECTION_CLOSED}
    assert watchful.wait() == STOPPED
    watchful.start()
    with watchful.capsule() as capsule:
        assert record(capsule, "next").first_id > acknowledged


@proves("daemon-dispossessed", "daemon-stale-socket")
def test_a_dispossessed_daemon_leaves_its_successors_sockets_alone(watchful: Daemon) -> None:
    socket_exchanged(watchful)
    found = os.lstat(watchful.socket).st_ino
    assert watchful.wait() == STOPPED
    assert os.lstat(watchful.socket).st_ino == found
    watchful.start()  # what stood there refuses, so it is stale


@proves("daemon-dispossessed", "store-atomic-call")
def test_a_large_write_that_is_refused_is_not_there(blind: Daemon) -> None:
    with blind.capsule() as capsule:
        lock_removed(blind)
        with pytest.raises(MemdError):
            capsule.call("status.record", StatusRecordParams(entries=[entry("lost")] * 5000))
    assert blind.rows("SELECT count(*) FROM status_log") == [(0,)]


def test_a_lock_that_was_lost_can_be_had_by_another_daemon_at_once(blind: Daemon) -> None:
    """The one that lost it is not asked; it acknowledges nothing any more."""
    lock_removed(blind)
    blind.socket.unlink()
    successor = Daemon(blind.home, blind.config)
    try:
        successor.start()
        with successor.client() as operator:
            record(operator, "the successor's", instance="k7p9m2xq")
    finally:
        successor.end()
    assert blind.rows("SELECT new_status FROM status_log") == [("the successor's",)]

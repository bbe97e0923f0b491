"""An instance's socket on hostile ground: what an agent does there harms itself alone."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import get, load, unload
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted
from tests.support.somebody import Somebody

REBOUND = f"the socket of {CONTAINER} was taken away and is bound again"
SERVED_AGAIN = f"the socket of {CONTAINER} is served again"


@pytest.fixture
def watchful(stopped: Daemon) -> Daemon:
    """A daemon that looks at its sockets all the time, with two instances."""
    stopped.configure(timeouts={"watch_s": 0.02})
    stopped.start()
    stopped.load(CONTAINER)
    stopped.load(OTHER, "reviewer")
    return stopped


def serves(daemon: Daemon, container: str = CONTAINER) -> bool:
    with daemon.capsule(container) as capsule:
        return record(capsule, "working").last_id > 0


# -- what can stand at the path ------------------------------------------------------


def put(new: Path, path: Path) -> None:
    """Exchange what is at `path` for `new`, leaving the daemon no moment in between
    (but for a folder, which has to be quicker than the daemon)."""
    while new.is_symlink() or new.exists():
        try:
            new.rename(path)
        except NotADirectoryError:
            path.unlink(missing_ok=True)


@contextmanager
def live_socket(path: Path) -> Iterator[None]:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        yield


@contextmanager
def plain_file(path: Path) -> Iterator[None]:
    path.write_bytes(b"planted")
    yield


@contextmanager
def folder(path: Path) -> Iterator[None]:
    path.mkdir()
    (path / "inside").write_bytes(b"planted")
    yield


@contextmanager
def symlink_to_a_file(path: Path) -> Iterator[None]:
    (path.parent / "target").write_bytes(b"planted")
    path.symlink_to(path.parent / "target")
    yield


@contextmanager
def symlink_to_the_operators_socket(path: Path) -> Iterator[None]:
    path.symlink_to(path.parents[2] / "run" / "memd.sock")
    yield


@contextmanager
def fifo(path: Path) -> Iterator[None]:
    os.mkfifo(path)
    yield


Plant = Callable[[Path], AbstractContextManager[None]]

PLANTS = pytest.mark.parametrize(
    "plant",
    [live_socket, plain_file, folder, symlink_to_a_file, symlink_to_the_operators_socket, fifo],
)


def take_away(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@proves("instance-socket-rebound")
def test_a_socket_that_an_agent_removed_is_bound_again(watchful: Daemon) -> None:
    path = watchful.instance_socket()
    with greeted(path) as connected:
        for times in (1, 2):
            path.unlink()
            watchful.wait_for_log(REBOUND, times=times)
            assert serves(watchful)
        assert connected.call("ping") == {}  # who was in stays in
    assert path.stat().st_mode & 0o777 == 0o600
    assert get(watchful).problem is None


@proves("instance-socket-rebound")
def test_a_socket_folder_that_an_agent_removed_is_made_again(watchful: Daemon) -> None:
    shutil.rmtree(watchful.instance_socket().parent)
    watchful.wait_for_log(REBOUND)
    assert serves(watchful)
    assert watchful.instance_socket().parent.stat().st_mode & 0o777 == 0o700


def test_connections_from_before_a_rebinding_end_with_the_instance(stopped: Daemon) -> None:
    stopped.configure(timeouts={"watch_s": 0.02, "drain_s": 3600})  # would be waited for
    stopped.start()
    stopped.load()
    with greeted(stopped.instance_socket()) as before:
        stopped.instance_socket().unlink()
        stopped.wait_for_log(REBOUND)
        assert stopped.status().connections["capsule"] == 1
        unload(stopped)
        assert before.read_to_end() == []
    assert stopped.status().connections["capsule"] == 0


@proves("instance-hostile-ground", "instance-problem")
@PLANTS
def test_what_an_agent_puts_in_the_sockets_place_is_left_alone_and_told(
    watchful: Daemon, plant: Plant
) -> None:
    path = watchful.instance_socket()
    with plant(path.with_name("new")):
        put(path.with_name("new"), path)
        found = os.lstat(path)
        watchful.wait_for_log(f"no socket can be opened at {path}")
        problem = get(watchful).problem
        assert problem is not None
        assert problem.code == "SOCKET_PATH_OCCUPIED"
        assert str(path) in problem.message
        assert problem.hint is not None
        with watchful.client() as operator:  # the operator's channel still serves it
            assert record(operator, "working", instance=CONTAINER).first_id > 0
        assert serves(watchful, OTHER)
        assert os.lstat(path).st_ino == found.st_ino
    take_away(path)
    watchful.wait_for_log(SERVED_AGAIN)
    assert serves(watchful)
    assert get(watchful).problem is None


@proves("instance-hostile-ground", "instance-restart")
@PLANTS
def test_a_path_that_is_occupied_at_start_is_mended_when_it_is_free(
    watchful: Daemon, plant: Plant
) -> None:
    watchful.kill()
    path = watchful.instance_socket()
    path.unlink()
    with plant(path):
        watchful.start()
        found = get(watchful)
        assert found.state is InstanceState.LOADED
        assert found.problem is not None
        assert found.problem.code == "SOCKET_PATH_OCCUPIED"
        with watchful.client() as operator:
            assert record(operator, "working", instance=CONTAINER).first_id == 1
    take_away(path)
    watchful.wait_for_log(SERVED_AGAIN)
    assert serves(watchful)


@PLANTS
def test_loading_onto_an_occupied_path_is_refused_and_leaves_no_half(
    daemon: Daemon, plant: Plant
) -> None:
    path = daemon.instance_socket()
    path.parent.mkdir(parents=True)
    with plant(path):
        before = os.lstat(path).st_ino
        with pytest.raises(MemdError) as caught:
            load(daemon, role_key="builder")
        assert caught.value.code is ErrorCode.SOCKET_PATH_OCCUPIED
        assert str(path) in caught.value.message
        with pytest.raises(MemdError) as unknown:
            get(daemon)
        assert unknown.value.code is ErrorCode.INSTANCE_NOT_FOUND
        assert os.lstat(path).st_ino == before
    take_away(path)
    assert load(daemon, role_key="builder").problem is None
    assert serves(daemon)


@proves("instance-hostile-ground")
@pytest.mark.parametrize("mode", [0o000, 0o500, 0o600])
def test_an_agent_that_closes_its_folder_to_the_daemon_harms_itself_alone(
    stopped: Daemon, mode: int
) -> None:
    somebody = Somebody()
    stopped.home.mkdir()
    somebody.give(stopped.home.parent, stopped.home, stopped.config)
    stopped.configure(timeouts={"watch_s": 0.02})
    stopped.start(prefix=somebody.prefix)
    with somebody.acting():
        stopped.load(CONTAINER)
        stopped.load(OTHER, "reviewer")
        path = stopped.instance_socket()
        path.unlink()
        stopped.wait_for_log(REBOUND)
        path.unlink()
        path.parent.chmod(mode)
        try:
            stopped.wait_for_log(f"no socket can be opened at {path}")
            assert serves(stopped, OTHER)
        finally:
            path.parent.chmod(0o700)
        stopped.wait_for_log(SERVED_AGAIN)
        assert serves(stopped)


@pytest.mark.parametrize("end", ["unload", "SIGTERM"])
def test_a_socket_that_cannot_be_removed_stops_neither_an_unload_nor_the_daemon(
    stopped: Daemon, end: str
) -> None:
    somebody = Somebody()
    stopped.home.mkdir()
    somebody.give(stopped.home.parent, stopped.home, stopped.config)
    stopped.start(prefix=somebody.prefix)
    with somebody.acting():
        stopped.load(CONTAINER)
        stopped.instance_socket().parent.chmod(0o500)
        try:
            if end == "unload":
                assert unload(stopped).state is InstanceState.UNLOADED
            assert stopped.terminate() == 0
        finally:
            stopped.instance_socket().parent.chmod(0o700)
    assert stopped.instance_socket().is_socket()


@proves("access-peer-uid")
def test_a_peer_of_another_user_is_turned_away_on_every_socket(stopped: Daemon) -> None:
    somebody = Somebody()
    if not somebody.is_another:
        pytest.skip("only root passes the modes of somebody else's home")
    stopped.home.mkdir()
    somebody.give(stopped.home.parent, stopped.home, stopped.config)
    stopped.start(prefix=somebody.prefix)
    with somebody.acting():
        stopped.load(CONTAINER)
    for path in (stopped.socket, stopped.instance_socket()):
        with Raw(path) as root:
            (farewell,) = root.read_to_end()
        assert code_of(farewell) == "PERMISSION_DENIED"
        with somebody.acting(), greeted(path) as same:
            assert same.call("ping") == {}

"""No name and no planted symlink leads the daemon out of an instance's own folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from jackin_memd.core.names import RESERVED
from jackin_memd.wire.address import MAX_SOCKET_PATH_BYTES
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceListParams
from tests.support.daemon import CONTAINER, Daemon, StartError, new_daemon, record
from tests.support.instances import get, load, write_manifest
from tests.support.proves import proves

_numbers = count()


@pytest.fixture
def name() -> str:
    """A container that no test has used before."""
    return f"jk-{next(_numbers):08d}-shop-builder"


def refused(daemon: Daemon, container: str) -> MemdError:
    with pytest.raises(MemdError) as caught:
        load(daemon, container, role_key="builder")
    return caught.value


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@proves("instance-names")
@pytest.mark.parametrize("reserved", sorted(RESERVED))
def test_a_folder_of_jackins_own_is_no_instance(shared: Daemon, reserved: str) -> None:
    error = refused(shared, reserved)
    assert (error.code, error.field) == (ErrorCode.INSTANCE_NAME_INVALID, "container")
    assert "reserved" in error.message


BAD_NAMES = [
    ".", "..", "../x", "a/b", "/etc", "~", "a\\b", "a.b", "a b", "A", "-a", "a-", "a_b", "é", "ａ",
    "jackin.db", "daemon/", "daemon/../x", "%2e%2e", "$HOME", "a:b", "a*", "jk-a;b",
]  # fmt: skip


@proves("instance-names")
@pytest.mark.parametrize("bad", BAD_NAMES)
def test_what_is_no_container_name_never_becomes_a_path(shared: Daemon, bad: str) -> None:
    before = files_below(shared.home / "data"), files_below(shared.home / "sockets")
    error = refused(shared, bad)
    assert (error.code, error.field) == (ErrorCode.INSTANCE_NAME_INVALID, "container")
    assert bad not in error.message
    assert (files_below(shared.home / "data"), files_below(shared.home / "sockets")) == before


def test_the_shortest_and_the_longest_names_are_served(short_path: Path) -> None:
    with new_daemon(short_path) as daemon:
        daemon.start()
        for name in ("a", "0", "x" * (MAX_SOCKET_PATH_BYTES - len(str(daemon.home)) - 19)):
            assert load(daemon, name[:63], role_key="r").problem is None


@proves("daemon-socket-path")
def test_an_instance_whose_socket_path_is_too_long_is_refused_alone(tmp_path: Path) -> None:
    room = 107 - len("/home/run/memd.sock") - len(str(tmp_path)) - len("/")
    if room < 1:
        pytest.skip("the temporary folder's own path is too long")
    folder = tmp_path / ("d" * room)
    folder.mkdir()
    with new_daemon(folder) as daemon:
        daemon.start()
        error = refused(daemon, CONTAINER)
        assert error.code is ErrorCode.SOCKET_PATH_TOO_LONG
        assert error.hint is not None
        assert "JACKIN_HOME_DIR" in error.hint
        assert not daemon.instance_db().exists()
        with daemon.client() as client:
            assert client.call("instance.list", InstanceListParams()).instances == []


@proves("daemon-socket-path")
def test_a_home_of_200_characters_is_refused_with_what_to_do(tmp_path: Path) -> None:
    home = tmp_path / ("h" * 200)
    home.mkdir()
    with new_daemon(home) as daemon:
        with pytest.raises(StartError) as caught:
            daemon.start()
        assert caught.value.failure["code"] == "SOCKET_PATH_TOO_LONG"
        assert caught.value.exit_status == ErrorCode.SOCKET_PATH_TOO_LONG.exit_status
        assert str(MAX_SOCKET_PATH_BYTES) in caught.value.failure["message"]
        assert "JACKIN_HOME_DIR" in caught.value.failure["hint"]
        assert not daemon.home.exists()
        asked = daemon.command("status")
        assert asked.status == ErrorCode.SOCKET_PATH_TOO_LONG.exit_status
        assert "hint:" in asked.err


# -- what is in the way ---------------------------------------------------------------

Plant = Callable[[Path, Path], None]


def a_symlink(place: Path, elsewhere: Path) -> None:
    place.symlink_to(elsewhere)


def a_dangling_symlink(place: Path, elsewhere: Path) -> None:
    place.symlink_to(elsewhere / "nowhere")


def a_file(place: Path, elsewhere: Path) -> None:
    place.write_bytes(b"mine")


def a_fifo(place: Path, elsewhere: Path) -> None:
    os.mkfifo(place)


PLANTS = pytest.mark.parametrize("plant", [a_symlink, a_dangling_symlink, a_file, a_fifo])


@pytest.fixture
def elsewhere(shared: Daemon, name: str) -> Path:
    """A folder out of the home, with a manifest as an instance would have."""
    folder = shared.home.parent / f"elsewhere-{name}"
    (folder / ".jackin").mkdir(parents=True)
    return folder


@proves("instance-hostile-ground")
@PLANTS
@pytest.mark.parametrize("where", ["data", "sockets"])
def test_what_stands_in_place_of_an_instances_folder_is_refused_and_left_alone(
    shared: Daemon, elsewhere: Path, name: str, where: str, plant: Plant
) -> None:
    place = shared.home / where / name
    plant(place, elsewhere)
    before = os.lstat(place).st_ctime_ns
    assert refused(shared, name).code is ErrorCode.PATH_UNSAFE
    assert os.lstat(place).st_ctime_ns == before
    assert files_below(elsewhere) == [".jackin"]
    place.unlink()
    assert load(shared, name, role_key="builder").problem is None


@proves("instance-hostile-ground")
@PLANTS
def test_a_manifest_folder_that_is_none_is_refused(
    shared: Daemon, elsewhere: Path, name: str, plant: Plant
) -> None:
    place = shared.home / "data" / name / ".jackin"
    place.parent.mkdir()
    plant(place, elsewhere)
    assert refused(shared, name).code is ErrorCode.PATH_UNSAFE
    assert not shared.instance_db(name).exists()


@proves("instance-hostile-ground")
@pytest.mark.parametrize("plant", [a_symlink, a_dangling_symlink, a_fifo])
def test_a_manifest_that_is_no_regular_file_is_refused(
    shared: Daemon, elsewhere: Path, name: str, plant: Plant
) -> None:
    true = write_manifest(shared, name)
    true.rename(elsewhere / "instance.json")
    plant(true, elsewhere / "instance.json")
    assert refused(shared, name).code is ErrorCode.INSTANCE_MANIFEST_INVALID
    assert not shared.instance_db(name).exists()


@proves("instance-hostile-ground")
@pytest.mark.parametrize("plant", [a_symlink, a_dangling_symlink])
def test_a_database_that_is_a_symlink_is_not_followed(
    shared: Daemon, elsewhere: Path, name: str, plant: Plant
) -> None:
    target = elsewhere / "target.db"
    target.write_bytes(b"")
    shared.instance_db(name).parent.mkdir()
    plant(shared.instance_db(name), target)
    assert refused(shared, name).code is ErrorCode.DATABASE_UNAVAILABLE
    assert target.read_bytes() == b""
    assert files_below(elsewhere) == [".jackin", "target.db"]


@proves("instance-hostile-ground")
def test_a_folder_exchanged_for_a_symlink_while_the_daemon_is_down_is_not_followed(
    daemon: Daemon,
) -> None:
    load(daemon, role_key="builder")
    daemon.kill()
    folder, moved = daemon.instance_db().parent, daemon.home.parent / "moved"
    folder.rename(moved)
    folder.symlink_to(moved)
    before = {path.name: path.stat().st_mtime_ns for path in moved.iterdir()}
    daemon.start()
    with daemon.client() as client, pytest.raises(MemdError) as caught:
        record(client, "working", instance=CONTAINER)
    assert caught.value.hint is not None
    assert get(daemon).container == CONTAINER  # the daemon goes on
    assert {path.name: path.stat().st_mtime_ns for path in moved.iterdir()} == before

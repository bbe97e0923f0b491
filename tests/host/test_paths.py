"""The home: made safely, and refused with a reason where it can't be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackin_memd.host.paths import Home, open_home, private_dir, require_dir
from jackin_memd.wire.address import MAX_SOCKET_PATH_BYTES
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container
from tests.support.proves import proves

NAME = Container("jk-k7p9m2xq-shop-builder")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The widest umask there is: nothing here may lean on the daemon's."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(given: Path) -> MemdError:
    with pytest.raises(MemdError) as refused:
        open_home(given)
    return refused.value


@proves("daemon-permissions", "store-permissions")
def test_every_folder_that_is_made_is_the_owners_alone(short_path: Path) -> None:
    home = open_home(short_path / "home")
    made = [home.root, *(path for path in home.root.rglob("*") if path.is_dir())]
    assert {str(path.relative_to(home.root)) for path in made} == {
        ".", "run", "data", "sockets", "data/daemon",
    }  # fmt: skip
    assert {mode(path) for path in made} == {0o700}


def test_the_folders_above_a_new_home_are_the_owners_alone_too(short_path: Path) -> None:
    home = open_home(short_path / "a" / "b" / "home")
    assert [mode(path) for path in (short_path / "a", short_path / "a" / "b", home.root)] == [
        0o700
    ] * 3


def test_a_home_that_is_there_is_taken_as_it_is(short_path: Path) -> None:
    (short_path / "data" / "workspaces").mkdir(parents=True)
    (short_path / "data").chmod(0o750)
    open_home(short_path)
    assert open_home(short_path).root == short_path
    assert mode(short_path / "data") == 0o750
    assert (short_path / "data" / "workspaces").is_dir()


def test_a_relative_path_is_refused() -> None:
    error = refusal(Path("jackin"))
    assert error.code is ErrorCode.HOME_UNUSABLE
    assert "not an absolute path" in error.message
    assert "JACKIN_HOME_DIR" in (error.hint or "")
    assert not Path("jackin").exists()


@pytest.mark.parametrize("where", ["home", "home/below", "home/deep/below"])
def test_a_file_in_the_way_is_refused(short_path: Path, where: str) -> None:
    (short_path / "home").write_text("mine", encoding="utf-8")
    error = refusal(short_path / where)
    assert error.code is ErrorCode.HOME_UNUSABLE
    assert str(short_path / where) in error.message
    assert (short_path / "home").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["run", "data", "sockets", "data/daemon"])
def test_a_file_in_a_folders_place_is_refused(short_path: Path, name: str) -> None:
    (short_path / name).parent.mkdir(exist_ok=True)
    (short_path / name).touch()
    error = refusal(short_path)
    assert error.code is ErrorCode.PATH_UNSAFE
    assert f"{short_path / name} is not a folder" in error.message


@pytest.mark.parametrize("name", ["run", "data", "sockets", "data/daemon"])
@pytest.mark.parametrize("to", ["elsewhere", "nowhere"])
def test_a_symlink_below_the_home_is_not_followed(short_path: Path, name: str, to: str) -> None:
    home, elsewhere = short_path / "home", short_path / "elsewhere"
    elsewhere.mkdir()
    (home / name).parent.mkdir(parents=True)
    (home / name).symlink_to(short_path / to)
    error = refusal(home)
    assert error.code is ErrorCode.PATH_UNSAFE
    assert f"{home / name} is a symlink" in error.message
    assert list(elsewhere.iterdir()) == []
    assert not (short_path / "nowhere").exists()


def test_a_home_that_is_a_symlink_is_the_folder_it_leads_to(short_path: Path) -> None:
    (short_path / "real").mkdir()
    (short_path / "home").symlink_to(short_path / "real")
    home = open_home(short_path / "home")
    assert home.root == short_path / "real"
    assert home.operator_socket == short_path / "real" / "run" / "memd.sock"


def test_a_home_that_is_a_symlink_to_nothing_is_refused(short_path: Path) -> None:
    (short_path / "home").symlink_to(short_path / "gone")
    assert refusal(short_path / "home").code is ErrorCode.HOME_UNUSABLE
    assert not (short_path / "gone").exists()


@pytest.mark.parametrize("fault", [PermissionError(13, "Permission denied"),
                                   OSError(28, "No space left on device"),
                                   OSError(30, "Read-only file system")])  # fmt: skip
def test_a_home_that_can_not_be_written_is_refused_with_the_systems_word(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError
) -> None:
    def refuse(path: object, mode: int = 0o777, **options: object) -> None:
        raise fault

    monkeypatch.setattr(os, "mkdir", refuse)
    error = refusal(short_path / "home")
    assert error.code is ErrorCode.HOME_UNUSABLE
    assert error.message.endswith(str(fault.strerror))


@proves("daemon-socket-path")
def test_the_longest_home_whose_socket_fits_is_taken_and_one_byte_more_is_not(
    short_path: Path,
) -> None:
    room = MAX_SOCKET_PATH_BYTES - len(os.fsencode(short_path / "x" / "run" / "memd.sock")) + 1
    assert open_home(short_path / ("x" * room)).run.is_dir()
    error = refusal(short_path / ("y" * (room + 1)))
    assert error.code is ErrorCode.SOCKET_PATH_TOO_LONG
    assert error.details["bytes"] == MAX_SOCKET_PATH_BYTES + 1
    assert "JACKIN_HOME_DIR" in (error.hint or "")
    assert not (short_path / ("y" * (room + 1))).exists()


@proves("daemon-socket-path")
def test_a_short_symlink_to_a_home_too_deep_is_refused(short_path: Path) -> None:
    deep = short_path / ("x" * 100)
    deep.mkdir()
    (short_path / "home").symlink_to(deep)
    assert refusal(short_path / "home").code is ErrorCode.SOCKET_PATH_TOO_LONG
    assert list(deep.iterdir()) == []


def test_bytes_count_not_letters(short_path: Path) -> None:
    assert refusal(short_path / ("é" * 50)).code is ErrorCode.SOCKET_PATH_TOO_LONG


# -- the tree --------------------------------------------------------------------


def test_every_file_of_an_instance_lies_where_the_design_says() -> None:
    home = Home(Path("/h"))
    places = {
        home.registry_db: "data/daemon/registry.db",
        home.lock: "run/memd.lock",
        home.start_lock: "run/memd.start.lock",
        home.operator_socket: "run/memd.sock",
        home.instance_db(NAME): f"data/{NAME}/jackin.db",
        home.manifest(NAME): f"data/{NAME}/.jackin/instance.json",
        home.instance_socket(NAME): f"sockets/{NAME}/memd.sock",
    }
    assert {home.name(path) for path in places} == set(places.values())
    assert [home.name(path) for path in places] == list(places.values())


def test_a_folder_is_required_to_be_one_and_to_be_there(tmp_path: Path) -> None:
    require_dir(tmp_path)
    private_dir(tmp_path / "new")
    private_dir(tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        require_dir(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        private_dir(tmp_path / "gone" / "below")

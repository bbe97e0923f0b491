"""Reading a manifest: no symlink followed, no pipe waited for, no end of bytes read."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from jackin_memd.core.identity import parse_manifest
from jackin_memd.host.manifest import MAX_MANIFEST_BYTES, read_manifest
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container
from tests.support.proves import proves


@pytest.fixture
def path(short_path: Path) -> Path:
    folder = short_path / "jk-x" / ".jackin"
    folder.mkdir(parents=True)
    return folder / "instance.json"


def refusal(path: Path) -> MemdError:
    descriptors = psutil.Process().num_fds()
    with pytest.raises(MemdError) as refused:
        read_manifest(path)
    assert psutil.Process().num_fds() == descriptors, "a descriptor was left open"
    return refused.value


def test_a_manifest_is_given_as_the_bytes_it_has(path: Path) -> None:
    path.write_bytes(b'{"any": "bytes"}\n')
    assert read_manifest(path) == b'{"any": "bytes"}\n'


def test_an_instance_without_a_manifest_has_none(path: Path) -> None:
    assert read_manifest(path) is None


def test_an_instance_without_its_folder_has_none(path: Path) -> None:
    path.parent.rmdir()
    assert read_manifest(path) is None
    path.parent.parent.rmdir()
    assert read_manifest(path) is None


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


ODD: dict[str, Callable[[Path], object]] = {
    "symlink": lambda path: path.symlink_to("/etc/hostname"),
    "symlink to nothing": lambda path: path.symlink_to("gone"),
    "folder": Path.mkdir,
    "pipe that nobody writes": os.mkfifo,
    "socket": make_socket,
}


@proves("instance-bad-manifest")
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_what_is_not_a_file_is_refused_at_once_and_named(
    path: Path, make: Callable[[Path], object]
) -> None:
    make(path)
    error = refusal(path)
    assert error.code is ErrorCode.INSTANCE_MANIFEST_INVALID
    assert f"{path} can't be read" in error.message
    assert "let jackin write it again" in (error.hint or "")


@proves("instance-bad-manifest")
def test_a_manifest_that_may_not_be_read_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()

    def refuse(*arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as faulty, pytest.raises(MemdError) as refused:
        faulty.setattr(os, "open", refuse)
        read_manifest(path)
    assert refused.value.message.endswith("Permission denied")


def test_a_manifest_of_the_limit_is_read_whole_and_one_byte_more_is_refused(path: Path) -> None:
    path.write_bytes(b"x" * MAX_MANIFEST_BYTES)
    assert read_manifest(path) == b"x" * MAX_MANIFEST_BYTES
    path.write_bytes(b"x" * (MAX_MANIFEST_BYTES + 1))
    error = refusal(path)
    assert error.code is ErrorCode.INSTANCE_MANIFEST_INVALID
    assert str(MAX_MANIFEST_BYTES + 1) in error.message


@proves("instance-hostile-ground")
@pytest.mark.parametrize("up", [1, 2], ids=[".jackin", "the instance's folder"])
def test_a_folder_that_is_a_symlink_is_not_followed(path: Path, up: int) -> None:
    path.write_bytes(b"{}")
    folder = path.parents[up - 1]
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))
    error = refusal(path)
    assert error.code is ErrorCode.PATH_UNSAFE
    assert f"{folder} is a symlink" in error.message


@pytest.mark.parametrize("up", [1, 2])
def test_a_file_in_a_folders_place_is_refused(path: Path, up: int) -> None:
    folder = path.parents[up - 1]
    for inner in reversed(path.parents[:up]):
        assert inner.exists()
    if up == 2:
        path.parent.rmdir()
    folder.rmdir()
    folder.touch()
    assert refusal(path).code is ErrorCode.PATH_UNSAFE


@proves("instance-bad-manifest")
@pytest.mark.parametrize("payload", [b"\xff\xfe{\0}\0", b'{"container_base": "\xe9"}'])
def test_a_manifest_that_is_not_utf_8_is_refused_by_what_reads_it(
    path: Path, payload: bytes
) -> None:
    path.write_bytes(payload)
    found = read_manifest(path)
    assert found == payload
    with pytest.raises(MemdError) as refused:
        parse_manifest(found, Container("jk-x"))
    assert refused.value.code is ErrorCode.INSTANCE_MANIFEST_INVALID

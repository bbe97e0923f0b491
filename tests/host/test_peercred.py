"""Who is at the other end: the kernel's word, on Linux and as macOS gives it."""

from __future__ import annotations

import os
import socket
import struct

import pytest

from jackin_memd.host.peercred import peer_uid


class Answering:
    """A socket whose options are what a test says; nobody is at its other end."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.asked: list[tuple[int, int]] = []

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        self.asked.append((level, option))
        return self._answer[:size]


def uid_of(connection: Answering) -> int | None:
    return peer_uid(connection)  # type: ignore[arg-type]


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constants that Python has there (sys/un.h: LOCAL_PEERCRED is 1)."""
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
    monkeypatch.setattr(socket, "LOCAL_PEERCRED", 1, raising=False)


def test_a_peer_of_this_process_has_its_uid() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == peer_uid(theirs) == os.geteuid()


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="Linux has it")
@pytest.mark.parametrize("uid", [0, 1000, 2**31, 2**32 - 2])
def test_on_linux_the_uid_stands_between_pid_and_gid(uid: int) -> None:
    connection = Answering(struct.pack("=iII", -1, uid, 77))
    assert uid_of(connection) == uid
    assert connection.asked == [(socket.SOL_SOCKET, socket.SO_PEERCRED)]


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("uid", [0, 501, 2**32 - 2])
def test_on_macos_the_uid_follows_the_version_of_the_record(uid: int) -> None:
    groups = struct.pack("=hxx16I", 2, 20, 12, *[0] * 14)
    connection = Answering(struct.pack("=II", 0, uid) + groups)
    assert uid_of(connection) == uid
    assert connection.asked == [(0, 1)]


@pytest.mark.usefixtures("macos")
def test_the_whole_record_of_macos_is_asked_for() -> None:
    record = struct.pack("=IIhxx16I", 0, 501, 1, *[20] * 16)
    sizes: list[int] = []

    class Measuring(Answering):
        def getsockopt(self, level: int, option: int, size: int) -> bytes:
            sizes.append(size)
            return super().getsockopt(level, option, size)

    assert uid_of(Measuring(record)) == 501
    assert sizes == [len(record)]


def test_a_system_that_can_not_say_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
    monkeypatch.delattr(socket, "LOCAL_PEERCRED", raising=False)
    connection = Answering(b"")
    assert uid_of(connection) is None
    assert connection.asked == []

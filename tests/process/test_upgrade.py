"""A daemon of another version can always be asked who it is, stopped and replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.vocab import PROTOCOL_VERSION
from tests.support.daemon import Daemon, record
from tests.support.other_builds import serve_as_version
from tests.support.processes import left
from tests.support.proves import proves
from tests.support.writer import ROOT

OLDER, NEWER = PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1

EITHER = pytest.mark.parametrize(("version", "older"), [(OLDER, "daemon"), (NEWER, "client")])


@pytest.fixture
def home(stopped: Daemon) -> Iterator[Daemon]:
    """A home in which the commands start daemons; none is left at the end."""
    yield stopped
    stopped.command("stop")
    assert left(stopped.home) == []


@contextmanager
def a_daemon_of_version(daemon: Daemon, version: int) -> Iterator[subprocess.Popen[bytes]]:
    """This build's daemon, but for its version."""
    with subprocess.Popen(
        [*serve_as_version(version), "serve", "--ready-fd", "1"],
        env=daemon.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def a_stranger(daemon: Daemon, version: int, *how: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of its own that only knows what every version must."""
    command = [sys.executable, "-m", "tests.support.other_builds", str(daemon.home), str(version)]
    with subprocess.Popen([*command, *how], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


Other = Callable[[Daemon, int], AbstractContextManager[subprocess.Popen[bytes]]]

KINDS = pytest.mark.parametrize("other", [a_daemon_of_version, a_stranger])


@proves("wire-hello-version", "daemon-shutdown-any-version")
@EITHER
@KINDS
def test_start_says_which_side_is_older_and_leaves_the_other_running(
    home: Daemon, other: Other, version: int, older: str
) -> None:
    with other(home, version) as running:
        finished = home.command("start")
        assert finished.status == ErrorCode.PROTOCOL_MISMATCH.exit_status
        assert f"the {older} is older" in finished.err
        assert "jackin-memd restart" in finished.err
        assert running.poll() is None
        assert home.command("serve").status == ErrorCode.DAEMON_RUNNING.exit_status
        assert running.poll() is None


@proves("daemon-shutdown-any-version", "daemon-singleton")
@EITHER
@KINDS
def test_restart_replaces_it(home: Daemon, other: Other, version: int, older: str) -> None:
    with other(home, version) as running:
        finished = home.command("restart")
        assert finished.status == 0, finished
        assert running.wait(20) == 0
    found = home.status()
    assert found.protocol_version == PROTOCOL_VERSION
    assert found.pid != running.pid
    assert f"started: pid {found.pid}" in finished.out


@proves("daemon-shutdown-any-version")
@EITHER
@KINDS
def test_stop_ends_it(home: Daemon, other: Other, version: int, older: str) -> None:
    with other(home, version) as running:
        finished = home.command("stop")
        assert (finished.status, finished.err) == (0, "")
        assert f"stopped: pid {running.pid}" in finished.out
        assert running.wait(20) == 0


@proves("daemon-shutdown-any-version", "daemon-status")
@EITHER
@KINDS
def test_status_shows_it_and_ping_says_what_is_wrong(
    home: Daemon, other: Other, version: int, older: str
) -> None:
    with other(home, version) as running:
        found = json.loads(home.command("status", "--json").out)
        assert (found["pid"], found["protocol_version"]) == (running.pid, version)
        assert home.command("status").status == 0
        refused = home.command("ping")
        assert refused.status == ErrorCode.PROTOCOL_MISMATCH.exit_status
        assert f"the {older} is older" in refused.err


@proves("daemon-shutdown-any-version", "instance-restart")
def test_an_upgrade_keeps_instances_and_rows(home: Daemon) -> None:
    with a_daemon_of_version(home, PROTOCOL_VERSION):
        home.load()
        with home.capsule() as capsule:
            record(capsule, "before")
        home.command("stop")
    with a_daemon_of_version(home, OLDER):  # the same files under the old version
        assert home.command("restart").status == 0
    with home.capsule() as capsule:
        assert record(capsule, "after").first_id == 2


def test_one_that_does_not_take_a_shutdown_is_named_for_a_kill(home: Daemon) -> None:
    with a_stranger(home, OLDER, "stubborn") as running:
        for command in ("stop", "restart"):
            finished = home.command(command)
            assert finished.status == ErrorCode.DAEMON_STOP_FAILED.exit_status
            assert f"kill {running.pid}" in finished.err
        assert running.poll() is None

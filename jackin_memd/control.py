"""Starting, stopping and asking the daemon of a home, from outside it.

Whether a daemon is there is told by its lock and by hello, never by a pid.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import msgspec
import platformdirs

from jackin_mem.blocking import Client
from jackin_memd.host.config import CONFIG_VARIABLE, config_dir
from jackin_memd.host.locks import HeldLock
from jackin_memd.host.paths import Home
from jackin_memd.wire.errors import ErrorCode, MemdError, from_wire
from jackin_memd.wire.session import (
    DaemonStatus,
    DaemonStatusParams,
    PingParams,
    ShutdownParams,
)

#: For a daemon to come up. It migrates nothing at start, so this is generous.
START_S = 30.0

#: For a daemon to finish what it accepted and let go of its lock.
STOP_S = 30.0

PROBE_S = 5.0
_POLL_S = 0.02


class Probe(Enum):
    READY = "ready"
    WRONG_VERSION = "wrong version"
    UNREACHABLE = "unreachable"


class Found(msgspec.Struct, frozen=True):
    probe: Probe
    status: DaemonStatus | None = None
    error: MemdError | None = None


def probe(socket: Path) -> Found:
    """Is there a daemon that this build can talk to?"""
    try:
        with Client(socket, timeout_s=PROBE_S) as client:
            client.call("ping", PingParams())
            return Found(Probe.READY, status=client.call("status", DaemonStatusParams()))
    except MemdError as error:
        wrong = error.code is ErrorCode.PROTOCOL_MISMATCH
        return Found(Probe.WRONG_VERSION if wrong else Probe.UNREACHABLE, error=error)


def start(home: Home, arguments: list[str]) -> tuple[DaemonStatus, bool]:
    """Make sure that a daemon runs; its status, and whether it was started now.

    `arguments` are further ones for `jackin-memd serve`. Raises MemdError.
    """
    with _sole_starter(home):
        found = probe(home.operator_socket)
        if found.status is not None:
            return found.status, False
        if found.probe is Probe.WRONG_VERSION and found.error is not None:
            error = found.error
            raise MemdError(
                error.code,
                f"a daemon of another build runs already: {error.message}",
                hint="replace it: jackin-memd restart",
                details=error.details,
            )
        _spawn(home, arguments)
        started = probe(home.operator_socket)
        if started.status is None:
            raise started.error or _start_failed(home, "it said it was ready, but does not answer")
        return started.status, True


@contextmanager
def _sole_starter(home: Home) -> Iterator[None]:
    """One starter at a time: those who wait find a running daemon when it is their turn."""
    deadline = time.monotonic() + 2 * START_S
    while True:
        try:
            lock = HeldLock(home.start_lock)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _start_failed(home, f"another starter holds {home.start_lock}") from None
            time.sleep(_POLL_S)
    with lock:
        yield


def _spawn(home: Home, arguments: list[str]) -> None:
    """Start `serve` in a session of its own and wait for its word."""
    reading, writing = os.pipe()
    try:
        with log_file().open("ab") as log:
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "jackin_memd", "--home", str(home.root)),
                    *("serve", "--ready-fd", str(writing), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(writing,),
                start_new_session=True,
                cwd="/",
                env={**os.environ, CONFIG_VARIABLE: str(config_dir().absolute())},
            )
        os.close(writing)
        writing = -1
        _await_word(home, reading)
    finally:
        os.close(reading)
        if writing != -1:
            os.close(writing)


def _await_word(home: Home, reading: int) -> None:
    ready, _, _ = select.select([reading], [], [], START_S)
    if not ready:
        raise _start_failed(home, f"it was not ready after {START_S:g} s")
    word = os.read(reading, 65536)
    if word == READY:
        return
    if not word:
        raise _start_failed(home, "it ended before it was ready")
    failure = msgspec.json.decode(word, type=StartFailure)
    raise from_wire(0, failure.message, {"code": failure.code, "hint": failure.hint})


READY = b"ready\n"


class StartFailure(msgspec.Struct, frozen=True):
    """What `serve` writes to its ready descriptor when it can't start."""

    code: str
    message: str
    hint: str | None = None


def log_file() -> Path:
    """Where a daemon that `start` put in the background writes its log."""
    folder = platformdirs.user_log_path("jackin-memd", appauthor=False)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "memd.log"


def _start_failed(home: Home, why: str) -> MemdError:
    return MemdError(
        ErrorCode.DAEMON_START_FAILED,
        f"the daemon of {home.root} did not come up: {why}",
        hint=f"its log is {log_file()}; in the foreground: jackin-memd serve",
    )


def stop(home: Home) -> int | None:
    """Stop the daemon and wait until its lock is free.

    Returns its pid, or None where none was running. Raises MemdError
    (DAEMON_STOP_FAILED).
    """
    try:
        with Client(home.operator_socket, timeout_s=PROBE_S) as client:
            pid: int = client.call("shutdown", ShutdownParams()).pid
    except MemdError as error:
        if not _lock_is_held(home):
            return None
        raise MemdError(
            ErrorCode.DAEMON_STOP_FAILED,
            f"a daemon holds {home.lock} but does not take a shutdown: {error.message}",
            hint=f"end it yourself: kill {_noted_pid(home)}",
        ) from error
    deadline = time.monotonic() + STOP_S
    while _lock_is_held(home):
        if time.monotonic() > deadline:
            raise MemdError(
                ErrorCode.DAEMON_STOP_FAILED,
                f"the daemon (pid {pid}) still runs {STOP_S:g} s after it accepted to stop",
                hint=f"look at {log_file()}; end it with: kill {pid}",
            )
        time.sleep(_POLL_S)
    return pid


def _lock_is_held(home: Home) -> bool:
    try:
        HeldLock(home.lock).close()
    except BlockingIOError:
        return True
    return False


def _noted_pid(home: Home) -> str:
    """What the lock's holder wrote there for a person."""
    try:
        return home.lock.read_text(encoding="ascii").strip() or "its pid"
    except (OSError, UnicodeDecodeError):
        return "its pid"

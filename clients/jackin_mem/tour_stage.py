"""Where `jackin-mem tour` plays: a throw-away home and a daemon of it.

Each part can be waited for (a line, a pipe, a row) and is gone when its
`with` ends, whatever happened.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Self

from jackin_memd.wire import address
from jackin_memd.wire.errors import ErrorCode, MemdError, from_wire

SERVE = (sys.executable, "-m", "jackin_memd", "serve")

#: For a daemon that said why it can't start to finish its log.
LAST_WORDS_S = 2.0

CONTAINER = "jk-k7p9m2xq-shop-builder"

#: What jackin writes beside an instance (the members that matter to the daemon).
MANIFEST = {
    "version": 2,
    "container_base": CONTAINER,
    "instance_id": "k7p9m2xq",
    "workspace_name": "shop",
    "workspace_label": "shop",
    "workdir": "/work/shop",
    "role_key": "builder",
    "agent_runtime": "claude",
    "status": "running",
    "sessions": [],
}


class Clock:
    """The time that is left of the whole tour, for every wait."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._end - monotonic())


class Stage:
    """A folder with a jackin home in it, and the files of the play beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ledger = folder / "ledger.jsonl"
        self.log = folder / "log"

    @property
    def operator_socket(self) -> Path:
        return address.operator_socket(self.home)

    @property
    def instance_socket(self) -> Path:
        return address.instance_socket(self.home, CONTAINER)

    @property
    def database(self) -> Path:
        return self.home / "data" / CONTAINER / "jackin.db"

    def environment(self) -> dict[str, str]:
        """For the processes: this home and no configuration of the operator's."""
        environment = {
            **os.environ,
            address.HOME_VARIABLE: str(self.home),
            "JACKIN_CONFIG_DIR": str(self.folder / "config"),
        }
        environment.pop(address.SOCKET_VARIABLE, None)
        return environment

    def create_instance(self) -> None:
        """The instance's folder, as jackin leaves it before the container starts."""
        folder = self.home / "data" / CONTAINER / ".jackin"
        folder.mkdir(parents=True)
        (folder / "instance.json").write_text(json.dumps(MANIFEST, indent=2), encoding="utf-8")

    def log_tail(self) -> str:
        """The last lines that daemon and writer logged."""
        if not self.log.exists():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "".join(f"{line}\n" for line in lines[-15:])


@contextmanager
def stage() -> Iterator[Stage]:
    # Not in $TMPDIR: on macOS that is so long that the sockets would not fit.
    parent = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108 - mkdtemp makes it private
    folder = Path(tempfile.mkdtemp(prefix="jk-tour-", dir=parent)).resolve()
    try:
        yield Stage(folder)
    finally:
        rmtree(folder, ignore_errors=True)


class Daemon:
    def __init__(self, stage: Stage, clock: Clock) -> None:
        self._stage = stage
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> int:
        """Start it and wait until it is ready; its pid. Raises MemdError."""
        reading, writing = os.pipe()
        try:
            with self._stage.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*SERVE, "--ready-fd", str(writing)],
                    env=self._stage.environment(),
                    pass_fds=(writing,),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for the tour, which ends it in order
                )
            os.close(writing)
            writing = -1
            self._await_word(self._process, reading)
        finally:
            os.close(reading)
            if writing != -1:
                os.close(writing)
        return self._process.pid

    def _await_word(self, process: subprocess.Popen[bytes], reading: int) -> None:
        ready, _, _ = select.select([reading], [], [], self._clock.left())
        word = os.read(reading, 64 * 1024) if ready else b""
        if word == b"ready\n":
            return
        end_of(process, Clock(LAST_WORDS_S))
        try:
            told = json.loads(word)
        except ValueError:
            told = {"code": "DAEMON_START_FAILED", "message": "the daemon did not come up"}
        raise from_wire(0, str(told.pop("message", "")), told)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait until it has finished what it accepted."""
        if self._process is not None:
            self._process.terminate()
            if end_of(self._process, self._clock) is None:
                raise stuck("the daemon does not end after SIGTERM")


def end_of(process: subprocess.Popen[bytes], clock: Clock) -> int | None:
    """The exit status; None where it still runs when the time is up."""
    try:
        return process.wait(clock.left())
    except subprocess.TimeoutExpired:
        return None


def stuck(what: str) -> MemdError:
    return MemdError(
        ErrorCode.REQUEST_TIMEOUT,
        f"the tour stopped: {what}",
        hint="the log above says more; run it again on an idle machine, and report it "
        "if it happens again",
    )

"""A real daemon: its own process, home, sockets and files."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jackin_mem.blocking import Client
from jackin_memd.wire import address
from jackin_memd.wire.instances import Instance, InstanceLoadParams
from jackin_memd.wire.session import DaemonStatus, DaemonStatusParams
from jackin_memd.wire.status import StatusEntry, StatusRecordParams, StatusRecordResult
from tests.support.log_lines import LogLines

CONTAINER = "jk-k7p9m2xq-shop-builder"
OTHER = "jk-a2b3c4d5-shop-reviewer"

#: Nothing here takes this long; it is where a hung daemon becomes a failed test.
PATIENCE_S = 20.0


class StartError(Exception):
    """The daemon said why it can't start."""

    def __init__(self, failure: dict[str, Any], exit_status: int) -> None:
        super().__init__(failure)
        self.failure = failure
        self.exit_status = exit_status


class Finished(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


class Daemon:
    """A daemon of a home; may be killed and started again on the same files."""

    def __init__(self, home: Path, config: Path) -> None:
        self.home = home
        self.config = config
        self.log = LogLines(home.parent / "daemon.log")
        self._process: subprocess.Popen[bytes] | None = None

    # -- process ---------------------------------------------------------------

    def environment(self, **extra: str) -> dict[str, str]:
        inherited = {
            name: os.environ[name] for name in os.environ if not name.startswith("JACKIN_")
        }
        user = str(self.home.parent / "user")
        return {
            **inherited,
            "HOME": user,
            "XDG_STATE_HOME": user,
            "JACKIN_HOME_DIR": str(self.home),
            "JACKIN_CONFIG_DIR": str(self.config),
            **extra,
        }

    def configure(self, **sections: dict[str, Any]) -> None:
        """Write memd.toml: `configure(timeouts={"watch_s": 0.05})`."""
        lines = []
        for section, values in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        (self.config / "memd.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def start(self, *arguments: str, prefix: tuple[str, ...] = (), **environment: str) -> None:
        """Start `serve` and wait for its word. Raises StartError."""
        reading, writing = os.pipe()
        command = [*prefix, sys.executable, "-m", "jackin_memd", "serve", *arguments]
        self._process = subprocess.Popen(
            [*command, "--ready-fd", str(writing)],
            env=self.environment(**environment),
            pass_fds=(writing,),
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self.log.follow(self._process.stderr)
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            ready, _, _ = select.select([pipe], [], [], PATIENCE_S)
            word = pipe.read(65536) if ready else b""
        if word != b"ready\n":
            status = self.wait()
            raise StartError(json.loads(word or b"{}"), status)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self) -> int:
        """Wait for its end; returns the exit status."""
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer would."""
        self.process.kill()
        self.wait()

    def terminate(self) -> int:
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self.log.ended()

    def wait_for_log(self, text: str, *, times: int = 1) -> str:
        """The line of the log that has `text`, for the n-th time, once it is there."""
        return self.log.wait_for(text, times=times, patience_s=PATIENCE_S)

    # -- commands ----------------------------------------------------------------

    def spawn_command(
        self, *arguments: str, prefix: tuple[str, ...] = (), **environment: str
    ) -> subprocess.Popen[str]:
        """`jackin-memd` with these arguments, beside whatever else runs."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "jackin_memd", *arguments],
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(
        self, *arguments: str, prefix: tuple[str, ...] = (), **environment: str
    ) -> Finished:
        """Run `jackin-memd` with these arguments to its end."""
        with self.spawn_command(*arguments, prefix=prefix, **environment) as process:
            out, err = process.communicate(timeout=2 * PATIENCE_S)
        return Finished(process.returncode, out, err)

    # -- sockets and files -------------------------------------------------------

    @property
    def socket(self) -> Path:
        return address.operator_socket(self.home)

    def instance_socket(self, container: str = CONTAINER) -> Path:
        return address.instance_socket(self.home, container)

    def instance_db(self, container: str = CONTAINER) -> Path:
        return self.home / "data" / container / "jackin.db"

    def client(self, path: Path | None = None, **options: Any) -> Client:
        """A client of the operator's socket, or of `path`."""
        return Client(path or self.socket, timeout_s=PATIENCE_S, **options)

    def capsule(self, container: str = CONTAINER) -> Client:
        """A client as a process inside the container has it."""
        return self.client(self.instance_socket(container))

    def rows(self, query: str, container: str = CONTAINER) -> list[tuple[Any, ...]]:
        """What an independent reader finds in an instance's file."""
        uri = f"{self.instance_db(container).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as reader:
            return reader.execute(query).fetchall()

    # -- shorthands ----------------------------------------------------------------

    def load(self, container: str = CONTAINER, role_key: str = "builder") -> Instance:
        with self.client() as client:
            loaded: Instance = client.call(
                "instance.load",
                InstanceLoadParams(container=container, workspace_name="shop", role_key=role_key),
            )
            return loaded

    def status(self) -> DaemonStatus:
        with self.client() as client:
            found: DaemonStatus = client.call("status", DaemonStatusParams())
            return found


def entry(word: str = "working", metadata: Any = None) -> StatusEntry:
    return StatusEntry(new_status=word, metadata=metadata)


def record(client: Client, *words: str, **options: Any) -> StatusRecordResult:
    """Record one row for each word in one call."""
    params = StatusRecordParams(entries=[entry(word) for word in words], **options)
    recorded: StatusRecordResult = client.call("status.record", params)
    return recorded


@contextmanager
def new_daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon that is not started yet, of an empty home below `folder`."""
    config = folder / "config"
    config.mkdir()
    daemon = Daemon(folder / "home", config)
    try:
        yield daemon
    finally:
        daemon.end()

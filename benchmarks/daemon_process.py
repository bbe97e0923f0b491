"""The real daemon in a throw-away home, and other helper processes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from jackin_mem.blocking import Client
from jackin_memd.wire.address import operator_socket
from jackin_memd.wire.instances import InstanceLoadParams

_ROOT = Path(__file__).resolve().parent.parent
_PATIENCE_S = 120.0

#: Runtime rows are synced before the reply, as the direct writers' rows are.
_FULL = '[durability]\nruntime = "full"\n'


def container_name(number: int) -> str:
    return f"jk-{number:08d}-bench-role"


class Daemon:
    """One home; the daemon in it may be stopped and started again."""

    def __init__(self, folder: Path, extra: Mapping[str, str] | None = None) -> None:
        """`extra` is added to the environment of the daemon."""
        folder.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        config = folder / "config"
        config.mkdir()
        (config / "memd.toml").write_text(_FULL, encoding="utf-8")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("JACKIN_")}
        self.environment = {
            **inherited,
            "JACKIN_HOME_DIR": str(self.home),
            "JACKIN_CONFIG_DIR": str(config),
        }
        self._extra = dict(extra or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def socket(self) -> Path:
        return operator_socket(self.home)

    def start(self, interpreter: Sequence[str] = (sys.executable,)) -> float:
        """Start it and wait until it is ready; returns the seconds that took."""
        reading, writing = os.pipe()
        arguments = ["-m", "jackin_memd", "serve", "--log-level", "warning"]
        before = perf_counter()
        self._process = subprocess.Popen(
            [*interpreter, *arguments, "--ready-fd", str(writing)],
            env={**self.environment, **self._extra},
            pass_fds=(writing,),
            cwd=_ROOT,
        )
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            ready, _, _ = select.select([pipe], [], [], _PATIENCE_S)
            word = pipe.read(4096) if ready else b""
        took = perf_counter() - before
        if word != b"ready\n":
            raise RuntimeError(f"the daemon did not start: {word.decode() or 'no word of it'}")
        return took

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_PATIENCE_S)
            self._process = None

    def client(self) -> Client:
        return Client(self.socket, timeout_s=_PATIENCE_S)

    def load(self, numbers: Sequence[int]) -> None:
        """Load instances of the names that `container_name` gives."""
        with self.client() as client:
            for number in numbers:
                params = InstanceLoadParams(
                    container=container_name(number), role_key="role", agent_runtime="claude"
                )
                client.call("instance.load", params)


@contextmanager
def running_daemon(
    folder: Path, *, instances: int = 1, extra: Mapping[str, str] | None = None
) -> Iterator[Daemon]:
    """A daemon with durable runtime rows and `instances` loaded instances."""
    daemon = Daemon(folder, extra)
    daemon.start()
    try:
        daemon.load(range(instances))
        yield daemon
    finally:
        daemon.stop()


def start_helper(
    module: str, *arguments: str, extra: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """`python -m benchmarks.<module>`; call `wait_ready` before it is used."""
    return subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(extra or {})},
        cwd=_ROOT,
    )


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"a helper process did not start: {process.args!r}")


@contextmanager
def echo_server(path: Path) -> Iterator[Path]:
    process = start_helper("echo_server", str(path))
    try:
        wait_ready(process)
        yield path
    finally:
        process.terminate()
        process.wait()

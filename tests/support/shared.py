"""A running daemon that the tests of a module share, and whether it came through."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jackin_memd.wire.session import PingParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, new_daemon


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose sockets fit the system's limit; pytest's own are too deep."""
    folder = Path(tempfile.mkdtemp(prefix="jm-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running_daemon(**config: dict[str, Any]) -> Iterator[Daemon]:
    """A daemon with these settings that serves two instances."""
    with short_folder() as folder, new_daemon(folder) as daemon:
        daemon.configure(**config)
        daemon.start()
        daemon.load(CONTAINER)
        daemon.load(OTHER, "reviewer")
        yield daemon


def assert_unharmed(daemon: Daemon) -> None:
    """It answers as before, and nothing in it went wrong in a way that it did not expect."""
    with daemon.client() as client:
        client.call("ping", PingParams())
    assert daemon.log.matching(lambda line: " error " in line or "Traceback" in line) == []

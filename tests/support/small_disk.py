"""A disk of its own, small enough to fill, or one that can't be written."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, mounted at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (65_536, 4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._filler.unlink()

    def make_read_only(self, read_only: bool = True) -> None:
        _run("mount", "-o", f"remount,{'ro' if read_only else 'rw'}", str(self.path))


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Disk]:
    """Skips the test where it may not be mounted."""
    path.mkdir(parents=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted here: {error}")
    try:
        yield Disk(path)
    finally:
        _run("umount", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

"""A disk that fails at the k-th write or sync, and tells the modes of what it wrote.

It stands between SQLite and the file system as SQLite's default VFS, so that
what is tested opens its files as it always does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

_numbers = itertools.count()


class Disk(apsw.VFS):
    """Counts writes and syncs of database files; raises `fault` from the k-th on."""

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name, base)
        self.base = base
        self.operations = 0
        self.syncs = 0
        self.modes: set[int] = set()
        """The modes that files had when something was written to them."""
        self.failed = False
        """Whether it failed since `fail_at`."""
        self._fail_at: int | None = None
        self._fault: type[apsw.Error] = apsw.FullError
        self._below = Path("/")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self, name, flags)

    def fail_at(self, operation: int, fault: type[apsw.Error], *, below: Path = Path("/")) -> None:
        """From the `operation`-th write or sync on (from 1, counted from now), of the
        files below a folder."""
        self.operations, self.failed = 0, False
        self._fail_at, self._fault, self._below = operation, fault, below

    def mend(self) -> None:
        self._fail_at = None

    def touched(self, path: str) -> None:
        self.modes.add(Path(path).stat().st_mode & 0o777)
        if not Path(path).is_relative_to(self._below):
            return
        self.operations += 1
        if self._fail_at is not None and self.operations >= self._fail_at:
            self.failed = True
            raise self._fault


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._touched()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.syncs += 1
        self._touched()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._touched()
        super().xTruncate(size)

    def _touched(self) -> None:
        if self._path is not None:  # a temporary file has no name
            self._disk.touched(self._path)


@contextmanager
def faulty_disk() -> Iterator[Disk]:
    """Every database opened in the block is on this disk."""
    base, name = apsw.vfs_names()[0], f"faulty-{next(_numbers)}"
    disk = Disk(name, base)
    apsw.set_default_vfs(name)
    try:
        yield disk
    finally:
        apsw.set_default_vfs(base)
        disk.unregister()


def every_failure(disk: Disk, fault: type[apsw.Error], attempt: Callable[[int], None]) -> int:
    """Attempt with a disk that fails at its first operation, its second, and so on,
    until the attempt meets no fault. Returns how many failures there were."""
    for operation in itertools.count(1):
        disk.fail_at(operation, fault)
        attempt(operation)
        disk.mend()
        if not disk.failed:
            return operation - 1
    raise AssertionError

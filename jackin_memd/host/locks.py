"""flock on files of their own: who is the daemon of a home, and who may start one.

`flock`, not `lockf`: a POSIX lock is lost when the process closes any other
descriptor of the file.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from jackin_memd.wire.errors import ErrorCode, MemdError


class HeldLock:
    """An exclusive lock for as long as the object is open."""

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        """Raises BlockingIOError where another holds it and `wait` is false, MemdError
        (HOME_UNUSABLE) where there can be no lock."""
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise MemdError(
                ErrorCode.HOME_UNUSABLE,
                f"the lock {path} can't be opened: {error.strerror or error}",
                hint="the jackin home must be writable, with room on its disk",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            os.close(self._descriptor)
            raise
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)

    def write(self, text: str) -> None:
        """Leave a note in the file, for a person; nothing reads it to decide."""
        with suppress(OSError):  # the disk may be full
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)

    def check(self) -> None:
        """Raises MemdError (DAEMON_STOPPING) where the path is not this lock any more:
        another daemon may hold the new file."""
        try:
            status = self.path.lstat()
            intact = (status.st_dev, status.st_ino) == self._identity
        except OSError:
            intact = False
        if not intact:
            raise MemdError(
                ErrorCode.DAEMON_STOPPING,
                f"the daemon's lock {self.path} was removed or replaced, so it stops",
                hint="start it again; nothing of this call was stored",
            )

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

"""Reading an instance's `.jackin/instance.json` without following a symlink."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jackin_memd.host.paths import require_dir
from jackin_memd.wire.errors import ErrorCode, MemdError

#: jackin's own are below 8 KiB.
MAX_MANIFEST_BYTES = 1024 * 1024


def read_manifest(path: Path) -> bytes | None:
    """The manifest's bytes; None where the instance has none.

    Raises MemdError (PATH_UNSAFE, INSTANCE_MANIFEST_INVALID).
    """
    try:
        require_dir(path.parent.parent)
        require_dir(path.parent)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(path, "it is not a regular file")
        if status.st_size > MAX_MANIFEST_BYTES:
            raise _unreadable(path, f"it has {status.st_size} bytes")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_MANIFEST_BYTES)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, why: str) -> MemdError:
    return MemdError(
        ErrorCode.INSTANCE_MANIFEST_INVALID,
        f"{path} can't be read: {why}",
        hint="let jackin write it again (reconnect the instance), then load it again",
    )

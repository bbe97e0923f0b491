"""Binding a Unix socket at a path, and knowing whether it is still ours.

Only the holder of the daemon's lock binds. What is at the path is removed
only when it is a socket that refuses connections, left by a killed daemon;
anything else is left alone with a message.

An instance's folder is writable from inside its container, the folder that
holds it is not: so the folder itself can be trusted, names inside it can't.
`bind` and `unlink` never follow a symlink in the last place.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from jackin_memd.wire.address import check_length
from jackin_memd.wire.errors import ErrorCode, MemdError

#: Connections that wait to be accepted; Linux cuts it to net.core.somaxconn.
BACKLOG = 1024


class BoundSocket:
    """A listening socket and the inode of its path."""

    def __init__(self, path: Path, listener: socket.socket) -> None:
        self.path = path
        self.listener = listener
        self._identity = _identity(path)

    @property
    def in_place(self) -> bool:
        """Whether the path still leads to this socket."""
        return self._identity is not None and _identity(self.path) == self._identity

    def close(self) -> None:
        """Close, and remove the path where it is still ours."""
        if self.in_place:
            with suppress(OSError):  # an agent may have closed its folder; the next bind clears it
                self.path.unlink()
        self.listener.close()


def bind(path: Path) -> BoundSocket:
    """Listen at `path`, with a socket that is 0600 from its first moment.

    Raises MemdError (SOCKET_PATH_TOO_LONG, SOCKET_PATH_OCCUPIED).
    """
    check_length(path)
    try:
        _clear(path)
        return BoundSocket(path, _listen(path))
    except OSError as error:
        raise _occupied(path, error.strerror or str(error)) from error


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # What a writer thread creates meanwhile is a file, which is to be 0600 too.
    umask = os.umask(0o177)
    try:
        listener.setblocking(False)
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(umask)
    return listener


def _clear(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise _occupied(path, "something that is not a socket is there")
    if answers(path):
        raise _occupied(path, "another program listens there")
    path.unlink(missing_ok=True)


def answers(path: Path) -> bool:
    """Whether anything listens. A full backlog (EAGAIN) counts as listening."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
        return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _occupied(path: Path, why: str) -> MemdError:
    return MemdError(
        ErrorCode.SOCKET_PATH_OCCUPIED,
        f"no socket can be opened at {path}: {why}",
        hint="stop that program, move the file away, or make the folder writable again; "
        "the daemon removes nothing that it did not make",
    )

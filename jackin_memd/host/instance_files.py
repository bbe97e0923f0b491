"""The files of one instance that are the daemon's: are they there, take them away."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jackin_memd.host.paths import Home
from jackin_memd.wire import address
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container


def check_socket_path(home: Home, container: Container) -> None:
    """Raises MemdError (SOCKET_PATH_TOO_LONG)."""
    address.check_length(home.instance_socket(container))


def missing(home: Home, container: Container) -> MemdError | None:
    """What a loaded instance has lost on disk; None where all is there."""
    folder, database = home.instance_dir(container), home.instance_db(container)
    try:
        if not stat.S_ISREG(os.lstat(database).st_mode):
            return _lost(database, "is not a regular file any more")
    except (FileNotFoundError, NotADirectoryError):
        gone = database if folder.is_dir() else folder
        return _lost(gone, "is gone")
    except OSError as error:
        return _lost(database, f"can't be reached ({error.strerror})")
    return None


def _lost(path: Path, what: str) -> MemdError:
    return MemdError(
        ErrorCode.INSTANCE_FOLDER_MISSING,
        f"{path} {what}",
        hint="if the instance was purged: jackin-mem instance purge NAME; "
        "to begin a new database: jackin-mem instance load NAME",
    )


def remove(home: Home, container: Container) -> list[str]:
    """Delete jackin.db with its side files, the socket, and folders left empty.

    The database must be closed. Everything else there is jackin's and stays.
    Returns what is gone, as paths below the home. Raises OSError.
    """
    database = home.instance_db(container)
    # The main file goes last: until then a purge that was cut off is seen as one.
    files = (Path(f"{database}-shm"), Path(f"{database}-wal"), database)
    removed = [path for path in files if _unlink(path)]
    removed += [
        folder
        for folder in (home.instance_dir(container), home.socket_dir(container))
        if _remove_empty(folder)
    ]
    return [home.name(path) for path in removed]


def _unlink(path: Path) -> bool:
    """Never follows a symlink: it is the name that goes."""
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:  # not empty, or not there: it is jackin's to remove
        return False
    return True

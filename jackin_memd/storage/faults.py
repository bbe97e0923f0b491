"""APSW's exceptions as errors that say what to do."""

from __future__ import annotations

import apsw

from jackin_memd.wire.errors import ErrorCode, MemdError


def translate(error: apsw.Error | OSError, what: str) -> MemdError:
    """The caller's error for a failed statement on `what` (a file below the home),
    or for its file or folder that can't be reached.

    SQLite's own text goes along only where it can't quote stored values.
    """
    if isinstance(error, OSError):
        return MemdError(
            ErrorCode.DATABASE_UNAVAILABLE,
            f"{what} can't be reached: {error.strerror}",
            hint="look at the folder's owner and its mode; load the instance to make it anew",
        )
    if isinstance(error, apsw.FullError) or _has_no_room_for_shm(error):
        return MemdError(
            ErrorCode.DISK_FULL,
            f"no space left to write {what}; nothing of this call was stored",
            hint="free some space, then repeat the call; the daemon goes on by itself",
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return MemdError(
            ErrorCode.DATABASE_CORRUPT,
            f"{what} is damaged: {error}",
            hint="keep the file aside and restore a backup, or purge the instance",
        )
    if isinstance(error, apsw.CantOpenError):
        return MemdError(
            ErrorCode.DATABASE_UNAVAILABLE,
            f"{what} can't be opened: {error}",
            hint="look at the folder's owner, its mode and that no symlink leads there",
        )
    if isinstance(error, apsw.ReadOnlyError):
        return MemdError(
            ErrorCode.DATABASE_UNAVAILABLE,
            f"{what} can't be written: {error}",
            hint="make the file and its folder writable for the daemon's user",
        )
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return MemdError(
            ErrorCode.DATABASE_UNAVAILABLE,
            f"another program holds a lock on {what}",
            hint="close the program that writes it; only the daemon may",
        )
    if isinstance(error, apsw.IOError):
        return MemdError(
            ErrorCode.STORAGE_FAILED,
            f"reading or writing {what} failed: {error}",
            hint="look at the disk; nothing of this call was stored",
        )
    return MemdError(ErrorCode.INTERNAL_ERROR, f"SQLite refused a statement on {what}")


def _has_no_room_for_shm(error: apsw.Error) -> bool:
    """What SQLite says where an opening on a full disk can't make its -shm file."""
    return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE

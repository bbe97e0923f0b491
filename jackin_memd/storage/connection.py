"""Opening a database: flags, pragmas, modes, and noticing that it was replaced."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from enum import Enum
from pathlib import Path

import apsw
import msgspec

from jackin_memd.wire.errors import ErrorCode, MemdError

#: The library that APSW carries, not the system's.
SQLITE_VERSION = apsw.sqlite_lib_version()

#: Locks are held for one group commit or one checkpoint; a reader of another
#: program may stretch that. Nuzo's and the seed's number.
BUSY_TIMEOUT_MS = 5000

#: KiB of pages a connection may keep; 200 instances must stay under 80 MiB.
_CACHE_KIB = 256

#: Prepared statements that a connection keeps; a table's methods need a handful.
_STATEMENTS = 16

#: A WAL that a long reader let grow is cut back to this after a checkpoint.
_WAL_LIMIT_BYTES = 8 * 1024 * 1024


class Sync(Enum):
    """What an acknowledged commit survives."""

    FULL = "full"
    """A power cut: the WAL is synced before the reply."""
    NORMAL = "normal"
    """A killed process; a power cut may take the last commits, never half of one."""


def open_writer(path: Path, sync: Sync, *, create: bool) -> apsw.Connection:
    """The one connection that writes `path`.

    The folder must be resolved: no symlink may be left in the path. The
    journal mode is not touched yet, see `begin_wal`. The files are the owner's
    alone before anything is in them, whatever the umask. Raises OSError too.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
        _create_private(path)
    connection = apsw.Connection(os.fspath(path), flags=flags, statementcachesize=_STATEMENTS)
    make_private(path)
    _configure(connection)
    connection.execute(f"PRAGMA synchronous={sync.value.upper()}")
    return connection


def begin_wal(connection: apsw.Connection) -> None:
    """Switch to WAL, which is kept in the file. Raises MemdError where it can't."""
    mode = connection.execute("PRAGMA journal_mode=WAL").get
    if mode != "wal":
        raise MemdError(
            ErrorCode.DATABASE_UNAVAILABLE,
            f"the database can't be put in WAL mode (it stays in {mode})",
            hint="the file system must allow shared memory maps; use a local disk",
        )
    connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT_BYTES}").fetchall()


def open_reader(path: Path) -> apsw.Connection:
    """A connection that can't write. The file must exist."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(os.fspath(path), flags=flags, statementcachesize=_STATEMENTS)
    _configure(connection)
    return connection


def _configure(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.execute(f"PRAGMA foreign_keys=ON; PRAGMA cache_size=-{_CACHE_KIB}")


def _create_private(path: Path) -> None:
    """Make the file where there is none: SQLite would let the umask decide its mode.

    The one descriptor of a database that is not SQLite's: it is of a file that
    did not exist, so no lock can be dropped by closing it.
    """
    with suppress(OSError):  # it is there, or SQLite will say why it can't be
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private(path: Path) -> None:
    """0600 for a database and side files that were created under another umask.
    SQLite gives the side files that it makes the mode of the database.

    By path: opening a file would drop SQLite's locks when it is closed.
    """
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        try:
            mode = file.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISREG(mode) and mode & 0o077:
            file.chmod(0o600)


class FileIdentity(msgspec.Struct, frozen=True):
    """Device and inode of a database and of its WAL while they are open.

    A path that leads to another file, or to none, means that commits go to an
    unlinked file: they must not be acknowledged.
    """

    path: str
    main: tuple[int, int]
    wal: tuple[int, int] | None

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        main = _identity(os.fspath(path))
        if main is None:
            raise _replaced(os.fspath(path))
        return cls(os.fspath(path), main, _identity(f"{path}-wal"))

    def without_wal(self) -> FileIdentity:
        """The main file's, for while the database is closed and has no WAL."""
        return FileIdentity(self.path, self.main, None)

    @property
    def in_place(self) -> bool:
        """Whether the database itself is, whatever became of its WAL."""
        return _identity(self.path) == self.main

    def check(self) -> None:
        """Raises MemdError (DATABASE_REPLACED)."""
        if not self.in_place:
            raise _replaced(self.path)
        if self.wal is not None and _identity(self.path + "-wal") != self.wal:
            raise _replaced(self.path + "-wal")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - once a commit: no Path
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _replaced(path: str) -> MemdError:
    return MemdError(
        ErrorCode.DATABASE_REPLACED,
        f"{path} was removed or replaced under the daemon, so this call is not acknowledged",
        hint="if the instance was purged, unload it; else load it again",
    )


def close(connection: apsw.Connection) -> None:
    """Checkpoint and close; closed also where the checkpoint fails. What was committed
    is in the WAL then, and the next opening finds it there."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


def abandon(connection: apsw.Connection, *, in_place: bool) -> None:
    """Close a database whose file or WAL is not at its path any more. A successor is
    left alone: SQLite would unlink the WAL by its name, which may be the new file's.
    Where the file itself is in place, it gets what was acknowledged into its lost WAL."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        if in_place:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()

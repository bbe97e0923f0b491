"""The tree below the jackin home, and making its folders safely."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from jackin_memd.wire import address
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container


class Home(msgspec.Struct, frozen=True):
    """A jackin home. `root` has no symlink left in it."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def sockets(self) -> Path:
        return self.root / "sockets"

    @property
    def registry_db(self) -> Path:
        return self.data / "daemon" / "registry.db"

    @property
    def lock(self) -> Path:
        return self.run / "memd.lock"

    @property
    def start_lock(self) -> Path:
        """Serialises those who would start a daemon."""
        return self.run / "memd.start.lock"

    @property
    def operator_socket(self) -> Path:
        return address.operator_socket(self.root)

    def instance_dir(self, container: Container) -> Path:
        return self.data / container

    def instance_db(self, container: Container) -> Path:
        return self.instance_dir(container) / "jackin.db"

    def manifest(self, container: Container) -> Path:
        return self.instance_dir(container) / ".jackin" / "instance.json"

    def socket_dir(self, container: Container) -> Path:
        return address.instance_socket_dir(self.root, container)

    def instance_socket(self, container: Container) -> Path:
        return address.instance_socket(self.root, container)

    def name(self, path: Path) -> str:
        """A path as messages show it: below the home."""
        return str(path.relative_to(self.root))


def open_home(given: Path) -> Home:
    """The home, created where it is absent, with its `run`, `data` and `sockets`.

    Raises MemdError (HOME_UNUSABLE, SOCKET_PATH_TOO_LONG).
    """
    if not given.is_absolute():
        raise _unusable(given, "it is not an absolute path")
    address.check_length(address.operator_socket(given))
    try:
        for folder in (*reversed(given.parents), given):
            folder.mkdir(mode=0o700, exist_ok=True)
        home = Home(given.resolve(strict=True))
        address.check_length(home.operator_socket)
        for folder in (home.run, home.data, home.sockets, home.registry_db.parent):
            private_dir(folder)
    except OSError as error:
        raise _unusable(given, error.strerror or str(error)) from error
    return home


def _unusable(given: Path, why: str) -> MemdError:
    return MemdError(
        ErrorCode.HOME_UNUSABLE,
        f"the jackin home {given} can't be used: {why}",
        hint=f"set {address.HOME_VARIABLE} to an absolute path of a folder that you may write",
    )


def private_dir(folder: Path) -> None:
    """Make one folder, 0700 from the first moment, or accept one that is there.

    Raises MemdError (PATH_UNSAFE) where a symlink or another thing is in its
    place, OSError where it can't be made.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        require_dir(folder)


def require_dir(folder: Path) -> None:
    """Raises MemdError (PATH_UNSAFE), or FileNotFoundError."""
    mode = os.lstat(folder).st_mode
    if stat.S_ISDIR(mode):
        return
    kind = "a symlink" if stat.S_ISLNK(mode) else "not a folder"
    raise MemdError(
        ErrorCode.PATH_UNSAFE,
        f"{folder} is {kind}; the daemon follows none below the jackin home",
        hint="move it away, or make it a folder",
    )

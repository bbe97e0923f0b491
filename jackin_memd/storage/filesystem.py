"""Which file systems a WAL database may live on.

WAL needs shared memory and locks that work between all openers. On a network
or pass-through mount two kernels can hold the file, and the damage is silent:
so such mounts are refused before SQLite touches the file.
Source: https://sqlite.org/wal.html, "all processes must be on the same host".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from jackin_memd.wire.errors import ErrorCode, MemdError

_REASONS = {
    "virtiofs": "a virtual machine's shared folder",
    "9p": "a virtual machine's shared folder",
    "vboxsf": "a virtual machine's shared folder",
    "prl_fs": "a virtual machine's shared folder",
    "vmhgfs": "a virtual machine's shared folder",
    "nfs": "a network disk",
    "nfs4": "a network disk",
    "smb3": "a network disk",
    "smbfs": "a network disk",
    "cifs": "a network disk",
    "afpfs": "a network disk",
    "webdav": "a network disk",
    "ceph": "a network disk",
    "glusterfs": "a network disk",
    "lustre": "a network disk",
    "macfuse": "a FUSE mount",
    "osxfuse": "a FUSE mount",
    "fuseblk": "a FUSE mount",
}


class Mount(msgspec.Struct, frozen=True):
    mountpoint: str
    fstype: str


def read_mounts() -> list[Mount]:
    return [Mount(m.mountpoint, m.fstype) for m in psutil.disk_partitions(all=True)]


def unsupported_reason(fstype: str) -> str | None:
    """Why a file system can't hold a WAL database; None where it can."""
    kind = fstype.lower()
    if kind == "fuse" or kind.startswith("fuse."):
        return "a FUSE mount"
    return _REASONS.get(kind)


def mount_of(folder: Path, mounts: Iterable[Mount]) -> Mount | None:
    """The mount with the longest path that holds the folder; the last one wins
    among equals, as it covers those mounted before it."""
    best: Mount | None = None
    for mount in mounts:
        inside = folder.is_relative_to(mount.mountpoint)
        if inside and (best is None or len(mount.mountpoint) >= len(best.mountpoint)):
            best = mount
    return best


class MountGuard:
    """Refuses folders on mounts that can't hold a database.

    The mount table is read once for each device number, since reading it
    costs a millisecond and a new mount has a new number.
    """

    def __init__(self) -> None:
        self._accepted: set[int] = set()

    def check(self, folder: Path) -> None:
        """Raises MemdError (FILESYSTEM_UNSUPPORTED). `folder` must be resolved."""
        device = folder.stat().st_dev
        if device in self._accepted:
            return
        mount = mount_of(folder, read_mounts())
        reason = unsupported_reason(mount.fstype) if mount else None
        if mount and reason:
            raise MemdError(
                ErrorCode.FILESYSTEM_UNSUPPORTED,
                f"{folder} lies on {mount.mountpoint} ({mount.fstype}), {reason}: "
                "a database in WAL mode would be damaged there",
                hint="put the jackin home on a local disk (JACKIN_HOME_DIR)",
                details={"fstype": mount.fstype},
            )
        self._accepted.add(device)

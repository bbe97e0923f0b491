"""Databases live on local disks only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.storage import filesystem
from jackin_memd.storage.filesystem import Mount, MountGuard, mount_of, unsupported_reason
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.support.proves import proves

REFUSED = {
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
    "fuse": "a FUSE mount",
    "fuse.sshfs": "a FUSE mount",
    "fuse.rclone": "a FUSE mount",
}
LOCAL = ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "hfs", "ufs", "fusion", ""]


@proves("store-local-disk")
@pytest.mark.parametrize(("fstype", "reason"), REFUSED.items())
def test_a_file_system_that_two_kernels_can_hold_is_refused_with_what_it_is(
    fstype: str, reason: str
) -> None:
    assert unsupported_reason(fstype) == reason
    assert unsupported_reason(fstype.upper()) == reason


@pytest.mark.parametrize("fstype", LOCAL)
def test_a_local_file_system_is_accepted(fstype: str) -> None:
    assert unsupported_reason(fstype) is None


MOUNTS = [
    Mount("/", "ext4"),
    Mount("/home", "nfs4"),
    Mount("/home/op/local", "xfs"),
    Mount("/home/op/local/share", "virtiofs"),
    Mount("/mnt", "ext4"),
    Mount("/mnt", "fuse.sshfs"),
    Mount("/var", "nfs"),
    Mount("/var", "btrfs"),
]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("folder", "fstype"),
    [
        ("/", "ext4"),
        ("/root/.jackin", "ext4"),
        ("/home", "nfs4"),
        ("/home/op/.jackin", "nfs4"),
        ("/homer/.jackin", "ext4"),
        ("/home/op/local/.jackin", "xfs"),
        ("/home/op/locals", "nfs4"),
        ("/home/op/local/share/x", "virtiofs"),
    ],
)
def test_the_innermost_mount_holds_the_folder_whatever_the_order(
    folder: str, fstype: str, order: int
) -> None:
    found = mount_of(Path(folder), MOUNTS[::order])
    assert found is not None
    assert found.fstype == fstype


@pytest.mark.parametrize(("folder", "fstype"), [("/mnt/x", "fuse.sshfs"), ("/var/x", "btrfs")])
def test_of_several_mounts_at_one_place_the_last_one_covers_the_others(
    folder: str, fstype: str
) -> None:
    found = mount_of(Path(folder), MOUNTS)
    assert found is not None
    assert found.fstype == fstype


def test_a_folder_that_no_mount_holds_has_none() -> None:
    assert mount_of(Path("/x"), [Mount("/y", "ext4")]) is None


@given(st.lists(st.lists(st.sampled_from("ab"), max_size=4)))
def test_the_mount_found_is_the_last_of_the_longest_that_hold_the_folder(
    points: list[list[str]],
) -> None:
    folder = ["a", "b", "a"]
    mounts = [Mount("/" + "/".join(point), str(number)) for number, point in enumerate(points)]
    holding = [(len(p), str(number)) for number, p in enumerate(points) if folder[: len(p)] == p]
    found = mount_of(Path("/a/b/a"), mounts)
    longest = max((length for length, _ in holding), default=None)
    expected = [number for length, number in holding if length == longest]
    assert (None if found is None else found.fstype) == (expected[-1] if expected else None)


class Machine:
    """The mount table, as a test sets it."""

    def __init__(self, *mounts: Mount) -> None:
        self.mounts = list(mounts)
        self.asked = 0

    def read(self) -> list[Mount]:
        self.asked += 1
        return self.mounts


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(Mount("/", "ext4"))
    monkeypatch.setattr(filesystem, "read_mounts", machine.read)
    return machine


@proves("store-local-disk")
def test_a_folder_on_a_refused_mount_is_named_with_what_to_do(
    machine: Machine, tmp_path: Path
) -> None:
    machine.mounts.append(Mount(str(tmp_path), "virtiofs"))
    with pytest.raises(MemdError) as refused:
        MountGuard().check(tmp_path)
    assert refused.value.code is ErrorCode.FILESYSTEM_UNSUPPORTED
    assert refused.value.details == {"fstype": "virtiofs"}
    for part in (str(tmp_path), "(virtiofs)", "virtual machine"):
        assert part in refused.value.message
    assert "JACKIN_HOME_DIR" in (refused.value.hint or "")


def test_a_disk_that_was_accepted_is_not_looked_up_again(machine: Machine, tmp_path: Path) -> None:
    guard = MountGuard()
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        guard.check(tmp_path / name)
    assert machine.asked == 1


def test_a_disk_that_was_refused_is_looked_at_again(machine: Machine, tmp_path: Path) -> None:
    guard = MountGuard()
    machine.mounts = [Mount("/", "nfs")]
    with pytest.raises(MemdError):
        guard.check(tmp_path)
    machine.mounts = [Mount("/", "ext4")]
    guard.check(tmp_path)


def test_this_machines_own_mounts_can_be_read() -> None:
    assert any(mount.mountpoint == "/" for mount in filesystem.read_mounts())

"""Everything that the daemon makes is for its user alone, from the moment it exists."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import load, purge
from tests.support.proves import proves
from tests.support.somebody import Somebody

UMASKS = ["000", "022", "077", "027"]


def with_umask(umask: str) -> tuple[str, ...]:
    return ("sh", "-c", f'umask {umask}; exec "$@"', "sh")


def modes(folder: Path) -> dict[str, str]:
    """Kind and mode of everything in the folder, and of itself."""
    return {
        str(path.relative_to(folder)): stat.filemode(path.lstat().st_mode)
        for path in (folder, *folder.rglob("*"))
    }


def expected(found: dict[str, str]) -> dict[str, str]:
    private = {"d": "drwx------", "-": "-rw-------", "s": "srw-------"}
    return {name: private[mode[0]] for name, mode in found.items()}


@proves("store-permissions", "daemon-permissions")
@pytest.mark.parametrize("umask", UMASKS)
def test_whatever_the_umask_folders_are_0700_and_files_and_sockets_0600(
    stopped: Daemon, umask: str
) -> None:
    stopped.start(prefix=with_umask(umask))
    stopped.load(CONTAINER)
    stopped.load(OTHER, "reviewer")
    with stopped.capsule() as capsule:
        record(capsule, "working")
    while_open = modes(stopped.home)
    assert {"data/daemon/registry.db-wal", f"data/{CONTAINER}/jackin.db-shm", "run/memd.lock",
            "run/memd.sock", f"sockets/{CONTAINER}/memd.sock"} <= while_open.keys()  # fmt: skip
    assert while_open == expected(while_open)
    stopped.kill()
    stopped.start(prefix=with_umask(umask))  # replaces the stale sockets
    purge(stopped, CONTAINER)
    load(stopped, CONTAINER, role_key="builder")
    stopped.terminate()
    assert modes(stopped.home) == expected(modes(stopped.home))


@proves("store-permissions")
def test_a_database_that_was_made_readable_is_private_again_when_it_is_opened(
    daemon: Daemon,
) -> None:
    daemon.load()
    daemon.terminate()
    daemon.instance_db().chmod(0o644)
    daemon.start()
    with daemon.capsule() as capsule:
        record(capsule, "working")
    assert daemon.instance_db().stat().st_mode & 0o777 == 0o600


def test_folders_that_are_there_already_keep_their_modes(stopped: Daemon) -> None:
    """They are jackin's; its own modes are not the daemon's to change."""
    for name in ("data", "sockets", f"data/{CONTAINER}"):
        (stopped.home / name).mkdir(parents=True)
        (stopped.home / name).chmod(0o755)
    stopped.start()
    stopped.load()
    assert (stopped.home / "data" / CONTAINER).stat().st_mode & 0o777 == 0o755
    assert stopped.instance_db().stat().st_mode & 0o777 == 0o600


# -- a home that may not be written ------------------------------------------------------


@pytest.mark.parametrize("command", ["serve", "start", "restart"])
@pytest.mark.parametrize("closed", ["home", "home/run"])
def test_a_home_that_may_not_be_written_is_refused_with_what_to_do(
    stopped: Daemon, command: str, closed: str
) -> None:
    somebody = Somebody()
    for folder in (stopped.home, stopped.home / "run"):
        folder.mkdir(mode=0o700)
        somebody.give(folder)
    somebody.give(stopped.home.parent, stopped.config)
    (stopped.home.parent / closed).chmod(0o500)
    try:
        finished = stopped.command(command, prefix=somebody.prefix)
    finally:
        (stopped.home.parent / closed).chmod(0o700)
    assert finished.status == ErrorCode.HOME_UNUSABLE.exit_status, finished
    assert str(stopped.home) in finished.err
    assert "hint:" in finished.err
    assert "Traceback" not in finished.err


def test_a_used_home_that_may_not_be_written_any_more_is_refused_too(stopped: Daemon) -> None:
    somebody = Somebody()
    stopped.home.mkdir()
    somebody.give(stopped.home.parent, stopped.home, stopped.config)
    stopped.start(prefix=somebody.prefix)
    stopped.terminate()
    (stopped.home / "run").chmod(0o500)
    try:
        finished = stopped.command("serve", prefix=somebody.prefix)
    finally:
        (stopped.home / "run").chmod(0o700)
    assert finished.status in {
        ErrorCode.HOME_UNUSABLE.exit_status, ErrorCode.SOCKET_PATH_OCCUPIED.exit_status,
    }, finished  # fmt: skip
    assert "Permission denied" in finished.err
    assert "Traceback" not in finished.err

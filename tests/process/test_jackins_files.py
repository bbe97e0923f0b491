"""jackin's own files lie beside the daemon's, and stay as they are."""

from __future__ import annotations

import socket
from pathlib import Path

from jackin_memd.wire.instances import InstancePurgeParams
from tests.support.daemon import CONTAINER, Daemon, record
from tests.support.proves import proves


def _snapshot(home: Path, names: tuple[str, ...]) -> dict[str, tuple[int, bytes | None]]:
    """Inode and content; sockets have none to read."""
    return {
        name: (
            (home / name).lstat().st_ino,
            (home / name).read_bytes() if (home / name).is_file() else None,
        )
        for name in names
    }


@proves("daemon-leaves-jackins-files")
def test_a_daemons_whole_life_touches_none_of_jackins_files(stopped: Daemon) -> None:
    home = stopped.home
    files = (
        "run/jackin-daemon.pid",
        "data/instances.json",
        "data/instances.json.lock",
        f"data/{CONTAINER}.lock",
        f"data/{CONTAINER}/state/usage/snapshots.db",
        f"sockets/{CONTAINER}/agent.toml",
    )
    for name in files:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"jackin's {name}", encoding="utf-8")
    sockets = ("run/jackin-daemon.sock", f"sockets/{CONTAINER}/jackin.sock")
    listeners = [socket.socket(socket.AF_UNIX) for _ in sockets]
    for listener, name in zip(listeners, sockets, strict=True):
        listener.bind(str(home / name))
        listener.listen()
    before = _snapshot(home, files + sockets)

    stopped.start()
    stopped.load()
    with stopped.capsule() as capsule:
        record(capsule, "working")
    stopped.kill()
    stopped.start()
    with stopped.client() as client:
        client.call("instance.purge", InstancePurgeParams(instance=CONTAINER))
    assert stopped.terminate() == 0

    assert _snapshot(home, files + sockets) == before
    for listener in listeners:
        listener.close()

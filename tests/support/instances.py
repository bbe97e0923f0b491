"""What jackin would have put into a home before an instance is loaded."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import (
    Instance,
    InstanceGetParams,
    InstanceLoadParams,
    InstancePurgeParams,
    InstancePurgeResult,
    InstanceUnloadParams,
)
from tests.support.daemon import CONTAINER, Daemon


def write_manifest(daemon: Daemon, container: str = CONTAINER, **changed: Any) -> Path:
    """jackin's `.jackin/instance.json`; a member of None is left out."""
    manifest = {
        "version": 2,
        "container_base": container,
        "instance_id": container.split("-")[1],
        "workspace_name": "shop",
        "workspace_label": "The Shop",
        "host_workdir_fingerprint": "sha256:0123",
        "role_key": "acme/builder",
        "agent_runtime": "claude",
        "status": "running",
        "sessions": [],
    } | changed
    path = daemon.home / "data" / container / ".jackin" / "instance.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in manifest.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
    return path


def load(daemon: Daemon, container: str = CONTAINER, **params: Any) -> Instance:
    with daemon.client() as client:
        loaded: Instance = client.call(
            "instance.load", InstanceLoadParams(container=container, **params)
        )
        return loaded


def get(daemon: Daemon, container: str = CONTAINER) -> Instance:
    with daemon.client() as client:
        found: Instance = client.call("instance.get", InstanceGetParams(instance=container))
        return found


def unload(daemon: Daemon, container: str = CONTAINER, **params: Any) -> Instance:
    with daemon.client() as client:
        unloaded: Instance = client.call(
            "instance.unload", InstanceUnloadParams(instance=container, **params)
        )
        return unloaded


def purge(daemon: Daemon, container: str = CONTAINER, **params: Any) -> InstancePurgeResult:
    with daemon.client() as client:
        purged: InstancePurgeResult = client.call(
            "instance.purge", InstancePurgeParams(instance=container, **params)
        )
        return purged


def alter(database: Path, *statements: str) -> None:
    """Change a database as another program would, while no daemon has it open."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def code(error: MemdError) -> str:
    assert isinstance(error.code, ErrorCode)
    return error.code.word

"""registry.db: which instances are loaded, and who they are.

It lies in `data/daemon/`, so that jackin's `prune instances --all` takes it
together with the instances that it names.
"""

from __future__ import annotations

import apsw
import msgspec

from jackin_memd.core.cursors import Epoch
from jackin_memd.core.identity import Identity
from jackin_memd.storage.request_keys import CREATE_REQUEST_KEYS
from jackin_memd.storage.schema import Migration, Schema
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container

REGISTRY_SCHEMA = Schema(
    "registry",
    (
        Migration(
            "instances and answers kept for retried calls",
            (
                """CREATE TABLE instances (
                    container TEXT PRIMARY KEY,
                    identity_source TEXT NOT NULL,
                    workspace_name TEXT,
                    workspace_label TEXT,
                    workdir_fingerprint TEXT,
                    role_key TEXT,
                    agent_runtime TEXT,
                    database_id TEXT,
                    loaded INTEGER NOT NULL,
                    loaded_at INTEGER NOT NULL
                )""",
                CREATE_REQUEST_KEYS,
                "CREATE TABLE _meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
            ),
        ),
    ),
)


Connection = apsw.Connection
"""For layers above, which do not import APSW."""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """One known instance. Times are epoch seconds."""

    container: Container
    identity: Identity
    database_id: Epoch | None
    """Which jackin.db was loaded; a file with another id is not served unasked."""
    loaded: bool
    loaded_at: int


def upsert(connection: apsw.Connection, entry: Registered) -> None:
    """Keep an instance; `loaded_at` stays that of the first load."""
    identity = entry.identity
    connection.execute(
        "INSERT INTO instances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (container) DO UPDATE SET "
        "identity_source = excluded.identity_source, workspace_name = excluded.workspace_name, "
        "workspace_label = excluded.workspace_label, "
        "workdir_fingerprint = excluded.workdir_fingerprint, role_key = excluded.role_key, "
        "agent_runtime = excluded.agent_runtime, database_id = excluded.database_id, "
        "loaded = excluded.loaded",
        (
            entry.container,
            identity.source.value,
            identity.workspace_name,
            identity.workspace_label,
            identity.workdir_fingerprint,
            identity.role_key,
            identity.agent_runtime,
            entry.database_id,
            int(entry.loaded),
            entry.loaded_at,
        ),
    )


def delete(connection: apsw.Connection, container: Container) -> None:
    connection.execute("DELETE FROM instances WHERE container = ?", (container,))


def read_all(connection: apsw.Connection) -> list[Registered]:
    """Every known instance, by container name."""
    rows = connection.execute(
        "SELECT container, identity_source, workspace_name, workspace_label, "
        "workdir_fingerprint, role_key, agent_runtime, database_id, loaded, loaded_at "
        "FROM instances ORDER BY container"
    )
    return [
        Registered(
            container=Container(container),
            identity=Identity(
                source=IdentitySource(source),
                workspace_name=workspace_name,
                workspace_label=workspace_label,
                workdir_fingerprint=fingerprint,
                role_key=role_key,
                agent_runtime=agent,
            ),
            database_id=None if database_id is None else Epoch(database_id),
            loaded=bool(loaded),
            loaded_at=loaded_at,
        )
        for (
            container, source, workspace_name, workspace_label,
            fingerprint, role_key, agent, database_id, loaded, loaded_at,
        ) in rows
    ]  # fmt: skip

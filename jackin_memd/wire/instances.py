"""instance.*: which instances the daemon serves."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from jackin_memd.wire.vocab import IdempotencyKey, InstanceRef, Label


class IdentitySource(Enum):
    """Where workspace, role and agent of an instance come from."""

    MANIFEST = "manifest"
    OPERATOR = "operator"


class InstanceState(Enum):
    LOADED = "loaded"
    UNLOADED = "unloaded"
    FAILED = "failed"
    """Loaded, but not served: `problem` says why and what to do."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str
    hint: str | None = None


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    container: str
    instance_id: str | None
    """The short id; null where the container name has none."""
    workspace_name: str | None
    """Null for an ad hoc instance; its scope is then `workdir_fingerprint`."""
    workspace_label: str | None
    workdir_fingerprint: str | None
    role_key: str | None
    agent_runtime: str | None
    identity_source: IdentitySource
    state: InstanceState
    loaded_at: int
    """Epoch seconds of the first load."""
    socket: str
    """The socket's path on the host."""
    problem: Problem | None = None


class InstanceLoadParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    container: InstanceRef
    workspace_name: Label | None = None
    role_key: Label | None = None
    agent_runtime: Label | None = None
    idempotency_key: IdempotencyKey | None = None


class InstanceUnloadParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instance: InstanceRef
    idempotency_key: IdempotencyKey | None = None


class InstancePurgeParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instance: InstanceRef
    idempotency_key: IdempotencyKey | None = None


class InstancePurgeResult(msgspec.Struct, frozen=True, kw_only=True):
    container: str
    removed: list[str]
    """The files that are gone, as paths below the jackin home."""


class InstanceGetParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instance: InstanceRef | None = None
    """May be left out on a capsule channel, which has one instance only."""


class InstanceListParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    state: InstanceState | None = None
    after: InstanceRef | None = None
    """The last container name of the page before."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class InstanceListResult(msgspec.Struct, frozen=True, kw_only=True):
    instances: list[Instance]
    """Ordered by container name."""
    more: bool

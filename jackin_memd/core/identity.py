"""Who an instance is: its manifest, what the operator said, and how they agree.

The manifest (`.jackin/instance.json`, out of the container's reach) is the
authority; the container's name is not, since jackin's compaction of workspace
and role into it loses information.
"""

from __future__ import annotations

import re

import msgspec

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container

_ROLE = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)?\Z")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Workspace, role and agent of one instance, and where they come from."""

    source: IdentitySource
    workspace_name: str | None = None
    workspace_label: str | None = None
    workdir_fingerprint: str | None = None
    role_key: str | None = None
    agent_runtime: str | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator says of an instance in `instance.load`."""

    workspace_name: str | None = None
    role_key: str | None = None
    agent_runtime: str | None = None

    @property
    def empty(self) -> bool:
        return self.workspace_name is None and self.role_key is None and self.agent_runtime is None


class _Manifest(msgspec.Struct, frozen=True):
    """The members of version 2 that matter here; jackin writes more."""

    container_base: str
    role_key: str
    agent_runtime: str
    workspace_name: str | None = None
    workspace_label: str | None = None
    host_workdir_fingerprint: str | None = None


def parse_manifest(payload: bytes, container: Container) -> Identity:
    """Raises MemdError (INSTANCE_MANIFEST_INVALID)."""
    try:
        manifest = msgspec.json.decode(payload, type=_Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad_manifest(container, str(error)) from None
    if manifest.container_base != container:
        raise _bad_manifest(container, "its container_base names another container")
    return Identity(
        source=IdentitySource.MANIFEST,
        workspace_name=manifest.workspace_name,
        workspace_label=manifest.workspace_label,
        workdir_fingerprint=manifest.host_workdir_fingerprint,
        role_key=manifest.role_key,
        agent_runtime=manifest.agent_runtime,
    )


def _bad_manifest(container: Container, why: str) -> MemdError:
    return MemdError(
        ErrorCode.INSTANCE_MANIFEST_INVALID,
        f".jackin/instance.json of {container} can't be used: {why}",
        hint="let jackin write it again (reconnect the instance), then load it again",
    )


def settle_identity(
    container: Container, manifest: Identity | None, claim: Claim, known: Identity | None
) -> Identity:
    """The identity that an instance is loaded with.

    `known` is what an earlier load kept. Raises MemdError
    (INSTANCE_IDENTITY_CONFLICT, INSTANCE_IDENTITY_MISSING, INVALID_PARAMS).
    """
    if claim.role_key is not None and not _ROLE.match(claim.role_key):
        raise MemdError(
            ErrorCode.INVALID_PARAMS,
            "a role key is name or namespace/name, of a-z, 0-9 and dashes",
            field="role_key",
        )
    if manifest is not None:
        _refuse_contradiction(container, claim, manifest, "its .jackin/instance.json")
        return manifest
    if known is not None:
        _refuse_contradiction(container, claim, known, "an earlier load")
        return known
    if claim.role_key is None:
        raise MemdError(
            ErrorCode.INSTANCE_IDENTITY_MISSING,
            f"{container} has no .jackin/instance.json to say who it is",
            hint="give role_key, and workspace_name and agent_runtime where it has them",
            field="role_key",
        )
    return Identity(
        source=IdentitySource.OPERATOR,
        workspace_name=claim.workspace_name,
        workspace_label=claim.workspace_name,
        role_key=claim.role_key,
        agent_runtime=claim.agent_runtime,
    )


def _refuse_contradiction(
    container: Container, claim: Claim, known: Identity, said_by: str
) -> None:
    for field in ("workspace_name", "role_key", "agent_runtime"):
        given, true = getattr(claim, field), getattr(known, field)
        if given is not None and given != true:
            raise MemdError(
                ErrorCode.INSTANCE_IDENTITY_CONFLICT,
                f"the given {field} of {container} contradicts {said_by}",
                hint=f"leave {field} out, or give {true!r}",
                field=field,
            )

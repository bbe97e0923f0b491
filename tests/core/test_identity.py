"""Who an instance is: manifest, claim and what is known, and how they agree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.core.identity import Claim, Identity, parse_manifest, settle_identity
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container
from tests.support.proves import proves

NAME = Container("jk-k7p9m2xq-shop-builder")

MANIFEST = Identity(
    source=IdentitySource.MANIFEST,
    workspace_name="shop",
    workspace_label="Shop",
    workdir_fingerprint="f00d",
    role_key="builder",
    agent_runtime="claude",
)
AD_HOC = msgspec.structs.replace(MANIFEST, workspace_name=None, workspace_label="~/shop")
OTHER = Identity(
    source=IdentitySource.OPERATOR, workspace_name="other", role_key="reviewer", agent_runtime="amp"
)
SAME = Claim(workspace_name="shop", role_key="builder", agent_runtime="claude")
NOTHING = Claim()


def refusal(manifest: Identity | None, claim: Claim, known: Identity | None) -> MemdError:
    with pytest.raises(MemdError) as refused:
        settle_identity(NAME, manifest, claim, known)
    return refused.value


@proves("instance-identity")
@pytest.mark.parametrize(
    ("manifest", "claim", "known", "settled"),
    [
        (MANIFEST, NOTHING, None, MANIFEST),
        (MANIFEST, SAME, None, MANIFEST),
        (MANIFEST, NOTHING, OTHER, MANIFEST),  # the manifest is the authority
        (MANIFEST, SAME, OTHER, MANIFEST),
        (AD_HOC, NOTHING, None, AD_HOC),
        (AD_HOC, Claim(role_key="builder"), MANIFEST, AD_HOC),
        (None, NOTHING, OTHER, OTHER),
        (None, Claim(role_key="reviewer"), OTHER, OTHER),
        (None, NOTHING, MANIFEST, MANIFEST),  # it was read once and is gone
    ],
)
def test_the_manifest_stands_first_then_what_an_earlier_load_kept(
    manifest: Identity | None, claim: Claim, known: Identity | None, settled: Identity
) -> None:
    assert settle_identity(NAME, manifest, claim, known) == settled


def test_without_manifest_and_earlier_load_the_operators_word_counts() -> None:
    settled = settle_identity(NAME, None, SAME, None)
    assert settled == Identity(
        source=IdentitySource.OPERATOR,
        workspace_name="shop",
        workspace_label="shop",
        role_key="builder",
        agent_runtime="claude",
    )


def test_the_operators_word_needs_a_role_and_nothing_else() -> None:
    settled = settle_identity(NAME, None, Claim(role_key="chainargos/rust"), None)
    assert (settled.role_key, settled.workspace_name, settled.agent_runtime) == (
        "chainargos/rust", None, None,
    )  # fmt: skip


@pytest.mark.parametrize("claim", [NOTHING, Claim(workspace_name="shop", agent_runtime="amp")])
def test_nobody_to_say_who_it_is_is_refused_with_what_to_give(claim: Claim) -> None:
    refused = refusal(None, claim, None)
    assert (refused.code, refused.field) == (ErrorCode.INSTANCE_IDENTITY_MISSING, "role_key")
    assert "role_key" in (refused.hint or "")


@proves("instance-identity-conflict")
@pytest.mark.parametrize(
    ("manifest", "known", "said_by"),
    [(MANIFEST, None, "instance.json"), (MANIFEST, OTHER, "instance.json"),
     (None, MANIFEST, "earlier load")],
)  # fmt: skip
@pytest.mark.parametrize("field", ["workspace_name", "role_key", "agent_runtime"])
def test_a_contradiction_is_refused_by_its_field_and_names_who_said_otherwise(
    field: str, manifest: Identity | None, known: Identity | None, said_by: str
) -> None:
    refused = refusal(manifest, Claim(**{field: "wrong"}), known)
    assert (refused.code, refused.field) == (ErrorCode.INSTANCE_IDENTITY_CONFLICT, field)
    assert said_by in refused.message
    assert repr(getattr(MANIFEST, field)) in (refused.hint or "")


def test_a_workspace_named_for_an_ad_hoc_instance_contradicts_it() -> None:
    refused = refusal(AD_HOC, Claim(workspace_name="shop"), None)
    assert (refused.code, refused.field) == (
        ErrorCode.INSTANCE_IDENTITY_CONFLICT, "workspace_name",
    )  # fmt: skip


@pytest.mark.parametrize("role", ["", "/", "a/", "/a", "a/b/c", "A", "a b", "a.b", "../a", "a\n"])
@pytest.mark.parametrize("manifest", [MANIFEST, None])
def test_a_role_that_is_not_name_or_namespace_and_name_is_refused(
    role: str, manifest: Identity | None
) -> None:
    refused = refusal(manifest, Claim(role_key=role), None)
    assert (refused.code, refused.field) == (ErrorCode.INVALID_PARAMS, "role_key")


def manifest_with(**changes: Any) -> bytes:
    members = {
        "version": 2,
        "container_base": NAME,
        "instance_id": "k7p9m2xq",
        "workspace_name": "shop",
        "workspace_label": "Shop",
        "host_workdir_fingerprint": "f00d",
        "role_key": "builder",
        "agent_runtime": "claude",
        "status": "active",
        "sessions": [{"id": 1}],
    }
    return msgspec.json.encode({k: v for k, v in (members | changes).items() if v is not ...})


def bad_manifest(payload: bytes) -> MemdError:
    with pytest.raises(MemdError) as refused:
        parse_manifest(payload, NAME)
    assert refused.value.code is ErrorCode.INSTANCE_MANIFEST_INVALID
    return refused.value


def test_a_manifest_gives_the_identity_and_its_other_members_are_left_alone() -> None:
    assert parse_manifest(manifest_with(), NAME) == MANIFEST


@proves("instance-ad-hoc")
@pytest.mark.parametrize("absent", [None, ...])
def test_an_ad_hoc_instance_has_no_workspace_name_but_its_fingerprint(absent: Any) -> None:
    found = parse_manifest(manifest_with(workspace_name=absent), NAME)
    assert (found.workspace_name, found.workdir_fingerprint) == (None, "f00d")


@pytest.mark.parametrize("member", ["container_base", "role_key", "agent_runtime"])
def test_a_manifest_without_who_it_is_is_refused_with_the_member(member: str) -> None:
    assert member in bad_manifest(manifest_with(**{member: ...})).message


@proves("instance-bad-manifest")
def test_a_manifest_of_another_container_is_refused() -> None:
    assert "another container" in bad_manifest(manifest_with(container_base="jk-x")).message


@proves("instance-bad-manifest")
@pytest.mark.parametrize(
    "payload",
    [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"container_base": "\xff"}', b"[" * 100_000,
     manifest_with(role_key=7), manifest_with() + b"x"],
    ids=["empty", "null", "array", "cut", "utf-16", "utf-8", "deep", "type", "tail"],
)  # fmt: skip
def test_a_manifest_that_is_not_what_jackin_writes_is_refused(payload: bytes) -> None:
    bad_manifest(payload)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_manifest_are_refused_and_never_crash(payload: bytes) -> None:
    bad_manifest(payload)

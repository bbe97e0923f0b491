"""Who an instance is: its manifest says so, or the operator where there is none."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import IdentitySource, Instance
from tests.support.daemon import CONTAINER, Daemon
from tests.support.instances import get, load, purge, unload, write_manifest
from tests.support.proves import proves

_numbers = count()


@pytest.fixture
def name() -> str:
    """A container that no test has used before."""
    return f"jk-{next(_numbers):08d}-shop-builder"


def refused(daemon: Daemon, container: str, **params: Any) -> MemdError:
    with pytest.raises(MemdError) as caught:
        load(daemon, container, **params)
    return caught.value


def identity(instance: Instance) -> tuple[str | None, ...]:
    return (
        instance.workspace_name,
        instance.workspace_label,
        instance.workdir_fingerprint,
        instance.role_key,
        instance.agent_runtime,
    )


FROM_MANIFEST = ("shop", "The Shop", "sha256:0123", "acme/builder", "claude")


@proves("instance-identity", "instance-created-on-load")
def test_a_container_name_is_enough_where_there_is_a_manifest(shared: Daemon, name: str) -> None:
    write_manifest(shared, name)
    loaded = load(shared, name)
    assert identity(loaded) == FROM_MANIFEST
    assert loaded.identity_source is IdentitySource.MANIFEST
    assert loaded.instance_id == name.split("-")[1]
    assert get(shared, name) == loaded
    assert shared.instance_db(name).is_file()
    assert shared.instance_socket(name).is_socket()


def test_values_that_agree_with_the_manifest_are_fine(shared: Daemon, name: str) -> None:
    write_manifest(shared, name)
    loaded = load(
        shared, name, workspace_name="shop", role_key="acme/builder", agent_runtime="claude"
    )
    assert identity(loaded) == FROM_MANIFEST


@proves("instance-identity-conflict")
@pytest.mark.parametrize(
    ("field", "value"),
    [("workspace_name", "other"), ("role_key", "builder"), ("agent_runtime", "codex")],
)
def test_a_value_that_contradicts_the_manifest_is_refused_and_creates_nothing(
    shared: Daemon, name: str, field: str, value: str
) -> None:
    write_manifest(shared, name)
    error = refused(shared, name, **{field: value})
    assert (error.code, error.field) == (ErrorCode.INSTANCE_IDENTITY_CONFLICT, field)
    assert error.hint is not None
    assert not shared.instance_db(name).exists()
    assert not shared.instance_socket(name).exists()


@proves("instance-ad-hoc")
def test_an_ad_hoc_instance_has_its_fingerprint_and_no_workspace(shared: Daemon, name: str) -> None:
    write_manifest(shared, name, workspace_name=None)
    loaded = load(shared, name)
    assert (loaded.workspace_name, loaded.workdir_fingerprint) == (None, "sha256:0123")
    assert refused(shared, name, workspace_name="shop").field == "workspace_name"


def test_without_manifest_and_role_the_role_is_asked_for(shared: Daemon, name: str) -> None:
    error = refused(shared, name, workspace_name="shop")
    assert (error.code, error.field) == (ErrorCode.INSTANCE_IDENTITY_MISSING, "role_key")


@pytest.mark.parametrize("role", ["Builder", "a/b/c", "/builder", "a b", "..", "ro\u00efle"])
def test_a_role_that_is_none_is_refused(shared: Daemon, name: str, role: str) -> None:
    error = refused(shared, name, role_key=role)
    assert (error.code, error.field) == (ErrorCode.INVALID_PARAMS, "role_key")


BAD_MANIFESTS: dict[str, bytes] = {
    "no JSON": b"{",
    "nothing": b"",
    "another kind of JSON": b"[]",
    "a missing member": b'{"container_base": "NAME", "role_key": "builder"}',
    "a member of a wrong type": b'{"container_base": "NAME", "role_key": 5, "agent_runtime": "x"}',
    "another container": b'{"container_base": "jk-x", "role_key": "r", "agent_runtime": "x"}',
    "invalid UTF-8": b'{"container_base": "NAME", "role_key": "\xff", "agent_runtime": "x"}',
    "nested too deep": b'{"container_base": "NAME", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "over 1 MiB": b'{"container_base": "NAME", "x": "' + b"x" * 2**20 + b'"}',
}


@proves("instance-bad-manifest")
@pytest.mark.parametrize("content", BAD_MANIFESTS.values(), ids=BAD_MANIFESTS.keys())
def test_a_manifest_that_cannot_be_used_is_an_error_and_not_a_guess(
    shared: Daemon, name: str, content: bytes
) -> None:
    write_manifest(shared, name).write_bytes(content.replace(b"NAME", name.encode()))
    error = refused(shared, name, workspace_name="shop", role_key="builder")
    assert error.code is ErrorCode.INSTANCE_MANIFEST_INVALID
    assert name in error.message
    assert error.hint is not None
    assert not shared.instance_db(name).exists()


def test_members_that_jackin_adds_later_are_no_reason_to_refuse(shared: Daemon, name: str) -> None:
    write_manifest(shared, name, version=9, something_new={"a": [1]})
    assert identity(load(shared, name)) == FROM_MANIFEST


# -- kept by the daemon --------------------------------------------------------------


@proves("instance-identity-conflict")
def test_what_the_operator_said_is_kept_and_may_not_be_contradicted(
    shared: Daemon, name: str
) -> None:
    first = load(shared, name, workspace_name="shop", role_key="builder", agent_runtime="codex")
    assert first.identity_source is IdentitySource.OPERATOR
    assert load(shared, name) == first  # nothing need be said again
    assert refused(shared, name, role_key="reviewer").field == "role_key"
    unload(shared, name)
    assert identity(load(shared, name)) == identity(first)
    assert refused(shared, name, workspace_name="other").field == "workspace_name"


def test_after_a_purge_an_instance_may_be_someone_else(shared: Daemon, name: str) -> None:
    load(shared, name, role_key="builder")
    purge(shared, name)
    assert load(shared, name, role_key="reviewer").role_key == "reviewer"


@proves("instance-identity", "instance-restart")
def test_an_identity_survives_a_restart_until_a_manifest_appears(daemon: Daemon) -> None:
    given = load(daemon, workspace_name="mine", role_key="builder", agent_runtime="amp")
    daemon.kill()
    daemon.start()
    assert get(daemon) == given

    write_manifest(daemon)  # jackin writes it when it reconnects the instance
    assert get(daemon) == given  # what is served does not change by itself
    with pytest.raises(MemdError) as caught:
        load(daemon, workspace_name="mine")
    assert caught.value.code is ErrorCode.INSTANCE_IDENTITY_CONFLICT
    loaded = load(daemon)
    assert identity(loaded) == FROM_MANIFEST
    assert loaded.identity_source is IdentitySource.MANIFEST
    assert loaded.loaded_at == given.loaded_at

    daemon.kill()
    daemon.start()
    assert identity(get(daemon)) == FROM_MANIFEST


def test_a_manifest_that_goes_away_leaves_what_it_said(daemon: Daemon) -> None:
    manifest = write_manifest(daemon)
    loaded = load(daemon)
    manifest.unlink()
    assert identity(load(daemon)) == identity(loaded)
    daemon.kill()
    daemon.start()
    assert identity(load(daemon)) == identity(loaded)


def test_jackins_index_of_instances_decides_nothing(daemon: Daemon) -> None:
    """`instances.json` can lag behind; the manifest of the instance is what counts."""
    index = {"version": 1, "instances": [{"container_base": CONTAINER, "role_key": "x"}]}
    path = daemon.home / "data" / "instances.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(MemdError) as caught:
        load(daemon)
    assert caught.value.code is ErrorCode.INSTANCE_IDENTITY_MISSING
    assert json.loads(path.read_text(encoding="utf-8")) == index

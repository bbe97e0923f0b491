"""registry.db: who is loaded, kept as it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from jackin_memd.core.identity import Identity
from jackin_memd.storage.registry import REGISTRY_SCHEMA, Registered, delete, read_all, upsert
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container
from tests.storage.files import EPOCH, opened

FULL = Registered(
    container=Container("jk-k7p9m2xq-shop-builder"),
    identity=Identity(
        source=IdentitySource.MANIFEST,
        workspace_name="shop",
        workspace_label="Shop 待機",
        workdir_fingerprint="f00d",
        role_key="team/builder",
        agent_runtime="claude",
    ),
    database_id=EPOCH,
    loaded=True,
    loaded_at=2**40,
)
AD_HOC = Registered(
    container=Container("jk-a2b3c4d5-builder"),
    identity=Identity(source=IdentitySource.OPERATOR, role_key="builder"),
    database_id=None,
    loaded=False,
    loaded_at=0,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[apsw.Connection]:
    with opened(tmp_path / "registry.db", REGISTRY_SCHEMA) as connection:
        yield connection


def test_instances_come_back_as_they_were_by_their_names(database: apsw.Connection) -> None:
    upsert(database, FULL)
    upsert(database, AD_HOC)
    assert read_all(database) == [AD_HOC, FULL]


def test_a_later_account_replaces_all_but_the_time_of_the_first_load(
    database: apsw.Connection,
) -> None:
    upsert(database, FULL)
    later = msgspec.structs.replace(AD_HOC, container=FULL.container, loaded_at=2**41)
    upsert(database, later)
    assert read_all(database) == [msgspec.structs.replace(later, loaded_at=FULL.loaded_at)]


def test_a_deleted_instance_is_gone_and_the_others_stay(database: apsw.Connection) -> None:
    upsert(database, FULL)
    upsert(database, AD_HOC)
    delete(database, FULL.container)
    delete(database, FULL.container)
    assert read_all(database) == [AD_HOC]


def test_an_instance_loaded_again_after_its_deletion_is_a_new_one(
    database: apsw.Connection,
) -> None:
    upsert(database, FULL)
    delete(database, FULL.container)
    again = msgspec.structs.replace(FULL, loaded_at=2**41)
    upsert(database, again)
    assert read_all(database) == [again]

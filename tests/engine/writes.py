"""Writes of every kind that the daemon makes, and what a group of them must leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from jackin_memd.core.identity import Identity
from jackin_memd.engine.group import Outcome, Write
from jackin_memd.storage import registry
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.registry import REGISTRY_SCHEMA, Registered
from jackin_memd.storage.request_keys import Keyed, RequestKey
from jackin_memd.storage.schema import Schema
from jackin_memd.storage.status_log import Append
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container
from tests.storage.files import Contents, by_hand, contents_of, opened


class Change(msgspec.Struct, frozen=True):
    """A write made of a function, that shares no statement with others."""

    act: Callable[[apsw.Connection], Any]
    row_count: int = 1

    def apply(self, connection: apsw.Connection) -> Any:
        return self.act(connection)


def append(*words: str) -> Append:
    return Append([(1, word, None) for word in words])


def keyed(name: str, *words: str, request: str = "a") -> Keyed:
    key = RequestKey(channel="capsule", key=name, request_hash=request, now=7)
    return Keyed(key, append(*words).apply, len(words))


#: No row may have a status of NULL.
VIOLATING = Append([(1, "goes with it", None), (1, None, None)])  # type: ignore[list-item]

#: No column holds an integer of more than 64 bits: APSW itself refuses it.
UNFIT = Append([(1, "goes with it", None), (2**64, "x", None)])


def refuse_after(write: Write[Any]) -> Change:
    """Makes the change, then finds that it must not be."""

    def act(connection: apsw.Connection) -> None:
        write.apply(connection)
        raise MemdError(ErrorCode.INVALID_PARAMS, "refused")

    return Change(act)


def upsert(name: str, role: str = "builder") -> Change:
    entry = Registered(
        container=Container(name),
        identity=Identity(source=IdentitySource.OPERATOR, role_key=role),
        database_id=None,
        loaded=True,
        loaded_at=1,
    )
    return Change(lambda connection: registry.upsert(connection, entry))


def delete(name: str) -> Change:
    return Change(lambda connection: registry.delete(connection, Container(name)))


def keyed_upsert(key: str, name: str) -> Keyed:
    request = RequestKey(channel="operator", key=key, request_hash="a", now=7)
    return Keyed(request, upsert(name).apply, 1)


#: One group of each mutator and groups of several, each for the database it is for.
GROUPS: dict[str, tuple[Schema, list[Write[Any]]]] = {
    "append": (INSTANCE_SCHEMA, [append("one", "two")]),
    "keyed append": (INSTANCE_SCHEMA, [keyed("new", "one", "two")]),
    "repeated keyed append": (INSTANCE_SCHEMA, [keyed("kept", "before")]),
    "run of appends": (INSTANCE_SCHEMA, [append("a"), append("b", "c"), append("d")]),
    "run of appends, one bad": (INSTANCE_SCHEMA, [append("a"), VIOLATING, append("b")]),
    "appends and keyed appends": (
        INSTANCE_SCHEMA,
        [append("a"), append("b"), keyed("new", "c"), append("d"), VIOLATING, keyed("new", "e")],
    ),
    "registry upsert": (REGISTRY_SCHEMA, [upsert("new")]),
    "registry upsert of a known one": (REGISTRY_SCHEMA, [upsert("known", "other")]),
    "registry delete": (REGISTRY_SCHEMA, [delete("known")]),
    "registry changes": (
        REGISTRY_SCHEMA,
        [keyed_upsert("k", "new"), delete("known"), refuse_after(delete("new")), upsert("third")],
    ),
}


def prepared(path: Path, schema: Schema) -> None:
    """A database with something in it that a failed group could harm."""
    of_instance: list[Write[Any]] = [append("before"), keyed("kept", "before")]
    of_registry: list[Write[Any]] = [upsert("known")]
    with opened(path, schema) as connection:
        for write in of_instance if schema is INSTANCE_SCHEMA else of_registry:
            write.apply(connection)


def expected_after(
    before: Path, writes: Sequence[Write[Any]], outcomes: Sequence[Outcome]
) -> Contents:
    """What a copy holds in which only the writes that succeeded were made, one by one."""
    memory = apsw.Connection(":memory:")
    with by_hand(before) as source, memory.backup("main", source, "main") as copying:
        copying.step()
    for write, outcome in zip(writes, outcomes, strict=True):
        if not isinstance(outcome, BaseException):
            assert write.apply(memory) == outcome
    return contents_of(memory)


def codes(outcomes: Sequence[Outcome]) -> list[str | None]:
    """The code of each write's error; None where it succeeded."""
    return [
        outcome.code.word if isinstance(outcome, MemdError)
        else type(outcome).__name__ if isinstance(outcome, BaseException)
        else None
        for outcome in outcomes
    ]  # fmt: skip

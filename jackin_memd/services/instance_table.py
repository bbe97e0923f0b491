"""The instances that the daemon knows, and finding the one that a call is about."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from jackin_memd.core.access import Principal
from jackin_memd.core.identity import Identity
from jackin_memd.core.names import is_short_id, short_id
from jackin_memd.engine.database import Database
from jackin_memd.engine.pending import Pending
from jackin_memd.storage.registry import Registered
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from jackin_memd.wire.vocab import Channel, Container

T = TypeVar("T")

log = logging.getLogger(__name__)

#: A database refused for one of these is refused for every call, so its instance fails.
_HARD = frozenset(
    {
        ErrorCode.DATABASE_REPLACED,
        ErrorCode.DATABASE_TOO_NEW,
        ErrorCode.DATABASE_SCHEMA_MISMATCH,
        ErrorCode.DATABASE_CORRUPT,
        ErrorCode.MIGRATION_FAILED,
        ErrorCode.FILESYSTEM_UNSUPPORTED,
    }
)


class Entry:
    """One known instance."""

    def __init__(self, registered: Registered, database: Database) -> None:
        self.registered = registered
        self.database = database
        self.failure: MemdError | None = None
        """Why a loaded instance is not served."""
        self.door_problem: MemdError | None = None
        """Why its socket is not; the operator's channel still serves it."""

    @property
    def container(self) -> Container:
        return self.registered.container

    @property
    def identity(self) -> Identity:
        return self.registered.identity

    @property
    def serving(self) -> bool:
        return self.registered.loaded and self.failure is None

    @property
    def state(self) -> InstanceState:
        if not self.registered.loaded:
            return InstanceState.UNLOADED
        return InstanceState.FAILED if self.failure else InstanceState.LOADED


class Listener(Protocol):
    """Who wants to know which instances are served."""

    async def instance_served(self, entry: Entry) -> None: ...

    def instance_gone(self, entry: Entry, code: str, message: str) -> None: ...


class InstanceTable:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._entries: dict[Container, Entry] = {}
        self._by_short_id: dict[str, set[Container]] = defaultdict(set)
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, container: Container) -> Entry | None:
        return self._entries.get(container)

    # -- finding -----------------------------------------------------------

    def find(self, reference: str | None, principal: Principal) -> Entry:
        """The instance that a call names, or that its channel is bound to.

        What a capsule may not see answers as not found. Raises MemdError.
        """
        if principal.channel is Channel.CAPSULE:
            return self._own(reference, principal)
        if reference is None:
            raise MemdError(
                ErrorCode.INVALID_PARAMS,
                "which instance? this channel serves all of them",
                hint="name it by its container name or its short id",
                field="instance",
            )
        entry = self._entries.get(Container(reference))
        if entry is not None:
            return entry
        matches = self._by_short_id.get(reference, set()) if is_short_id(reference) else set()
        if len(matches) > 1:
            raise MemdError(
                ErrorCode.INSTANCE_AMBIGUOUS,
                f"{len(matches)} instances have the short id {reference}",
                hint=f"give the full name: {', '.join(sorted(matches))}",
                field="instance",
            )
        if not matches:
            raise _not_found("load it first: jackin-mem instance load NAME")
        return self._entries[next(iter(matches))]

    def _own(self, reference: str | None, principal: Principal) -> Entry:
        own = principal.container
        entry = self._entries.get(own) if own is not None else None
        named = reference is None or (own is not None and reference in (own, short_id(own)))
        if entry is None or not named:
            raise _not_found("this socket serves its own instance only; leave instance out")
        return entry

    def serving(self, reference: str | None, principal: Principal) -> Entry:
        """Like `find`, for an instance that must be served. Raises MemdError."""
        entry = self.find(reference, principal)
        if entry.failure is not None:
            raise entry.failure.with_traceback(None)  # raised many times: keep no frames
        if not entry.registered.loaded:
            raise MemdError(
                ErrorCode.INSTANCE_NOT_LOADED,
                f"{entry.container} is not loaded",
                hint=f"load it: jackin-mem instance load {entry.container}",
                field="instance",
            )
        return entry

    def all_serving(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.serving]

    def counts(self) -> tuple[int, int]:
        """Served, and loaded but failed."""
        loaded = [entry for entry in self._entries.values() if entry.registered.loaded]
        failed = sum(entry.failure is not None for entry in loaded)
        return len(loaded) - failed, failed

    def enter(self, entry: Entry) -> None:
        self._entries[entry.container] = entry
        id_ = short_id(entry.container)
        if id_ is not None:
            self._by_short_id[id_].add(entry.container)

    def leave(self, container: Container) -> None:
        self._entries.pop(container, None)
        id_ = short_id(container)
        if id_ is not None:
            self._by_short_id[id_].discard(container)

    async def tell_served(self, entry: Entry) -> None:
        for listener in self._listeners:
            await listener.instance_served(entry)

    def fail(self, entry: Entry, failure: MemdError) -> None:
        """A loaded instance can't be served any more; others go on."""
        if entry.failure is None:
            entry.failure = failure
            log.error("%s is not served any more: %s", entry.container, failure)
            self.tell_gone(entry, failure.code.word, failure.message)

    def tell_gone(self, entry: Entry, code: str, message: str) -> None:
        for listener in self._listeners:
            listener.instance_gone(entry, code, message)

    def watch_failure(self, entry: Entry, pending: Pending[T]) -> Pending[T]:
        """The same outcome; a database that can't be trusted takes its instance out of
        service before the caller hears of it."""
        watched: Pending[T] = Pending()

        def look(outcome: T | BaseException) -> None:
            if isinstance(outcome, MemdError):
                self._judge(entry, outcome)
            watched.settle(outcome)

        pending.then(look)
        return watched

    @contextmanager
    def watched(self, entry: Entry) -> Iterator[None]:
        """The same for what is read in the block."""
        try:
            yield
        except MemdError as error:
            self._judge(entry, error)
            raise

    def _judge(self, entry: Entry, error: MemdError) -> None:
        current = self._entries.get(entry.container)
        if error.code in _HARD and current is not None and current.database is entry.database:
            self.fail(current, error)


def _not_found(hint: str) -> MemdError:
    # The name is not echoed: on a capsule channel it may be a guess at another's.
    return MemdError(ErrorCode.INSTANCE_NOT_FOUND, "no such instance", hint=hint, field="instance")

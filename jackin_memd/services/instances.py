"""instance.*: load, unload, purge, list, get; and serving again after a restart."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
import trio

from jackin_memd.core.identity import Claim, Identity, parse_manifest, settle_identity
from jackin_memd.core.names import parse_container, short_id
from jackin_memd.engine.database import Database
from jackin_memd.engine.pool import DatabasePool
from jackin_memd.host import instance_files
from jackin_memd.host.manifest import read_manifest
from jackin_memd.host.paths import Home, private_dir
from jackin_memd.services.context import Clock, Session, request_key
from jackin_memd.services.instance_table import Entry, InstanceTable
from jackin_memd.storage import registry
from jackin_memd.storage.connection import Sync
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.registry import REGISTRY_SCHEMA, Registered
from jackin_memd.storage.request_keys import Keyed, Repeated, RequestKey, find_answer
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import (
    Instance,
    InstanceGetParams,
    InstanceListParams,
    InstanceListResult,
    InstanceLoadParams,
    InstancePurgeParams,
    InstancePurgeResult,
    InstanceUnloadParams,
    Problem,
)
from jackin_memd.wire.vocab import Container

log = logging.getLogger(__name__)


class Doors(Protocol):
    """The instances' own sockets."""

    def bind(self, container: Container) -> None:
        """Make the instance's socket, where it is not there. Connections to it wait.

        Raises MemdError.
        """
        ...

    def open(self, container: Container) -> None:
        """`bind`, and let connections in. Raises MemdError."""
        ...

    async def close(self, container: Container) -> None:
        """Close the socket and its connections, after what they have in flight."""
        ...


class Instances:
    """The life of instances. Belongs to the event loop's thread."""

    def __init__(
        self,
        table: InstanceTable,
        home: Home,
        pool: DatabasePool,
        sync: Sync,
        doors: Doors,
        clock: Clock,
    ) -> None:
        self._table = table
        self._home = home
        self._pool = pool
        self._sync = sync
        self._doors = doors
        self._clock = clock
        self._busy: dict[Container, trio.Lock] = defaultdict(trio.Lock)
        self._registry = pool.add(
            home.name(home.registry_db), home.registry_db, REGISTRY_SCHEMA, Sync.FULL
        )

    # -- methods -----------------------------------------------------------

    async def load(self, params: InstanceLoadParams, session: Session) -> Instance:
        """instance.load"""
        container = parse_container(params.container)
        key = self._key("instance.load", params, params.idempotency_key, session)
        async with self._alone(container):
            repeated = await self._repeated(key)
            if repeated is not None:
                return msgspec.json.decode(repeated.answer, type=Instance)
            claim = Claim(
                workspace_name=params.workspace_name,
                role_key=params.role_key,
                agent_runtime=params.agent_runtime,
            )
            known = self._table.get(container)
            identity = self._identify(container, claim, known)
            database = known.database if known else self._database(container)
            before = database.epoch
            try:
                entry = await self._prepare(container, identity, database, known)
                answer = self._describe(entry)
                await self._commit(lambda c: registry.upsert(c, entry.registered), key, answer)
            except BaseException:
                if known is None or not known.serving:
                    await self._take_back(container, database)
                raise
            if known is not None and before != entry.registered.database_id:
                code = ErrorCode.DATABASE_REPLACED.word
                self._table.tell_gone(known, code, f"another database was loaded for {container}")
            await self._serve(entry)
            return answer

    async def _prepare(
        self, container: Container, identity: Identity, database: Database, known: Entry | None
    ) -> Entry:
        """All that can fail: the folder, the database, the socket."""
        instance_files.check_socket_path(self._home, container)
        private_dir(self._home.instance_dir(container))
        epoch = await database.load()
        self._doors.bind(container)
        registered = Registered(
            container=container,
            identity=identity,
            database_id=epoch,
            loaded=True,
            loaded_at=known.registered.loaded_at if known else self._clock(),
        )
        return Entry(registered, database)

    async def _serve(self, entry: Entry) -> None:
        """The registry has it: from here on calls find it, and subscribers follow it
        before its own socket lets in who could write the first row."""
        self._table.enter(entry)
        await self._table.tell_served(entry)
        self._open_door(entry)

    async def _take_back(self, container: Container, database: Database) -> None:
        with trio.CancelScope(shield=True):  # bounded by the drain and SQLite's busy timeout
            await self._doors.close(container)
            if self._table.get(container) is None:
                await self._pool.remove(database)

    async def unload(self, params: InstanceUnloadParams, session: Session) -> Instance:
        """instance.unload"""
        key = self._key("instance.unload", params, params.idempotency_key, session)
        repeated = await self._repeated(key)
        if repeated is not None:
            return msgspec.json.decode(repeated.answer, type=Instance)
        container = self._table.find(params.instance, session.principal).container
        async with self._alone(container):
            repeated = await self._repeated(key)  # the first call may have ended meanwhile
            if repeated is not None:
                return msgspec.json.decode(repeated.answer, type=Instance)
            entry = self._table.find(container, session.principal)
            unloaded = msgspec.structs.replace(entry.registered, loaded=False)
            answer = self._describe(Entry(unloaded, entry.database))
            await self._commit(lambda c: registry.upsert(c, unloaded), key, answer)
            entry.registered = unloaded
            entry.failure = entry.door_problem = None
            await self._stop_serving(entry, "UNLOADED", f"{container} was unloaded")
            return answer

    async def purge(self, params: InstancePurgeParams, session: Session) -> InstancePurgeResult:
        """instance.purge"""
        key = self._key("instance.purge", params, params.idempotency_key, session)
        repeated = await self._repeated(key)
        if repeated is not None:
            return msgspec.json.decode(repeated.answer, type=InstancePurgeResult)
        container = self._table.find(params.instance, session.principal).container
        async with self._alone(container):
            repeated = await self._repeated(key)  # the first call may have ended meanwhile
            if repeated is not None:
                return msgspec.json.decode(repeated.answer, type=InstancePurgeResult)
            entry = self._table.find(container, session.principal)
            entry.failure = _half_purged(container)  # until the last step is done
            await self._stop_serving(entry, "PURGED", f"{container} was purged")
            removed = instance_files.remove(self._home, container)
            answer = InstancePurgeResult(container=container, removed=removed)
            await self._commit(lambda c: registry.delete(c, container), key, answer)
            await self._pool.remove(entry.database)
            self._table.leave(container)
            return answer

    def get(self, params: InstanceGetParams, session: Session) -> Instance:
        """instance.get"""
        return self._describe(self._table.find(params.instance, session.principal))

    def list(self, params: InstanceListParams, session: Session) -> InstanceListResult:
        """instance.list"""
        found = sorted(
            (
                entry
                for entry in self._table
                if entry.container > (params.after or "") and params.state in (None, entry.state)
            ),
            key=lambda entry: entry.container,
        )
        return InstanceListResult(
            instances=[self._describe(entry) for entry in found[: params.limit]],
            more=len(found) > params.limit,
        )

    # -- life ----------------------------------------------------------------

    async def restore(self) -> None:
        """Serve again what was loaded when the last daemon ended."""
        await self._registry.load()
        for registered in await self._registry.read(registry.read_all):
            database = self._database(registered.container)
            database.epoch = registered.database_id
            entry = Entry(registered, database)
            self._table.enter(entry)
            if registered.loaded:
                self._resume(entry)

    def _resume(self, entry: Entry) -> None:
        entry.failure = instance_files.missing(self._home, entry.container)
        if entry.failure is None:
            self._open_door(entry)

    def look_around(self) -> Iterable[None]:
        """Notice what was removed under a loaded instance; a step for each one."""
        for entry in self._table.all_serving():
            if not entry.serving or self._table.get(entry.container) is not entry:
                continue  # it was unloaded, purged or loaded again between two steps
            failure = instance_files.missing(self._home, entry.container)
            if failure is not None:
                self._table.fail(entry, failure)
            else:
                self._open_door(entry)
            yield

    def _open_door(self, entry: Entry) -> None:
        """Also mends it. What keeps it closed is told, and tried again at the next look."""
        before, entry.door_problem = entry.door_problem, None
        try:
            self._doors.open(entry.container)
        except MemdError as error:
            entry.door_problem = error
            if before is None or before.message != error.message:
                log.warning("%s", error)
        else:
            if before is not None:
                log.info("the socket of %s is served again", entry.container)

    # -- helpers ---------------------------------------------------------------

    def _identify(self, container: Container, claim: Claim, known: Entry | None) -> Identity:
        payload = read_manifest(self._home.manifest(container))
        manifest = parse_manifest(payload, container) if payload is not None else None
        return settle_identity(container, manifest, claim, known.identity if known else None)

    def _database(self, container: Container) -> Database:
        path = self._home.instance_db(container)
        return self._pool.add(self._home.name(path), path, INSTANCE_SCHEMA, self._sync)

    async def _stop_serving(self, entry: Entry, code: str, message: str) -> None:
        self._table.tell_gone(entry, code, message)
        await self._doors.close(entry.container)
        await entry.database.close()

    @asynccontextmanager
    async def _alone(self, container: Container) -> AsyncIterator[None]:
        """One change of an instance's life at a time."""
        lock = self._busy[container]
        async with lock:
            try:
                yield
            finally:
                if not lock.statistics().tasks_waiting:
                    self._busy.pop(container, None)

    def _key(
        self, method: str, params: msgspec.Struct, key: str | None, session: Session
    ) -> RequestKey | None:
        return request_key(method, params, key, session.principal, self._clock())

    async def _repeated(self, key: RequestKey | None) -> Repeated | None:
        if key is None:
            return None
        return await self._registry.read(lambda connection: find_answer(connection, key))

    async def _commit(
        self,
        change: Callable[[registry.Connection], None],
        key: RequestKey | None,
        answer: msgspec.Struct,
    ) -> None:
        await self._registry.write(_RegistryChange(change, key, answer)).wait()

    def _describe(self, entry: Entry) -> Instance:
        identity, error = entry.identity, entry.failure or entry.door_problem
        return Instance(
            container=entry.container,
            instance_id=short_id(entry.container),
            workspace_name=identity.workspace_name,
            workspace_label=identity.workspace_label,
            workdir_fingerprint=identity.workdir_fingerprint,
            role_key=identity.role_key,
            agent_runtime=identity.agent_runtime,
            identity_source=identity.source,
            state=entry.state,
            loaded_at=entry.registered.loaded_at,
            socket=str(self._home.instance_socket(entry.container)),
            problem=Problem(code=error.code.word, message=error.message, hint=error.hint)
            if error
            else None,
        )


def _half_purged(container: Container) -> MemdError:
    return MemdError(
        ErrorCode.INSTANCE_FOLDER_MISSING,
        f"the purge of {container} has begun and not ended",
        hint=f"run it again: jackin-mem instance purge {container}",
    )


class _RegistryChange(msgspec.Struct, frozen=True):
    """A change of the registry, with the answer that a repeat of the call gets."""

    change: Callable[[registry.Connection], None]
    key: RequestKey | None
    answer: msgspec.Struct
    row_count: int = 1

    def apply(self, connection: registry.Connection) -> None:
        if self.key is None:
            self.change(connection)
        else:
            Keyed(self.key, self._first, 1).apply(connection)

    def _first(self, connection: registry.Connection) -> msgspec.Struct:
        self.change(connection)
        return self.answer

"""Accepting connections: the operator's socket, and one socket for each instance."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import trio

from jackin_memd.core.access import Principal
from jackin_memd.host.config import Settings
from jackin_memd.host.paths import Home, private_dir
from jackin_memd.host.peercred import peer_uid
from jackin_memd.server.binding import BoundSocket, bind
from jackin_memd.server.connection import Connection
from jackin_memd.server.dispatch import Dispatcher
from jackin_memd.services.daemon import Load
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.peer import Peer
from jackin_memd.wire.vocab import Channel, Container

log = logging.getLogger(__name__)

#: Errors of accept that pass by themselves; the next try waits a little.
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_EXHAUSTED_WAIT_S = 0.1


class Door:
    """One listening socket, its principal, and the connections it let in."""

    def __init__(self, bound: BoundSocket, principal: Principal) -> None:
        self.bound = bound
        self.principal = principal
        self.connections: set[Connection] = set()
        self.is_open = False
        self._left = trio.Event()

    def leave(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._left.set()

    async def wait_until_empty(self) -> None:
        while self.connections:
            self._left = trio.Event()
            await self._left.wait()


class Listening:
    """All doors of the daemon. Belongs to the event loop's thread."""

    def __init__(self, home: Home, settings: Settings, nursery: trio.Nursery) -> None:
        """`nursery` runs the accept loops and the connections."""
        self._home = home
        self._settings = settings
        self._nursery = nursery
        self._dispatcher: Dispatcher | None = None
        self._doors: dict[Path, Door] = {}
        self._closing = False

    def dispatch_to(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    # -- doors -----------------------------------------------------------------

    def open_operator(self) -> Door:
        """Raises MemdError."""
        door = Door(bind(self._home.operator_socket), Principal(channel=Channel.OPERATOR))
        self._doors[door.bound.path] = door
        self._let_in(door)
        return door

    def bind(self, container: Container) -> None:
        """Make an instance's socket; bind it again where its path was taken away.

        Raises MemdError (SOCKET_PATH_TOO_LONG, SOCKET_PATH_OCCUPIED, PATH_UNSAFE,
        STORAGE_FAILED).
        """
        if self._closing:
            raise MemdError(
                ErrorCode.DAEMON_STOPPING,
                "the daemon is stopping and opens no socket",
                hint="start it again: jackin-memd start",
            )
        path = self._home.instance_socket(container)
        old = self._doors.get(path)
        if old is not None and old.bound.in_place:
            return
        try:
            private_dir(path.parent)
        except OSError as error:
            raise MemdError(
                ErrorCode.STORAGE_FAILED,
                f"the socket folder {path.parent} can't be made: {error.strerror}",
                hint="look at the folder's owner and mode",
            ) from error
        bound = bind(path)
        if old is None:
            principal = Principal(channel=Channel.CAPSULE, container=container)
            self._doors[path] = Door(bound, principal)
            return
        log.warning("the socket of %s was taken away and is bound again", container)
        self._stop_accepting(old)
        old.bound = bound
        self._let_in(old)

    def open(self, container: Container) -> None:
        """`bind`, and accept what connects. Raises MemdError as `bind` does."""
        self.bind(container)
        self._let_in(self._doors[self._home.instance_socket(container)])

    def _let_in(self, door: Door) -> None:
        if not door.is_open:
            door.is_open = True
            self._nursery.start_soon(self._accept, door, door.bound.listener)

    def _stop_accepting(self, door: Door) -> None:
        trio.lowlevel.notify_closing(door.bound.listener)
        door.bound.close()
        door.is_open = False

    async def close(self, container: Container) -> None:
        """Close an instance's socket and its connections, after what they have in flight."""
        door = self._doors.pop(self._home.instance_socket(container), None)
        if door is None:
            return
        self._shut(door)
        with trio.move_on_after(self._settings.timeouts.drain_s):
            await door.wait_until_empty()
        for connection in door.connections:
            connection.abort()
        await door.wait_until_empty()

    async def close_all(self) -> None:
        """Accept nothing new, and let every connection finish what it was given."""
        self._closing = True
        doors, self._doors = list(self._doors.values()), {}
        for door in doors:
            self._shut(door)
        for door in doors:
            await door.wait_until_empty()

    def _shut(self, door: Door) -> None:
        self._stop_accepting(door)
        for connection in door.connections:
            connection.stop()

    # -- accepting ----------------------------------------------------------------

    async def _accept(self, door: Door, listener: socket.socket) -> None:
        """Until the listener is closed, which may also be in a moment without a wait on it."""
        while listener.fileno() != -1:
            try:
                await trio.lowlevel.wait_readable(listener)
                connection, _ = listener.accept()
            except trio.ClosedResourceError:
                return
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno not in _EXHAUSTED and listener.fileno() != -1:
                    log.exception("accepting on %s failed", door.bound.path)
                await trio.sleep(_EXHAUSTED_WAIT_S)
                continue
            self._welcome(connection, door)

    def _welcome(self, connection: socket.socket, door: Door) -> None:
        connection.setblocking(False)
        try:
            refused = self._refusal(connection, door)
        except OSError:  # the peer is gone, and with it who it was
            connection.close()
            return
        if refused is not None:
            _turn_away(connection, refused)
            return
        assert self._dispatcher is not None
        accepted = Connection(connection, door.principal, self._dispatcher, self._settings)
        door.connections.add(accepted)
        self._nursery.start_soon(self._run, accepted, door)

    def _refusal(self, connection: socket.socket, door: Door) -> MemdError | None:
        limit = self._settings.limits.connections
        if len(door.connections) >= limit:
            return MemdError(
                ErrorCode.TOO_MANY_CONNECTIONS,
                f"this socket has {limit} connections, which is its limit",
                hint="close some, and use one connection for many calls",
                details={"limit": limit},
            )
        uid = peer_uid(connection)
        if uid is not None and uid != os.geteuid():
            return MemdError(
                ErrorCode.PERMISSION_DENIED,
                "this daemon serves the user that runs it, and no other",
                hint="run the command as that user",
            )
        return None

    async def _run(self, connection: Connection, door: Door) -> None:
        try:
            await connection.run()
        except Exception:  # a fault of ours ends this connection, not the daemon
            log.exception("a connection ended by a fault")
        finally:
            door.leave(connection)

    # -- what the status call asks ---------------------------------------------------

    def load(self) -> Load:
        connections: Counter[str] = Counter({channel.value: 0 for channel in Channel})
        in_flight = subscriptions = 0
        for door in self._doors.values():
            for connection in door.connections:
                connections[connection.principal.channel.value] += 1
                in_flight += connection.in_flight
                subscriptions += connection.subscription_count
        return Load(
            connections=dict(connections),
            requests_in_flight=in_flight,
            subscriptions=subscriptions,
        )


def _turn_away(connection: socket.socket, error: MemdError) -> None:
    """Say why, without waiting for the peer to listen."""
    farewell: Callable[[MemdError], bytes] = Peer(answers=False).farewell
    with connection:
        try:
            connection.send(farewell(error))
        except OSError:
            log.debug("a refused peer was gone before it could be told")

"""The daemon put together: what owns what, and in which order it starts and stops."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from jackin_memd.engine.pool import DatabasePool, database_pool
from jackin_memd.host.config import Settings
from jackin_memd.host.locks import HeldLock
from jackin_memd.host.paths import Home
from jackin_memd.host.process import make_private, raise_file_limit
from jackin_memd.server.binding import answers
from jackin_memd.server.dispatch import Dispatcher
from jackin_memd.server.listening import Door, Listening
from jackin_memd.services.daemon import DaemonService
from jackin_memd.services.handlers import make_handlers
from jackin_memd.services.instance_table import InstanceTable
from jackin_memd.services.instances import Instances
from jackin_memd.services.status import StatusService
from jackin_memd.storage.connection import Sync
from jackin_memd.wire.errors import ErrorCode, MemdError

log = logging.getLogger(__name__)

#: A stopping predecessor takes no calls and holds the lock while it drains.
LOCK_WAIT_S = 15.0
_LOCK_POLL_S = 0.05


def run(home: Home, settings: Settings, ready: Callable[[], None]) -> None:
    """Be the daemon of this home until a signal or `shutdown` ends it.

    `ready` is called once every socket is served. Raises MemdError where the
    daemon can't start, or had to stop because its home was taken from it.
    """
    make_private()
    raise_file_limit()
    with _sole_daemon(home) as lock:
        lock.write(f"{os.getpid()}\n")
        trio.run(_serve, home, settings, lock, ready)


@contextmanager
def _sole_daemon(home: Home) -> Iterator[HeldLock]:
    deadline = time.monotonic() + LOCK_WAIT_S
    waiting = False
    while True:
        try:
            lock = HeldLock(home.lock)
            break
        except BlockingIOError:
            # One that answers is there to stay; one that does not may be draining.
            if answers(home.operator_socket) or time.monotonic() > deadline:
                raise MemdError(
                    ErrorCode.DAEMON_RUNNING,
                    f"another daemon holds {home.lock}",
                    hint="jackin-memd status shows it; jackin-memd stop ends it",
                ) from None
            if not waiting:
                waiting = True
                log.info("waiting for the daemon before this one to finish")
            time.sleep(_LOCK_POLL_S)
    with lock:
        yield lock


async def _serve(home: Home, settings: Settings, lock: HeldLock, ready: Callable[[], None]) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as outer:
        # Until the very end: a second signal must not kill what is closing its files.
        outer.start_soon(_stop_on_signal, stop)
        ended = await _serve_until(stop, home, settings, lock, ready)
        outer.cancel_scope.cancel()
    if ended is not None:
        raise ended  # out here: a nursery would wrap it in a group


async def _serve_until(
    stop: trio.Event, home: Home, settings: Settings, lock: HeldLock, ready: Callable[[], None]
) -> MemdError | None:
    """Start, serve, drain and close; returns why it could not start or had to stop."""
    timeouts = settings.timeouts
    ended: MemdError | None = None
    async with (
        database_pool(
            owned=lock.check,
            idle_close_s=timeouts.idle_close_s,
            max_open=settings.limits.open_databases,
        ) as pool,
        trio.open_nursery() as nursery,
    ):
        listening = Listening(home, settings, nursery)
        instances = _compose(home, settings, pool, listening, stop)
        try:
            await instances.restore()
            door = listening.open_operator()
        except MemdError as error:
            ended = error
        else:
            nursery.start_soon(pool.close_idle)
            watch = Watch(instances, lock, door, stop, timeouts.watch_s)
            nursery.start_soon(watch.run)
            gc.freeze()  # what start-up made stays; collecting it again and again is waste
            log.info("serving %s", home.operator_socket)
            ready()
            await stop.wait()
            watch.end()
            ended = watch.lost
            log.info("stopping: finishing what was accepted")
        with trio.move_on_after(timeouts.drain_s) as drain:
            await listening.close_all()
        if drain.cancelled_caught:
            log.warning("some connections did not finish in %g s", timeouts.drain_s)
        nursery.cancel_scope.cancel()
    return ended


def _compose(
    home: Home,
    settings: Settings,
    pool: DatabasePool,
    listening: Listening,
    stop: trio.Event,
) -> Instances:
    def clock() -> int:
        return int(time.time())

    table = InstanceTable()
    sync = Sync(settings.durability.runtime.value)
    instances = Instances(table, home, pool, sync, listening, clock)
    status = StatusService(table, clock)
    daemon = DaemonService(
        home,
        pool,
        table,
        clock,
        max_frame_bytes=settings.limits.frame_bytes,
        load=listening.load,
        stop=stop,
    )
    listening.dispatch_to(Dispatcher(make_handlers(daemon, instances, status)))
    return instances


async def _stop_on_signal(stop: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop.set()


class Watch:
    """Notices what is taken from the daemon or its instances, and acts on it."""

    def __init__(
        self, instances: Instances, lock: HeldLock, door: Door, stop: trio.Event, every_s: float
    ) -> None:
        self._instances = instances
        self._lock = lock
        self._door = door
        self._stop = stop
        self._every_s = every_s
        self.lost: MemdError | None = None
        """Why the daemon had to stop."""
        self._scope = trio.CancelScope()

    def end(self) -> None:
        """A stopping daemon removes its own socket, which is nobody's fault."""
        self._scope.cancel()

    async def run(self) -> None:
        with self._scope:
            while self.lost is None:
                await trio.sleep(self._every_s)
                await self._look()

    async def _look(self) -> None:
        try:
            self._check_own()
        except MemdError as error:
            log.error("%s", error)  # noqa: TRY400 - a fact, not a fault of ours
            self.lost = error
            self._stop.set()
            return
        for _ in self._instances.look_around():
            await trio.lowlevel.checkpoint()

    def _check_own(self) -> None:
        self._lock.check()
        if not self._door.bound.in_place:
            raise MemdError(
                ErrorCode.DAEMON_STOPPING,
                f"the daemon's socket {self._door.bound.path} was removed or replaced, so it stops",
                hint="start it again: jackin-memd start",
            )

"""hello, ping, status, shutdown, rpc.discover."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import psutil
import trio

import jackin_memd
from jackin_memd.core.hello import version_refusal
from jackin_memd.engine.pool import DatabasePool
from jackin_memd.host.paths import Home
from jackin_memd.services.context import Clock, Session
from jackin_memd.services.instance_table import InstanceTable
from jackin_memd.storage.connection import SQLITE_VERSION
from jackin_memd.wire.session import (
    DaemonStatus,
    DaemonStatusParams,
    DiscoverParams,
    HelloParams,
    HelloResult,
    PingParams,
    PingResult,
    ShutdownParams,
    ShutdownResult,
)
from jackin_memd.wire.vocab import PROTOCOL_VERSION

BUILD = f"jackin-memd/{jackin_memd.__version__}"

_PONG = PingResult()


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the server is busy with."""

    connections: dict[str, int]
    requests_in_flight: int
    subscriptions: int


class DaemonService:
    def __init__(
        self,
        home: Home,
        pool: DatabasePool,
        table: InstanceTable,
        clock: Clock,
        *,
        max_frame_bytes: int,
        load: Callable[[], Load],
        stop: trio.Event,
    ) -> None:
        self._home = home
        self._pool = pool
        self._table = table
        self._max_frame_bytes = max_frame_bytes
        self._load = load
        self._stop = stop
        self._started_at = clock()
        self._started = trio.current_time()
        self._process = psutil.Process()

    def hello(self, params: HelloParams, session: Session) -> HelloResult:
        refused = version_refusal(params, BUILD)
        if refused is not None:
            raise refused
        principal = session.greet(params)
        return HelloResult(
            protocol_version=PROTOCOL_VERSION,
            build=BUILD,
            channel=principal.channel,
            instance=principal.container,
            max_frame_bytes=self._max_frame_bytes,
        )

    def ping(self, params: PingParams, session: Session) -> PingResult:
        return _PONG

    def status(self, params: DaemonStatusParams, session: Session) -> DaemonStatus:
        stats, load = self._pool.stats, self._load()
        served, failed = self._table.counts()
        return DaemonStatus(
            state="stopping" if self._stop.is_set() else "serving",
            pid=os.getpid(),
            protocol_version=PROTOCOL_VERSION,
            build=BUILD,
            home=str(self._home.root),
            socket=str(self._home.operator_socket),
            sqlite_version=SQLITE_VERSION,
            started_at=self._started_at,
            uptime_s=round(trio.current_time() - self._started, 3),
            rss_bytes=self._process.memory_info().rss,
            threads=threading.active_count(),
            instances_loaded=served,
            instances_failed=failed,
            databases_open=self._pool.open_count,
            connections=load.connections,
            requests_in_flight=load.requests_in_flight,
            write_queue_depth=self._pool.write_queue_depth,
            read_queue_depth=self._pool.read_queue_depth,
            subscriptions=load.subscriptions,
            commits=stats.commits,
            rows=stats.rows,
            rows_per_commit=round(stats.rows / stats.commits, 2) if stats.commits else None,
            acknowledgement=stats.latency(),
        )

    def shutdown(self, params: ShutdownParams, session: Session) -> ShutdownResult:
        self._stop.set()
        return ShutdownResult(accepted=True, pid=os.getpid())

    def discover(self, params: DiscoverParams, session: Session) -> dict[str, Any]:
        from jackin_memd.wire.discovery import openrpc  # noqa: PLC0415 - seldom asked for

        return openrpc(BUILD)

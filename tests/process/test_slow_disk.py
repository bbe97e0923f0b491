"""A disk that takes its time holds up who waits for it, and nobody else."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from jackin_mem.aio import AsyncClient, open_client
from jackin_memd import app
from jackin_memd.host.config import Settings
from jackin_memd.host.locks import HeldLock
from jackin_memd.host.paths import open_home
from jackin_memd.wire.instances import InstanceLoadParams
from jackin_memd.wire.session import PingParams, ShutdownParams
from jackin_memd.wire.status import StatusEntry, StatusListParams, StatusRecordParams
from tests.storage.faulty_disk import Disk, faulty_disk
from tests.support.daemon import CONTAINER, OTHER, PATIENCE_S
from tests.support.proves import proves


class Gate:
    """Holds whoever writes below a folder, once it is shut."""

    def __init__(self, disk: Disk, below: Path) -> None:
        self._below = below
        self._open = threading.Event()
        self._open.set()
        self.reached = threading.Event()
        disk.touched = self._touched  # type: ignore[method-assign]

    def _touched(self, path: str) -> None:
        if Path(path).is_relative_to(self._below) and not self._open.is_set():
            self.reached.set()
            assert self._open.wait(PATIENCE_S)

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()


@pytest.fixture(autouse=True)
def private() -> Iterator[None]:
    umask = os.umask(0o077)
    yield
    os.umask(umask)


async def _record(client: AsyncClient, container: str) -> None:
    entries = [StatusEntry(new_status="working")]
    await client.call("status.record", StatusRecordParams(instance=container, entries=entries))


async def _scenario(disk: Disk, folder: Path) -> None:
    home = open_home(folder)
    ready, recorded = trio.Event(), trio.Event()
    gate = Gate(disk, home.data / CONTAINER)

    async def record_on_the_slow_disk(client: AsyncClient) -> None:
        await _record(client, CONTAINER)
        recorded.set()

    with trio.fail_after(PATIENCE_S), HeldLock(home.lock) as lock:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app._serve, home, Settings(), lock, ready.set)
            await ready.wait()
            async with open_client(home.operator_socket) as client:
                for container in (CONTAINER, OTHER):
                    load = InstanceLoadParams(container=container, role_key="builder")
                    await client.call("instance.load", load)
                    await _record(client, container)
                gate.shut()
                nursery.start_soon(record_on_the_slow_disk, client)
                await trio.to_thread.run_sync(gate.reached.wait)

                await client.call("ping", PingParams())
                await _record(client, OTHER)
                page = await client.call("status.list", StatusListParams(instance=CONTAINER))
                assert len(page.rows) == 1  # readers see what is committed, without waiting
                assert not recorded.is_set()

                gate.open()
                await recorded.wait()
                await client.call("shutdown", ShutdownParams())


@proves("store-loop-not-blocked", "store-readers-not-blocked")
def test_a_commit_that_waits_for_the_disk_holds_up_nobody_else(short_path: Path) -> None:
    with faulty_disk() as disk:
        trio.run(_scenario, disk, short_path / "home")

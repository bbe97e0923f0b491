"""`durability.runtime` reaches the disk: whether a commit waits for it is counted there."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import trio

from jackin_mem.aio import open_client
from jackin_memd import app
from jackin_memd.host.config import Durability, DurabilitySettings, Settings
from jackin_memd.host.locks import HeldLock
from jackin_memd.host.paths import open_home
from jackin_memd.wire.instances import InstanceLoadParams
from jackin_memd.wire.session import ShutdownParams
from jackin_memd.wire.status import StatusEntry, StatusRecordParams
from tests.storage.faulty_disk import Disk, faulty_disk
from tests.support.daemon import CONTAINER, PATIENCE_S
from tests.support.proves import proves

CALLS = 5


async def _syncs_of_calls(disk: Disk, folder: Path, settings: Settings) -> int:
    """Syncs during CALLS status.record calls, one after the other, on the whole daemon."""
    home = open_home(folder)
    ready = trio.Event()
    syncs = 0
    with trio.fail_after(PATIENCE_S), HeldLock(home.lock) as lock:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app._serve, home, settings, lock, ready.set)
            await ready.wait()
            async with open_client(home.operator_socket) as client:
                await client.call(
                    "instance.load", InstanceLoadParams(container=CONTAINER, role_key="builder")
                )
                before = disk.syncs
                for _ in range(CALLS):
                    await client.call(
                        "status.record",
                        StatusRecordParams(
                            instance=CONTAINER, entries=[StatusEntry(new_status="working")]
                        ),
                    )
                syncs = disk.syncs - before
                await client.call("shutdown", ShutdownParams())
    return syncs


@proves("store-durability-setting")
@pytest.mark.parametrize(
    ("durability", "syncs"), [(Durability.FULL, CALLS), (Durability.NORMAL, 0)]
)
def test_runtime_rows_wait_for_the_disk_if_the_setting_says_so(
    short_path: Path, durability: Durability, syncs: int
) -> None:
    settings = msgspec.structs.replace(
        Settings(), durability=DurabilitySettings(runtime=durability)
    )
    umask = os.umask(0o077)
    try:
        with faulty_disk() as disk:
            found = trio.run(_syncs_of_calls, disk, short_path / "home", settings)
    finally:
        os.umask(umask)
    assert found == syncs

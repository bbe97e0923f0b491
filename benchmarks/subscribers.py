"""What 100 idle subscribers cost a write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.daemon_process import (
    Daemon,
    container_name,
    running_daemon,
    start_helper,
    wait_ready,
)
from benchmarks.measure import Settings, each_us, median, us
from benchmarks.report import Figure, Table, figures_table
from benchmarks.slim_client import SlimClient
from jackin_memd.wire.status import StatusEntry, StatusRecordParams

COUNT = 100

#: Between two writes, so that the news of one is out before the next is sent.
PAUSE_S = 0.02

_CASES = {
    "none": None,
    f"{COUNT} that follow another instance": 1,
    f"{COUNT} that follow this instance": 0,
}


def run(settings: Settings, folder: Path) -> Table:
    paced: dict[str, list[float]] = {name: [] for name in _CASES}
    dense: dict[str, list[float]] = {name: [] for name in _CASES}
    with running_daemon(folder, instances=2) as daemon:
        client = SlimClient(daemon.socket)
        client.hello()
        record = client.frame(
            "status.record",
            StatusRecordParams(
                entries=[StatusEntry(new_status="working")], instance=container_name(0)
            ),
        )

        def after_a_pause() -> float:
            time.sleep(PAUSE_S)
            return each_us(lambda: client.exchange(record), 1)[0]

        for _ in settings.turns():
            for name, followed in _CASES.items():
                with _subscribers(daemon, followed):
                    times = settings.times(100)
                    paced[name].append(median([after_a_pause() for _ in range(times)]))
                    dense[name].append(median(each_us(lambda: client.exchange(record), times)))
        client.close()
    return figures_table(f"{COUNT} idle subscribers, one writing client", _figures(paced, dense))


def _figures(paced: dict[str, list[float]], dense: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for what, measured in (("20 ms apart", paced), ("back to back", dense)):
        alone = median(measured["none"])
        for name, values in measured.items():
            value = median(values)
            text = f"p50 {us(value)}" + ("" if name == "none" else f" ({value / alone:.2f}×)")
            figures.append(Figure(name=f"writes {what}, subscribers: {name}", measured=text))
    return figures


@contextmanager
def _subscribers(daemon: Daemon, followed: int | None) -> Iterator[None]:
    if followed is None:
        yield
        return
    arguments = (str(daemon.socket), container_name(followed), str(COUNT))
    process = start_helper("subscriber_process", *arguments)
    try:
        wait_ready(process)
        yield
    finally:
        process.communicate("end\n")

"""Memory, start-up, and what a short command costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter

import psutil

from benchmarks.daemon_process import Daemon, container_name
from benchmarks.measure import Settings, median, ms
from benchmarks.report import Figure, Table, at_most, figures_table
from jackin_memd.wire.status import StatusEntry, StatusRecordParams

LOADED, RSS_MIB = 200, 80.0
REGISTERED, READY_MS = 1000, 500.0
COMMAND_MS = 100.0


def run(settings: Settings, folder: Path) -> Table:
    daemon = Daemon(folder)
    daemon.start()
    try:
        daemon.load(range(LOADED))
        figures = [*_memory(daemon), *_command(settings, daemon)]
        registered = LOADED if settings.quick else REGISTERED
        daemon.load(range(LOADED, registered))
        figures += _start_up(settings, daemon, registered)
    finally:
        daemon.stop()
    return figures_table("Footprint", figures)


def _memory(daemon: Daemon) -> list[Figure]:
    loaded = _rss_mib(daemon)
    with daemon.client() as client:
        for number in range(LOADED):
            entries = [StatusEntry(new_status="working")]
            params = StatusRecordParams(entries=entries, instance=container_name(number))
            client.call("status.record", params)
    written = _rss_mib(daemon)
    wanted = f"< {RSS_MIB:.0f} MiB"
    name = f"RSS with {LOADED} loaded instances"
    return [
        at_most(name, f"{loaded:.1f} MiB", loaded, RSS_MIB, wanted),
        at_most(f"{name}, one write to each", f"{written:.1f} MiB", written, RSS_MIB, wanted),
    ]


def _rss_mib(daemon: Daemon) -> float:
    return float(psutil.Process(daemon.pid).memory_info().rss) / 2**20


def _start_up(settings: Settings, daemon: Daemon, registered: int) -> list[Figure]:
    taken = []
    for _ in settings.turns():
        daemon.stop()
        taken.append(daemon.start() * 1000)
    value = median(taken)
    name = f"start to ready, {registered:,} registered instances"
    rss = _rss_mib(daemon)
    return [
        at_most(name, f"{value:.0f} ms", value, READY_MS, f"< {READY_MS:.0f} ms"),
        Figure(name=f"RSS after that start ({registered:,} served)", measured=f"{rss:.1f} MiB"),
    ]


def _command(settings: Settings, daemon: Daemon) -> list[Figure]:
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "ping": [sys.executable, "-m", "jackin_mem", "ping"],
        "list": [sys.executable, "-m", "jackin_mem", "status", "show"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in settings.turns():
        for name, command in list(commands.items()) * 5:
            before = perf_counter()
            subprocess.run(command, env=daemon.environment, stdout=subprocess.DEVNULL, check=True)
            taken[name].append((perf_counter() - before) * 1000)
    bare = median(taken["bare"])
    figures = [Figure(name="`python -c pass`", measured=ms(bare))]
    for name, written in (("ping", "jackin-mem ping"), ("list", "jackin-mem status show")):
        whole = median(taken[name])
        over = whole - bare
        text = f"{ms(whole)}, {ms(over)} over the interpreter"
        figures.append(
            at_most(f"`{written}`", text, over, COMMAND_MS, f"≤ {COMMAND_MS:.0f} ms over")
        )
    return figures

"""ADR 3: the strategies under load, in one process with a trio event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import trio

from benchmarks.group_commits import Row
from benchmarks.measure import Settings, median, percentile, scratch, us
from benchmarks.report import Table
from benchmarks.writer_strategies import MANY, STRATEGIES, Strategy, Write

CONCURRENT = (1, 8, 32)
DATABASES = 64
_ROW: Row = (1_796_000_000, "working", None)
_TICK_S = 0.001


class Load(msgspec.Struct, frozen=True):
    """What one run of one strategy did."""

    rows_per_s: float
    p50_us: float
    p99_us: float
    stall_ms: float
    """The longest that a 1 ms ticker on the event loop was late."""
    threads: int


def run(settings: Settings) -> Iterator[Table]:
    for synchronous in ("FULL", "NORMAL"):
        yield _one_database(settings, synchronous)
    yield _many_databases(settings)


def _one_database(settings: Settings, synchronous: str) -> Table:
    loads: dict[tuple[str, int], list[Load]] = {}
    with scratch() as folder:
        for turn in range(settings.rounds):
            for writers in CONCURRENT:
                for number, (name, strategy) in enumerate(STRATEGIES.items()):
                    settings.wait_for_calm()
                    path = folder / f"{turn}-{writers}-{number}.db"
                    measured = trio.run(
                        _load, strategy, [path], synchronous, writers, settings.load_s / 6
                    )
                    loads.setdefault((name, writers), []).append(measured)
    return Table(
        title=f"One database, `synchronous={synchronous}`",
        header=["strategy", *(f"{n} writer{'s' * (n > 1)}" for n in CONCURRENT)],
        rows=[[name, *(_cell(loads[name, n]) for n in CONCURRENT)] for name in STRATEGIES],
        notes=[
            (
                f"Rows/s · acknowledgement p50 / p99 · longest delay of a 1 ms ticker on the event "
                f"loop; medians of {settings.rounds} rounds, strategies in turns."
            )
        ],
    )


def _cell(loads: list[Load]) -> str:
    rows = median([load.rows_per_s for load in loads])
    p50, p99 = (median([getattr(load, f) for load in loads]) for f in ("p50_us", "p99_us"))
    stall = median([load.stall_ms for load in loads])
    return f"{rows:,.0f} · {us(p50)} / {us(p99)} · {stall:.1f} ms"


def _many_databases(settings: Settings) -> Table:
    loads: dict[str, list[Load]] = {}
    with scratch() as folder:
        for turn in range(settings.rounds):
            for number, (name, strategy) in enumerate(MANY.items()):
                settings.wait_for_calm()
                paths = [folder / f"{turn}-{number}-{n}.db" for n in range(DATABASES)]
                seconds = settings.load_s / 3
                measured = trio.run(_load, strategy, paths, "FULL", DATABASES, seconds)
                loads.setdefault(name, []).append(measured)
    rows = []
    for name in MANY:
        threads = max(load.threads for load in loads[name])
        rows.append([name, _cell(loads[name]), str(threads)])
    return Table(
        title=f"{DATABASES} databases, one writer to each, `synchronous=FULL`",
        header=["strategy", "load", "threads of the strategy"],
        rows=rows,
        notes=["trio starts and keeps the threads of `to_thread` as they are needed."],
    )


async def _load(
    strategy: Strategy, paths: list[Path], synchronous: str, writers: int, seconds: float
) -> Load:
    latencies: list[float] = []
    delays: list[float] = []
    threads_before = threading.active_count()
    async with strategy(paths, synchronous) as writes:
        await writes[0](_ROW)
        threads = threading.active_count() - threads_before
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tick, delays, nursery.cancel_scope)
            began = trio.current_time()
            async with trio.open_nursery() as writing:
                for number in range(writers):
                    write = writes[number % len(writes)]
                    writing.start_soon(_write_until, write, began + seconds, latencies)
            took = trio.current_time() - began
            nursery.cancel_scope.cancel()
    return Load(
        rows_per_s=len(latencies) / took,
        p50_us=percentile(latencies, 0.5) * 1e6,
        p99_us=percentile(latencies, 0.99) * 1e6,
        stall_ms=max(delays, default=0.0) * 1e3,
        threads=threads,
    )


async def _write_until(write: Write, deadline: float, latencies: list[float]) -> None:
    while (before := trio.current_time()) < deadline:
        await write(_ROW)
        latencies.append(trio.current_time() - before)


async def _tick(delays: list[float], scope: trio.CancelScope) -> None:
    while not scope.cancel_called:
        before = trio.current_time()
        await trio.sleep(_TICK_S)
        delays.append(trio.current_time() - before - _TICK_S)

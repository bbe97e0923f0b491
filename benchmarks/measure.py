"""Clocks, percentiles, formats, and what the machine is."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter

import psutil

#: A measurement starts once others use less than this share of the CPU and a
#: sync takes less than this multiple of the fastest seen, or after this long:
#: then it is counted as disturbed. The second bound is for the whole run.
_CALM_PERCENT = 15.0
_CALM_SYNC = 1.6
_CALM_PATIENCE_S = 20.0
_RUN_PATIENCE_S = 600.0


class Settings:
    """How long to measure. Quick is for trying the benchmark, not for quoting it."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.rounds = 2 if quick else 5
        self.load_s = 0.5 if quick else 3.0
        self.started = 0
        self.disturbed = 0
        """Of those started: while other programs were using the machine."""
        self._fastest_sync_us = float("inf")
        self._patience_s = 0.0 if quick else _RUN_PATIENCE_S

    def times(self, count: int) -> int:
        """A number of repetitions, less in a quick run."""
        return max(1, count // 5) if self.quick else count

    def turns(self, rounds: int | None = None) -> Iterator[int]:
        """The rounds' numbers, each once the machine is calm."""
        for turn in range(self.rounds if rounds is None else rounds):
            self.wait_for_calm()
            yield turn

    def wait_for_calm(self) -> None:
        """Before a measurement that others could disturb."""
        self.started += 1
        began = monotonic()
        deadline = began + min(_CALM_PATIENCE_S, self._patience_s)
        while not self._is_calm():
            if monotonic() > deadline:
                self.disturbed += 1
                break
        self._patience_s = max(0.0, self._patience_s - (monotonic() - began))

    def _is_calm(self) -> bool:
        busy_percent = psutil.cpu_percent(0.2)
        with scratch() as folder:
            sync = sync_us(folder)
        self._fastest_sync_us = min(self._fastest_sync_us, sync)
        return busy_percent < _CALM_PERCENT and sync < _CALM_SYNC * self._fastest_sync_us


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def each_us(action: Callable[[], object], times: int) -> list[float]:
    """What each of `times` runs of the action took, in microseconds."""
    taken: list[float] = []
    for _ in range(times):
        before = perf_counter()
        action()
        taken.append((perf_counter() - before) * 1e6)
    return taken


def mean_us(action: Callable[[], object], times: int) -> float:
    """What one run takes, in microseconds, without the clock's own cost in it."""
    before = perf_counter()
    for _ in range(times):
        action()
    return (perf_counter() - before) / times * 1e6


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for databases; `$TMPDIR` decides on which disk it is.

    The name is short because a Unix socket's path may have 103 bytes only.
    """
    with tempfile.TemporaryDirectory(prefix="jkb", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def sync_us(folder: Path) -> float:
    """The median cost of writing 4 KiB and syncing it: the disk's part of a commit."""
    path = folder / "sync-probe"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    # macOS has no fdatasync, and its fsync does not reach the disk either.
    sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
    try:

        def write_and_sync() -> None:
            os.write(descriptor, b"x" * 4096)
            sync(descriptor)

        return median(each_us(write_and_sync, 100))
    finally:
        os.close(descriptor)
        path.unlink()


def filesystem_of(folder: Path) -> str:
    """The type of the file system that a folder is on."""
    mounts = sorted(psutil.disk_partitions(all=True), key=lambda m: len(m.mountpoint))
    holding = [m for m in mounts if folder.is_relative_to(m.mountpoint)]
    return holding[-1].fstype if holding else "unknown"


def machine() -> str:
    """One line that says what the figures were measured on."""
    with scratch() as folder:
        disk = f"{filesystem_of(folder)}, 4 KiB written and synced in {sync_us(folder):.0f} µs"
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GiB, {disk}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def us(value: float) -> str:
    """Microseconds in the unit that reads best."""
    return f"{value:.0f} µs" if value < 10_000 else f"{value / 1000:.1f} ms"


def ms(value_ms: float) -> str:
    return f"{value_ms:.2f} ms" if value_ms < 10 else f"{value_ms:.0f} ms"

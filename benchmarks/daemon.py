"""The figures that the daemon must reach, measured on the real one.

Runtime rows are configured durable (`synchronous=FULL`), so that the daemon
promises what the direct writers it is compared with do.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import contention, footprint, round_trip, slow_sync, subscribers
from benchmarks.measure import Settings, scratch
from benchmarks.report import Table, figures_table, skipped


def run(settings: Settings) -> Iterator[Table]:
    with scratch() as folder:
        yield round_trip.run(settings, folder)
        yield from contention.run(settings, folder, None)
        try:
            slow = slow_sync.prepare(folder)
        except slow_sync.ShimError as reason:
            yield figures_table(
                "Each sync 2 ms slower", [skipped("8 and 32 processes", str(reason))]
            )
        else:
            yield from contention.run(settings, folder, slow)
        yield subscribers.run(settings, folder / "s")
        yield footprint.run(settings, folder / "f")

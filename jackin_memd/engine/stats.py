"""What the writers have done, for `status` and later for metrics."""

from __future__ import annotations

from collections import deque

from jackin_memd.wire.session import Latency

#: Acknowledgements that the percentiles are taken from.
WINDOW = 4096


class Stats:
    """Counters of one daemon. Updated on the event loop only."""

    def __init__(self) -> None:
        self.commits = 0
        self.rows = 0
        self._latencies_s: deque[float] = deque(maxlen=WINDOW)

    def committed(self, writes: int) -> None:
        self.commits += 1
        self.rows += writes

    def acknowledged(self, latency_s: float) -> None:
        self._latencies_s.append(latency_s)

    def latency(self) -> Latency:
        ordered = sorted(self._latencies_s)
        if not ordered:
            return Latency(samples=0, p50_ms=None, p99_ms=None)
        return Latency(
            samples=len(ordered),
            p50_ms=round(ordered[len(ordered) // 2] * 1000, 3),
            p99_ms=round(ordered[int(len(ordered) * 0.99)] * 1000, 3),
        )

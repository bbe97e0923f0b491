"""Where a process's time goes: its event loop and its other threads, under a load."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Spent(msgspec.Struct, frozen=True):
    """Since a process began, as Linux counts it; microseconds."""

    loop_us: float = 0
    """CPU of the main thread, which runs the event loop."""
    loop_waited_us: float = 0
    """How long that thread was ready to run and had no core."""
    others_us: float = 0
    others_waited_us: float = 0

    def since(self, before: Spent, requests: int) -> str:
        """Each number for one request, as a sentence; "" where the system does not tell."""
        if not requests or not self.loop_us:
            return ""
        loop, loop_waited, others, others_waited = (
            (getattr(self, name) - getattr(before, name)) / requests
            for name in self.__struct_fields__
        )
        return (
            f"Each request took the event loop {loop:.0f} µs of CPU and {loop_waited:.0f} µs of "
            f"waiting for a core, the other threads {others:.0f} µs and {others_waited:.0f} µs"
        )


def spent_by(pid: int) -> Spent:
    """Zeros where there is no /proc/…/schedstat."""
    loop, loop_waited, others, others_waited = 0.0, 0.0, 0.0, 0.0
    for task in Path("/proc").glob(f"{pid}/task/*/schedstat"):
        ran_ns, waited_ns, _ = map(int, task.read_text().split())
        if task.parent.name == str(pid):
            loop, loop_waited = ran_ns / 1000, waited_ns / 1000
        else:
            others += ran_ns / 1000
            others_waited += waited_ns / 1000
    return Spent(loop, loop_waited, others, others_waited)

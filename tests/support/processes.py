"""The processes that serve a home, seen from outside."""

from __future__ import annotations

from pathlib import Path

import psutil


def serving(home: Path) -> list[psutil.Process]:
    """Of those that a command started for this home; one that has ended is none."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        ended = process.info["status"] == psutil.STATUS_ZOMBIE
        if "serve" in line and str(home) in line and not ended:
            found.append(process)
    return found


def left(home: Path, *, but: int | None = None, patience_s: float = 20.0) -> list[psutil.Process]:
    """Those that stay, less the one that is expected; the last steps of one that is
    about to end are waited for."""
    others = [process for process in serving(home) if process.pid != but]
    _, alive = psutil.wait_procs(others, timeout=patience_s)
    return alive

"""Compiles `slow_sync.c` and proves that it slows APSW and sqlite3 alike."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SLOWER_US = 2000

_COMMITS = 20

#: Prints the fastest commit of a library in microseconds: a busy machine slows the rest.
_PROBE = f"""
import sys, time
if sys.argv[1] == "apsw":
    import apsw
    c = apsw.Connection(sys.argv[2])
else:
    import sqlite3
    c = sqlite3.connect(sys.argv[2], isolation_level=None)
c.execute("PRAGMA journal_mode=WAL").fetchall()
c.execute("PRAGMA synchronous=FULL")
c.execute("CREATE TABLE t(x)")
taken = []
for x in range({_COMMITS}):
    before = time.perf_counter()
    c.execute("INSERT INTO t VALUES (?)", (x,))
    taken.append((time.perf_counter() - before) * 1e6)
print(min(taken))
"""


class ShimError(Exception):
    """The shim can't be used here, for this reason."""


def prepare(folder: Path) -> dict[str, str]:
    """The environment that makes a process's syncs slower. Raises ShimError."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise ShimError("no C compiler `cc` is on the path")
    if sys.platform != "linux":
        raise ShimError("the shim is preloaded, which is written for Linux only")
    library = folder / "slow_sync.so"
    source = Path(__file__).with_name("slow_sync.c")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise ShimError(f"cc failed: {built.stderr.strip().splitlines()[-1:]}")
    environment = {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(SLOWER_US)}
    for binding in ("apsw", "sqlite3"):
        _check(binding, folder, environment)
    return environment


def _check(binding: str, folder: Path, environment: dict[str, str]) -> None:
    plain = _fastest_commit_us(binding, folder / f"{binding}-plain.db", {})
    slowed = _fastest_commit_us(binding, folder / f"{binding}-slowed.db", environment)
    if not 0.8 * SLOWER_US < slowed - plain < 2 * SLOWER_US:
        raise ShimError(
            f"a commit of {binding} took {plain:.0f} µs without the shim and {slowed:.0f} µs "
            f"with it, which is not {SLOWER_US} µs more"
        )


def _fastest_commit_us(binding: str, path: Path, environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, binding, str(path)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)

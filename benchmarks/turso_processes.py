"""ADR 1: what a second process can do with a file that one process has open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import turso

from benchmarks.measure import scratch
from benchmarks.report import Table

_MULTIPROCESS = "multiprocess_wal"

#: How a second process reads the table `t`; `sys.argv[1]` is the file.
_READERS = {
    "APSW, read-only": (
        "import apsw\nc = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)\n"
    ),
    "sqlite3": "import sqlite3\nc = sqlite3.connect(sys.argv[1])\n",
    "pyturso": "import turso\nc = turso.connect(sys.argv[1])\n",
    f"pyturso, {_MULTIPROCESS}": (
        f"import turso\nc = turso.connect(sys.argv[1], experimental_features='{_MULTIPROCESS}')\n"
    ),
}
_COUNT = "print(c.execute('SELECT count(*) FROM t').fetchone()[0])\nc.close()\n"

#: pyturso commits, a stock SQLite client looks at the file and leaves, pyturso
#: commits more and is killed.
_LOOK_BETWEEN = f"""
import os, subprocess, sys, turso
c = turso.connect(sys.argv[1], experimental_features="{_MULTIPROCESS}", isolation_level=None)
c.execute("PRAGMA synchronous=FULL").fetchall()
c.execute("CREATE TABLE t(x)")
def commit_ten():
    for x in range(10):
        c.execute("INSERT INTO t VALUES (?)", (x,))
commit_ten()
look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
look += "c.execute('SELECT count(*) FROM t').fetchone(); c.close()"
subprocess.run([sys.executable, "-c", look, sys.argv[1]], check=True)
commit_ten()
print(20, flush=True)
os._exit(9)
"""

#: One process without the flag, then one with it; both commit, both close.
_MIXED_FLAGS = f"""
import subprocess, sys, turso
c = turso.connect(sys.argv[1], isolation_level=None)
c.execute("CREATE TABLE t(x)")
def commit_ten():
    for x in range(10):
        c.execute("INSERT INTO t VALUES (?)", (x,))
commit_ten()
other = "import sys, turso; c = turso.connect(sys.argv[1], isolation_level=None,"
other += "experimental_features='{_MULTIPROCESS}');"
other += "[c.execute('INSERT INTO t VALUES (?)', (x,)) for x in range(10)]; c.close()"
subprocess.run([sys.executable, "-c", other, sys.argv[1]], check=True)
commit_ten()
c.close()
print(30)
"""


def tables() -> Iterator[Table]:
    with scratch() as folder:
        yield _second_process(folder)
        yield _hazards(folder)


def _second_process(folder: Path) -> Table:
    holders = {
        "APSW": _hold_apsw(folder / "apsw.db"),
        "pyturso": _hold_turso(folder / "turso.db", None),
        f"pyturso, {_MULTIPROCESS}": _hold_turso(folder / "multi.db", _MULTIPROCESS),
    }
    rows = []
    for holder, path in holders.items():
        answers = [_python("import sys\n" + opens + _COUNT, path) for opens in _READERS.values()]
        rows.append([f"{holder} has it open", *answers])
    _held.clear()
    return Table(
        title="Whether a second process can read a file that is open (10 committed rows)",
        header=["", *_READERS],
        rows=rows,
    )


def _hazards(folder: Path) -> Table:
    read = "import sys\n" + _READERS["pyturso"]
    count_by_sqlite = "import sys\n" + _READERS["sqlite3"] + _COUNT
    lower, upper = _with_fts(folder, "using"), _with_fts(folder, "USING")
    look, mixed = folder / "look.db", folder / "mixed.db"
    look_acknowledged = _python(_LOOK_BETWEEN, look, expected_status=9)
    mixed_acknowledged = _python(_MIXED_FLAGS, mixed)
    look_case = (
        f"pyturso with `{_MULTIPROCESS}` commits 10 rows; a stock sqlite3 client counts them "
        "and closes; pyturso commits 10 more and is killed"
    )
    mixed_case = (
        f"pyturso without `{_MULTIPROCESS}` commits 10 rows; a pyturso with it commits 10 and "
        "closes; the first commits 10 more and closes"
    )
    why = (
        "The last two lose rows because each side keeps its own lock and index (`-shm`, "
        "`-tshm`, memory). SQLite takes itself for the last user of the file, checkpoints, and "
        "unlinks the WAL that pyturso goes on writing to; of the two pytursos neither sees what "
        "the other has committed."
    )
    look_outcome = f"acknowledged {look_acknowledged}, on disk {_python(count_by_sqlite, look)}"
    mixed_outcome = f"acknowledged {mixed_acknowledged}, on disk {_python(count_by_sqlite, mixed)}"
    fts_case = "file with `CREATE VIRTUAL TABLE … using fts5(…)`: count the rows of another table"
    count_words = _COUNT.replace("FROM t", "FROM words")
    return Table(
        title="pyturso and files that SQLite also touches",
        header=["case", "outcome"],
        rows=[
            [fts_case, _python(read + _COUNT, lower)],
            ["the same, written `USING` in capitals", _python(read + _COUNT, upper)],
            ["`USING`: count the rows of the FTS5 table", _python(read + count_words, upper)],
            [look_case, look_outcome],
            [mixed_case, mixed_outcome],
        ],
        notes=[why],
    )


def _with_fts(folder: Path, using: str) -> Path:
    path = folder / f"fts-{'upper' if using.isupper() else 'lower'}.db"
    connection = apsw.Connection(str(path))
    connection.execute(f"CREATE TABLE t(x); CREATE VIRTUAL TABLE words {using} fts5(body)")
    connection.execute("INSERT INTO words VALUES ('hello')")
    connection.close()
    return path


_held: list[object] = []


def _hold_apsw(path: Path) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("CREATE TABLE t(x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(x,) for x in range(10)])
    _held.append(connection)
    return path


def _hold_turso(path: Path, features: str | None) -> Path:
    connection = turso.connect(str(path), experimental_features=features)
    connection.execute("CREATE TABLE t(x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(x,) for x in range(10)])
    connection.commit()
    _held.append(connection)
    return path


def _python(program: str, path: Path, expected_status: int = 0) -> str:
    """What the program printed, or the last line of its error without the path."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode == expected_status:
        return f"{done.stdout.split()[-1]} rows"
    error = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return f"refused: {error.replace(str(path), path.name)}"

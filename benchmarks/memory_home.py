"""ADR 2: whether one transaction over two WAL databases is one commit.

A process writes a row to each of two attached databases in one transaction
and is gone in the middle of its COMMIT: the first database has its part, the
second gets nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from benchmarks.measure import Settings, scratch
from benchmarks.report import Table

#: Ends the process where COMMIT first writes to the second database, which it does
#: after the first one's part is written and synced.
_DIE_BETWEEN = """
import os, sys
import apsw

class Shim(apsw.VFS):
    def __init__(self):
        super().__init__("dies", "")
    def xOpen(self, name, flags):
        return File(name, flags)

class File(apsw.VFSFile):
    def __init__(self, name, flags):
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("", name, flags)
    def xWrite(self, data, offset):
        if armed and self.name.endswith(deadly):
            os._exit(9)
        super().xWrite(data, offset)

armed = False
shim = Shim()
folder, mode = sys.argv[1:]
deadly = "second.db-wal" if mode == "WAL" else "second.db"
connection = apsw.Connection(folder + "/first.db", vfs="dies")
connection.execute("ATTACH ? AS second", (folder + "/second.db",))
for name in ("main", "second"):
    connection.execute(f"PRAGMA {name}.journal_mode={mode}").fetchall()
    connection.execute(f"PRAGMA {name}.synchronous=FULL")
    connection.execute(f"CREATE TABLE {name}.t(x)")
armed = True
with connection:
    connection.execute("INSERT INTO main.t VALUES (1)")
    connection.execute("INSERT INTO second.t VALUES (1)")
print("survived")
"""


def run(_settings: Settings) -> Iterator[Table]:
    rows = []
    with scratch() as folder:
        for mode in ("WAL", "DELETE"):
            place = folder / mode
            place.mkdir()
            first, second = _after_the_kill(place, mode)
            verdict = "both or neither" if first == second else "**half of the transaction**"
            rows.append([mode, str(first), str(second), verdict])
    yield Table(
        title="One transaction over two databases, killed in the middle of its commit",
        header=["journal mode", "rows in the first", "rows in the second", "what is left"],
        rows=rows,
        notes=[
            "A rollback journal has a super-journal that ties the files together; WAL has none."
        ],
    )


def _after_the_kill(folder: Path, mode: str) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", _DIE_BETWEEN, str(folder), mode],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 9:
        raise RuntimeError(f"the process did not die where it should: {done.stderr[-500:]}")
    return _rows(folder / "first.db"), _rows(folder / "second.db")


def _rows(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return int(connection.execute("SELECT count(*) FROM t").get)

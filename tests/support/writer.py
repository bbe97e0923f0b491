"""A process that records one row a call and says which were acknowledged.

with writers(daemon.instance_socket(), processes=3, rows=200) as acknowledged: ...
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jackin_mem.blocking import Client
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.status import StatusEntry, StatusRecordParams

ROOT = Path(__file__).parents[2]


class Writer:
    """One such process, from outside."""

    def __init__(self, socket: Path, name: str, rows: int, *, retry: bool = False) -> None:
        """`retry` goes on over a daemon's end, with each row recorded once; without it
        the process ends with the first call that is not acknowledged."""
        self._first = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(socket), name, str(rows), str(int(retry))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def first_acknowledgement(self) -> None:
        """Wait until it writes."""
        assert self.process.stdout is not None
        self._first = self.process.stdout.readline()
        assert self._first, "it ended before it recorded anything"

    def acknowledged(self) -> list[tuple[int, str]]:
        """Wait for its end; the id and word of every row that it was told is durable."""
        out, _ = self.process.communicate()
        lines = (line.split() for line in (self._first + out).splitlines())
        return [(int(id_), word) for id_, word in lines]

    def end(self) -> None:
        """Take it away, whatever it does."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def writers(
    socket: Path, *, processes: int, rows: int, retry: bool = False
) -> Iterator[list[Writer]]:
    """Several at once, each of which is at work already."""
    started = [Writer(socket, f"w{n}", rows, retry=retry) for n in range(processes)]
    try:
        for writer in started:
            writer.first_acknowledgement()
        yield started
    finally:
        for writer in started:
            writer.end()


def _record(client: Client, word: str, *, retry: bool) -> int:
    params = StatusRecordParams(
        entries=[StatusEntry(new_status=word)], idempotency_key=word if retry else None
    )
    while True:
        try:
            first_id: int = client.call("status.record", params).first_id
        except MemdError:
            if not retry:
                raise
            client.close()
        else:
            return first_id


def _main(socket: str, name: str, rows: int, retry: bool) -> None:
    client = Client(socket, timeout_s=20)
    for number in range(rows):
        word = f"{name}-{number}"
        try:
            print(_record(client, word, retry=retry), word, flush=True)  # noqa: T201
        except MemdError:
            return


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")

"""One writing process: `python -m benchmarks.load_process KIND TARGET CONTAINER SECONDS`.

It says `ready`, waits for a line, writes one row after another for that long
and prints what each took, in microseconds, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

Record = Callable[[], object]


def main() -> None:
    kind, target, container, seconds = sys.argv[1:]
    record = _KINDS[kind](target, container)
    record()
    print("ready", flush=True)
    sys.stdin.readline()
    taken: list[float] = []
    refused = 0
    now = perf_counter()
    deadline = now + float(seconds)
    while now < deadline:
        before = now
        try:
            record()
        except sqlite3.OperationalError:  # busy for longer than the timeout
            refused += 1
        now = perf_counter()
        taken.append((now - before) * 1e6)
    print(json.dumps({"taken_us": taken, "refused": refused}))


def _client(target: str, container: str) -> Record:
    """The client library that operators and agents use."""
    from jackin_mem.blocking import Client  # noqa: PLC0415 - a direct writer must not load it
    from jackin_memd.wire.status import StatusEntry, StatusRecordParams  # noqa: PLC0415

    client = Client(target, timeout_s=60)
    params = StatusRecordParams(entries=[StatusEntry(new_status="working")], instance=container)
    return lambda: client.call("status.record", params)


def _slim(target: str, container: str) -> Record:
    """`wire.peer` on a socket, without the client library's comforts."""
    from benchmarks.slim_client import SlimClient  # noqa: PLC0415
    from jackin_memd.wire.status import StatusEntry, StatusRecordParams  # noqa: PLC0415

    client = SlimClient(Path(target))
    client.hello()
    params = StatusRecordParams(entries=[StatusEntry(new_status="working")], instance=container)
    return lambda: client.call("status.record", params)


def _echo(target: str, container: str) -> Record:
    """The slim client's frame to a server that returns it."""
    from benchmarks.slim_client import SlimClient  # noqa: PLC0415
    from jackin_memd.wire.status import StatusEntry, StatusRecordParams  # noqa: PLC0415

    client = SlimClient(Path(target))
    params = StatusRecordParams(entries=[StatusEntry(new_status="working")], instance=container)
    frame = client.frame("status.record", params)
    return lambda: client.exchange(frame)


def _direct(target: str, _container: str) -> Record:
    """What a program without a daemon would do."""
    connection = sqlite3.connect(target, isolation_level=None, timeout=5)
    connection.execute("PRAGMA busy_timeout=5000")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    sql = "INSERT INTO status_log(occurred_at, new_status, metadata) VALUES (?, ?, ?)"
    return lambda: connection.execute(sql, (1_796_000_000, "working", None))


_KINDS: dict[str, Callable[[str, str], Record]] = {
    "client": _client,
    "slim": _slim,
    "echo": _echo,
    "direct": _direct,
}

if __name__ == "__main__":
    main()

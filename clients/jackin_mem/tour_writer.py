"""The agent of `jackin-mem tour`: a process that reports status, one row a call.

    python -m jackin_mem.tour_writer SOCKET LEDGER

It notes each acknowledged row in the ledger, as a line of JSON, and then says
so with a line on stdout. A call whose answer is lost is made again, with its
key, until it is answered. It ends when its stdin is closed.
"""

from __future__ import annotations

import select
import sys
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import TextIO

import msgspec

from jackin_mem import failures
from jackin_mem.blocking import Client
from jackin_mem.resume import delays
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.status import StatusEntry, StatusRecordParams, StatusRecordResult

#: How long a call is repeated. A restart takes a second.
PATIENCE_S = 10.0

WORDS = ("working", "question", "busy", "idle")


class Receipt(msgspec.Struct, frozen=True):
    """A line of the ledger: a row that the daemon said is durable."""

    id: int
    marker: str
    attempts: int


def main() -> None:
    socket, ledger = Path(sys.argv[1]), Path(sys.argv[2])
    client = Client(socket, timeout_s=PATIENCE_S)
    with ledger.open("a", encoding="utf-8") as book:
        for number in count(1):
            if _told_to_stop():
                return
            note(book, record(client, f"step-{number:04}", WORDS[number % len(WORDS)]))
            print("acknowledged", flush=True)


def _told_to_stop() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


def record(client: Client, marker: str, word: str) -> Receipt:
    """One row, done once whatever happens to the daemon. Raises MemdError at last."""
    params = StatusRecordParams(
        entries=[StatusEntry(new_status=word, metadata={"marker": marker})],
        idempotency_key=marker,
    )
    give_up = monotonic() + PATIENCE_S
    for attempt, delay_s in enumerate(delays(), 1):
        try:
            result: StatusRecordResult = client.call("status.record", params)
            return Receipt(result.first_id, marker, attempt)
        except MemdError as error:
            if error.code not in failures.TRANSIENT or monotonic() > give_up:
                raise
        sleep(delay_s)
    raise AssertionError("delays() has no end")


def note(book: TextIO, receipt: Receipt) -> None:
    book.write(msgspec.json.encode(receipt).decode() + "\n")
    book.flush()


if __name__ == "__main__":
    main()

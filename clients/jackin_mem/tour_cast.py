"""Who plays in `jackin-mem tour`: an agent that writes, an operator who watches."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Self

import msgspec

from jackin_mem.blocking import Client, Subscription
from jackin_mem.resume import OnLink
from jackin_mem.tour_stage import Clock, Stage, end_of, stuck
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.status import StatusRow
from jackin_memd.wire.streams import RowsEvent, Start, SubscribeParams


class Progress:
    """A count that one thread raises and another waits for."""

    def __init__(self) -> None:
        self.count = 0
        self._ended = False
        self._changed = threading.Condition()

    def add(self, more: int = 1) -> None:
        with self._changed:
            self.count += more
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def reached(self, count: int, clock: Clock) -> bool:
        """Wait until the count is there; False where it can't be any more."""
        with self._changed:
            self._changed.wait_for(lambda: self.count >= count or self._ended, clock.left())
            return self.count >= count


class Writer:
    """The agent's process; `acknowledged` counts what it was told is durable."""

    def __init__(self, stage: Stage, clock: Clock) -> None:
        self._clock = clock
        self.acknowledged = Progress()
        with stage.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jackin_mem.tour_writer"),
                    *(str(stage.instance_socket), str(stage.ledger)),
                ],
                env=stage.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _read(self) -> None:
        if self._process.stdout is not None:
            with self._process.stdout as lines:
                for _ in lines:
                    self.acknowledged.add()
        self.acknowledged.end()

    def write_until(self, count: int) -> None:
        """Wait for this many acknowledged rows. Raises MemdError."""
        if not self.acknowledged.reached(count, self._clock):
            raise stuck(f"the writer has {self.acknowledged.count} rows, not {count}")

    def stop(self) -> None:
        """Let it finish its call and end. Raises MemdError where it failed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if end_of(self._process, self._clock) != 0:
            raise stuck("the writer failed")


Seen = tuple[int, str]
"""A row's id and the marker in its metadata."""

_rows = msgspec.json.Decoder(StatusRow)


def marker_of(metadata: bytes | msgspec.Raw) -> str:
    """What the writer put in a row to know it by."""
    return str(msgspec.json.decode(metadata)["marker"])


class Subscriber:
    """A thread that follows the operator's socket from the first row on."""

    def __init__(
        self, stage: Stage, clock: Clock, on_row: Callable[[StatusRow, int], None], on_link: OnLink
    ) -> None:
        self._clock = clock
        self._on_row = on_row
        self._markers: set[str] = set()
        self.seen: list[Seen] = []
        self.progress = Progress()
        self.failure: MemdError | None = None
        self._events: Subscription = Client(stage.operator_socket).subscribe(
            SubscribeParams(start=Start.OLDEST), reconnect_s=clock.left(), on_link=on_link
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close()
        self._thread.join(self._clock.left() + 1)

    def _follow(self) -> None:
        try:
            for event in self._events:
                if isinstance(event, RowsEvent):
                    self._take([_rows.decode(raw) for raw in event.rows])
        except MemdError as error:
            self.failure = error
        finally:
            self.progress.end()

    def _take(self, rows: list[StatusRow]) -> None:
        for row in rows:
            marker = marker_of(row.metadata)
            self.seen.append((row.id, marker))
            self._markers.add(marker)
            self._on_row(row, len(self.seen))
        self.progress.add(len(rows))

    def watch_until(self, marker: str) -> None:
        """Wait for the row with this marker: what stands before it has come, or never
        will. Raises MemdError."""
        count = 0
        while marker not in self._markers:
            if not self.progress.reached(count + 1, self._clock):
                raise self.failure or stuck(f"the subscriber saw {count} rows and not the last")
            count = self.progress.count

"""`jackin-mem tour`: an agent writes, the daemon is killed, nothing is lost.

Everything is real: processes, sockets, SIGKILL, the file on disk. What is
counted is read by plain sqlite3 from the outside.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType

import msgspec

from jackin_mem.blocking import Client
from jackin_mem.render import counted, local_clock, short_name
from jackin_mem.tour_cast import Seen, Subscriber, Writer, marker_of
from jackin_mem.tour_stage import CONTAINER, MANIFEST, Clock, Daemon, Stage, stage
from jackin_mem.tour_writer import Receipt, note, record
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.instances import InstanceLoadParams
from jackin_memd.wire.status import StatusRow

#: The whole tour; it takes a few seconds where nothing is wrong.
TOTAL_S = 14.0

#: Acknowledged rows before the kill, and after the restart.
ROWS_BEFORE, ROWS_AFTER = 300, 300

#: One arrival in so many is told.
TOLD = 75

LAST = "the last row"


class Verdict(msgspec.Struct, frozen=True):
    """What the three accounts of the same rows say of each other."""

    acknowledged: int
    repeated: int
    """Calls that were made again, with their key."""
    on_disk: int
    seen: int
    missing: list[str]
    """Acknowledged, and not on disk under their id."""
    doubled: list[str]
    """On disk twice."""
    unseen: list[str]
    """On disk, and never delivered to the subscriber."""
    seen_twice: list[str]
    invented: list[str]
    """Delivered, and not on disk."""

    @property
    def holds(self) -> bool:
        return not (self.missing or self.doubled or self.unseen or self.seen_twice or self.invented)


def judge(receipts: Sequence[Receipt], disk: Sequence[Seen], seen: Sequence[Seen]) -> Verdict:
    """Compare the writer's ledger, the file and the subscriber's account."""
    stored, delivered = set(disk), set(seen)
    return Verdict(
        acknowledged=len(receipts),
        repeated=sum(receipt.attempts > 1 for receipt in receipts),
        on_disk=len(disk),
        seen=len(seen),
        missing=[each.marker for each in receipts if (each.id, each.marker) not in stored],
        doubled=_more_than_once(marker for _, marker in disk),
        unseen=sorted(marker for _, marker in stored - delivered),
        seen_twice=_more_than_once(marker for _, marker in seen),
        invented=sorted(marker for _, marker in delivered - stored),
    )


def _more_than_once(markers: Iterator[str]) -> list[str]:
    return sorted(marker for marker, times in Counter(markers).items() if times > 1)


def take(timeout_s: float) -> int:
    """Run the tour and tell it on stdout; the exit status. Raises MemdError.

    `timeout_s` bounds each call of the tour itself.
    """
    story = Story()
    began = monotonic()
    with _ended_by_signals(), stage() as place:
        try:
            verdict = _play(story, place, timeout_s)
        except MemdError:
            sys.stderr.write(place.log_tail())
            raise
    story.verdict(verdict, monotonic() - began)
    return 0 if verdict.holds else 1


def _play(story: Story, place: Stage, timeout_s: float) -> Verdict:
    clock = Clock(TOTAL_S)
    with Daemon(place, clock) as daemon:
        story.step("a daemon of its own", f"pid {daemon.start()}, home {place.home}")
        place.create_instance()
        _load(place, timeout_s)
        story.step("an instance", "{container_base}, loaded by the operator".format(**MANIFEST))
        with (
            Subscriber(place, clock, story.arrival, story.link) as subscriber,
            Writer(place, clock) as writer,
        ):
            story.step(
                "an agent reports",
                f"process {writer.pid}, on the instance's socket, one row a call",
            )
            story.step("a subscriber watches", f"one arrival in {TOLD} is told here")
            _kill_in_the_middle(story, daemon, writer)
            _write_last(place, timeout_s)
            subscriber.watch_until(LAST)
        daemon.stop()
    story.step("all is stopped", "counting with sqlite3, read-only")
    return judge(read_ledger(place.ledger), read_disk(place.database), subscriber.seen)


def _load(place: Stage, timeout_s: float) -> None:
    with Client(place.operator_socket, timeout_s=timeout_s) as operator:
        operator.call("instance.load", InstanceLoadParams(container=CONTAINER))


def _kill_in_the_middle(story: Story, daemon: Daemon, writer: Writer) -> None:
    writer.write_until(ROWS_BEFORE)
    daemon.kill()
    acknowledged = writer.acknowledged.count
    story.step("SIGKILL to the daemon", f"after {counted(acknowledged, 'acknowledged row')}")
    began = monotonic()
    pid = daemon.start()
    story.step("the daemon is back", f"pid {pid}, ready after {monotonic() - began:.2f} s")
    writer.write_until(acknowledged + ROWS_AFTER)
    writer.stop()
    story.step("the agent ends", counted(writer.acknowledged.count, "acknowledged row"))


def _write_last(place: Stage, timeout_s: float) -> None:
    """A last row, so that the subscriber knows when it has everything."""
    with (
        Client(place.instance_socket, timeout_s=timeout_s) as client,
        place.ledger.open("a", encoding="utf-8") as book,
    ):
        note(book, record(client, LAST, "done"))


def read_ledger(path: Path) -> list[Receipt]:
    lines = path.read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Receipt) for line in lines]


def read_disk(path: Path) -> list[Seen]:
    """Every row of the file, by an independent reader."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader:
        rows = reader.execute("SELECT id, metadata FROM status_log ORDER BY id").fetchall()
    return [(id_, marker_of(metadata.encode())) for id_, metadata in rows]


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the tour as Ctrl-C does: in order, leaving nothing."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Story:
    """What is told on stdout, a whole line at a time: two threads tell."""

    def __init__(self) -> None:
        self._styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._tell(self._style("1", "jackin-mem tour: what the daemon acknowledged, it keeps"))
        self._tell("")

    def step(self, what: str, how: str) -> None:
        self._tell(f"{self._style('1', f'{what:24}')} {how}")

    def arrival(self, row: StatusRow, count: int) -> None:
        if count % TOLD == 0:
            name = short_name(CONTAINER)[1]
            text = f"{local_clock(row.occurred_at)}  {name}  {row.new_status:10} row {row.id}"
            self._tell(self._style("2", f"{'':24}   {text}"))

    def link(self, lost: MemdError | None) -> None:
        how = "lost the connection; waits" if lost else "is connected again, where it left off"
        self.step("the subscriber", how)

    def verdict(self, verdict: Verdict, seconds: float) -> None:
        missing, doubled = len(verdict.missing), len(verdict.doubled)
        lost, twice = len(verdict.unseen) + len(verdict.invented), len(verdict.seen_twice)
        self._tell("")
        repeated = counted(verdict.repeated, "call")
        self.step("acknowledged", f"{verdict.acknowledged:5}   {repeated} repeated with its key")
        self.step("on disk", f"{verdict.on_disk:5}   {missing} missing, {doubled} doubled")
        self.step("seen by the subscriber", f"{verdict.seen:5}   {lost} lost, {twice} doubled")
        self._tell("")
        if verdict.holds:
            kept = "Every acknowledged row is on disk once, and was seen once."
            self._tell(f"{self._style('1;32', kept)} ({seconds:.1f} s)")
        else:
            self._tell(self._style("1;31", "The accounts differ. This is a fault: report it."))
            self._tell_differences(verdict)

    def _tell_differences(self, verdict: Verdict) -> None:
        for name in ("missing", "doubled", "unseen", "seen_twice", "invented"):
            markers = getattr(verdict, name)
            if markers:
                self.step(name.replace("_", " "), ", ".join(markers[:20]))

    def _style(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text

    def _tell(self, line: str) -> None:
        print(line, flush=True)

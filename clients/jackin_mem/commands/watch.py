"""jackin-mem watch: every status transition as it happens.

It outlives the daemon: after a restart it goes on with the first row that it
has not shown.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Protocol

import msgspec

from jackin_mem.commands.status import metadata_text
from jackin_mem.options import make_client, note, wants_json
from jackin_mem.render import counted, local_time, printable, safe_json
from jackin_mem.session import StreamEvent
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import MemdError, from_wire
from jackin_memd.wire.status import StatusRow
from jackin_memd.wire.streams import EndEvent, GapEvent, RowsEvent, Start, SubscribeParams
from jackin_memd.wire.vocab import Role

_rows = msgspec.json.Decoder(StatusRow)


class Printer(Protocol):
    """One way to show what comes. Each call writes whole lines."""

    def row(self, instance: str, row: StatusRow) -> None: ...

    def gap(self, gap: GapEvent) -> None: ...

    def end(self, end: EndEvent) -> None: ...

    def note(self, text: str) -> None:
        """Something about the watching itself."""
        ...


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "instances", nargs="*", metavar="INSTANCE", help="all, also those loaded later, if left out"
    )
    parser.add_argument(
        "--from",
        dest="start",
        choices=[start.value for start in Start],
        default=Start.NOW.value,
        help="where to begin (now)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    params = SubscribeParams(instances=options.instances or None, start=Start(options.start))
    printer = make_printer(options)
    client = make_client(options, Role.OBSERVER)
    try:
        with client.subscribe(params, on_link=lambda lost: _tell_link(printer, lost)) as events:
            printer.note("watching; Ctrl-C ends it")
            for event in events:
                show(printer, event)
                _flush()
    except KeyboardInterrupt:
        return  # the way to end it, so no failure


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _tell_link(printer: Printer, lost: MemdError | None) -> None:
    if lost is None:
        printer.note("connected again, where it left off")
    else:
        printer.note("the daemon is gone; waiting for it")
    _flush()


def show(printer: Printer, event: StreamEvent) -> None:
    """Raises MemdError where the daemon ended the whole subscription."""
    if isinstance(event, RowsEvent):
        for raw in event.rows:
            printer.row(event.instance, _rows.decode(raw))
    elif isinstance(event, GapEvent):
        printer.gap(event)
    elif event.instance is not None:
        printer.end(event)
    else:
        raise from_wire(0, event.message, {"code": event.code})


def make_printer(options: argparse.Namespace) -> Printer:
    if wants_json(options):
        return JsonPrinter()
    if sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from jackin_mem.commands.watch_terminal import TerminalPrinter

        return TerminalPrinter()
    return PlainPrinter()


class JsonPrinter:
    """One JSON object a line: `event` is row, gap or end."""

    def row(self, instance: str, row: StatusRow) -> None:
        self._print("row", {"instance": instance, **msgspec.structs.asdict(row)})

    def gap(self, gap: GapEvent) -> None:
        self._print("gap", {"instance": gap.instance, "missed": gap.missed, "reason": gap.reason})

    def end(self, end: EndEvent) -> None:
        self._print("end", {"instance": end.instance, "code": end.code, "message": end.message})

    def note(self, text: str) -> None:
        note(text)

    def _print(self, event: str, members: dict[str, object]) -> None:
        print(safe_json(encode({"event": event, **members}).decode()))


class PlainPrinter:
    """One line a row, for pipes and files; nothing is cut."""

    def row(self, instance: str, row: StatusRow) -> None:
        metadata = metadata_text(row)
        words = (local_time(row.occurred_at), instance, printable(row.new_status), metadata)
        print("  ".join(word for word in words if word))

    def gap(self, gap: GapEvent) -> None:
        print(f"{gap.instance}  gap: {gap_text(gap)}")

    def end(self, end: EndEvent) -> None:
        print(f"{end.instance}  end: {printable(end.message)}")

    def note(self, text: str) -> None:
        note(text)


def gap_text(gap: GapEvent) -> str:
    """`12 rows missed: why`, or the reason alone where nobody can count."""
    reason = printable(gap.reason)
    return reason if gap.missed is None else f"{counted(gap.missed, 'row')} missed: {reason}"

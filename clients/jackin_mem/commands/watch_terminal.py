"""`watch` on a terminal: colours, short names, local time. Only this imports rich."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from jackin_mem.commands.status import metadata_text
from jackin_mem.commands.watch import gap_text
from jackin_mem.render import READS_AS, local_clock, local_day, printable, short_name
from jackin_memd.wire.status import StatusRow
from jackin_memd.wire.streams import EndEvent, GapEvent

#: What waits for the operator stands out; what is over recedes.
_STYLES = {
    "working": "cyan",
    "blocked": "bold yellow",
    "done": "green",
    "idle": "dim",
    "unknown": "magenta",
}

_WORD_COLUMNS = 9
_MIN_NAME_COLUMNS = 24


class TerminalPrinter:
    """One line a row, cut at the terminal's edge. Values go out as `Text`, so
    that nothing in them is taken for markup."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._day = local_day(int(time.time()))
        self._name_columns = _MIN_NAME_COLUMNS

    def row(self, instance: str, row: StatusRow) -> None:
        self._tell_day(row.occurred_at)
        line = Text().append(f"{local_clock(row.occurred_at)}  ", style="dim")
        line.append_text(self._name(instance))
        word = printable(row.new_status)
        style = _STYLES.get(READS_AS.get(row.new_status, row.new_status), "bold")
        line.append(f"{word:{_WORD_COLUMNS}}", style=style)
        metadata = metadata_text(row)
        if metadata:
            line.append(f" {metadata}")
        self._print(line)

    def gap(self, gap: GapEvent) -> None:
        self._mark(gap.instance, gap_text(gap), "red")

    def end(self, end: EndEvent) -> None:
        self._mark(end.instance or "", printable(end.message), "dim")

    def note(self, text: str) -> None:
        self._print(Text(text, style="dim italic"))

    def _mark(self, instance: str, text: str, style: str) -> None:
        line = Text(" " * 10)
        line.append_text(self._name(instance))
        line.append(text, style=style)
        self._print(line)

    def _tell_day(self, at: int) -> None:
        day = local_day(at)
        if day != self._day:
            self._day = day
            self._print(Text(day, style="bold dim"))

    def _name(self, instance: str) -> Text:
        """The readable part first, its short id dim, both in a column that only grows."""
        id_, name = short_name(printable(instance))
        text = Text(name)
        if id_:
            text.append(f" {id_}", style="dim")
        self._name_columns = max(self._name_columns, len(text) + 2)
        text.append(" " * (self._name_columns - len(text)))
        return text

    def _print(self, line: Text) -> None:
        self._console.print(line, no_wrap=True, overflow="ellipsis", crop=True)

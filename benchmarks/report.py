"""What a benchmark hands back, as data, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a table that has a wish beside the measurement."""

    name: str
    measured: str
    wanted: str = "–"
    met: bool | None = None
    """None where nothing is wanted, or where it could not be measured."""
    values: dict[str, float] = {}
    """The numbers behind `measured`, for programs."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = []
    figures: list[Figure] = []

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _line(self.header)]
        lines.append("|" + "|".join(" --- " for _ in self.header) + "|")
        lines += [_line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"


def figures_table(title: str, figures: Iterable[Figure], notes: Iterable[str] = ()) -> Table:
    """The table with the columns figure, measured, wanted, met."""
    listed = list(figures)
    words = {True: "yes", False: "**no**", None: "–"}
    return Table(
        title=title,
        header=["figure", "measured", "wanted", "met?"],
        rows=[[f.name, f.measured, f.wanted, words[f.met]] for f in listed],
        notes=list(notes),
        figures=listed,
    )


def at_most(name: str, measured: str, value: float, limit: float, wanted: str) -> Figure:
    return _judged(name, measured, value, wanted, met=value <= limit)


def at_least(name: str, measured: str, value: float, limit: float, wanted: str) -> Figure:
    return _judged(name, measured, value, wanted, met=value >= limit)


def _judged(name: str, measured: str, value: float, wanted: str, *, met: bool) -> Figure:
    return Figure(name=name, measured=measured, wanted=wanted, met=met, values={"value": value})


def skipped(name: str, reason: str, wanted: str = "–") -> Figure:
    """A measurement that could not be made, with the reason in its place."""
    return Figure(name=name, measured=f"not measured: {reason}", wanted=wanted)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

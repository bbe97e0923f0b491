"""Text for people: safe strings, tables, times. Pure; knows no terminal.

Every stored value passes `printable` (or `safe_json`) on its way out: what an
agent wrote must not move the cursor, hide text or reorder a line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence

#: C0, DEL and C1 controls; line and paragraph separators; direction marks and
#: overrides; invisible characters that hide text (a joiner is left: emoji and
#: several scripts need it); lone surrogates, which can't be written at all.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

_ELLIPSIS = "…"

#: A word that an older emitter writes, to the word that it reads as.
READS_AS = {"busy": "working", "question": "blocked"}


def printable(text: str) -> str:
    r"""The text on one line, with what a terminal would obey shown as `\x1b`, `\n`."""
    return _UNSAFE.sub(_visible, text)


def safe_json(text: str) -> str:
    """JSON text with what a terminal would obey escaped, its layout kept.

    Such a character can stand only in a string, where the escape means the
    same; but for the line breaks and tabs between tokens.
    """
    return _UNSAFE.sub(_json_escape, text)


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    short = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character)
    if short:
        return short
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in "\n\r\t":
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


# -- layout -------------------------------------------------------------------


def width(text: str) -> int:
    """How many terminal columns the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(c) or c == "\u200d" else 2 if east_asian_width(c) in "WF" else 1
        for c in text
    )


def fit(text: str, columns: int) -> str:
    """The text, cut with an ellipsis where it takes more columns."""
    if width(text) <= columns:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += width(character)
        if taken > columns - 1:
            return text[:index] + _ELLIPSIS
    return text


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines with aligned columns; cells are made printable here."""
    cells = [list(headers), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(headers))]
    return "\n".join(_line(row, widths) for row in cells)


def fields(pairs: Iterable[tuple[str, str]]) -> str:
    """`name  value` lines, values aligned."""
    listed = [(name, printable(value)) for name, value in pairs]
    return "\n".join(_line(pair, [max(width(name) for name, _ in listed), 0]) for pair in listed)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell + " " * (columns - width(cell)) for cell, columns in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


# -- times --------------------------------------------------------------------

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def relative(at: int, now: float) -> str:
    """`at` as seen from `now`, both epoch seconds: `3 min ago`, `in 2 h`."""
    seconds = int(now) - at
    if abs(seconds) < 1:
        return "just now"
    size, unit = next(pair for pair in _UNITS if abs(seconds) >= pair[0])
    amount = f"{abs(seconds) // size} {unit}"
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def local_time(at: int) -> str:
    """Epoch seconds as local `2026-11-30 14:03:22`; the bare number where no
    calendar holds it (a caller may have stored any)."""
    return _strftime("%Y-%m-%d %H:%M:%S", at)


def local_day(at: int) -> str:
    return _strftime("%Y-%m-%d", at)


def local_clock(at: int) -> str:
    return _strftime("%H:%M:%S", at)


def _strftime(form: str, at: int) -> str:
    try:
        return time.strftime(form, time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return str(at)


def since(at: int, now: float) -> str:
    """Both at once: `2026-11-30 14:03:22 (3 min ago)`."""
    return f"{local_time(at)} ({relative(at, now)})"


# -- words --------------------------------------------------------------------


def short_name(container: str) -> tuple[str, str]:
    """A container's name as (short id, the rest): `jk-k7p9m2xq-shop-builder` is
    (`k7p9m2xq`, `shop-builder`). A name of another form is all rest."""
    head, _, tail = container.partition("-")
    id_, dash, rest = tail.partition("-")
    return (id_, rest) if head == "jk" and dash and rest else ("", container)


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

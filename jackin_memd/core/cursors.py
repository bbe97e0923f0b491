"""Cursors: a row's id, tied to the one database that it counts in.

Ids start at 1 again in a database made anew, so a cursor carries the
database's epoch: one of another epoch is refused, never misread.
"""

from __future__ import annotations

import re
from typing import NewType

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Cursor

Epoch = NewType("Epoch", str)
"""16 hexadecimal digits, random, made with the database."""

_FORM = re.compile(r"([0-9a-f]{16})\.(0|[1-9][0-9]{0,18})\Z")


def make_cursor(epoch: Epoch, row_id: int) -> Cursor:
    """The place after row `row_id`; 0 is the place before the first."""
    return Cursor(f"{epoch}.{row_id}")


def is_cursor(text: str) -> bool:
    return _FORM.match(text) is not None


def place_in(text: str, epoch: Epoch, head: int) -> int | None:
    """The row id of a cursor; None where it belongs to another database, or to
    rows that this one never had (it was put back from a backup)."""
    match = _FORM.match(text)
    if match is None or match[1] != epoch or int(match[2]) > head:
        return None
    return int(match[2])


def read_cursor(text: str, epoch: Epoch, head: int, *, field: str) -> int:
    """Like `place_in`, for a call that can't go on without it.

    Raises MemdError (CURSOR_INVALID).
    """
    row_id = place_in(text, epoch, head)
    if row_id is None:
        raise MemdError(
            ErrorCode.CURSOR_INVALID,
            "the cursor does not belong to the database that is there now",
            hint="start again without a cursor",
            field=field,
        )
    return row_id

"""status_log: append, page, trim."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from jackin_memd.core.rolling import STATUS_LOG
from jackin_memd.wire.status import StatusRow

#: Names and punctuation of one row as JSON.
_ROW_OVERHEAD = 80

NewRow = tuple[int, str, str | None]
"""occurred_at in epoch seconds, new_status, metadata as JSON text."""

#: A foreign hand could have stored what is no JSON, no text or no UTF-8; it is
#: shown as a string, so that it breaks no page.
_COLUMNS = (
    "id, CAST(occurred_at AS INTEGER), CAST(new_status AS BLOB), "
    "CAST(CASE WHEN metadata IS NULL OR json_valid(metadata) THEN metadata "
    "ELSE json_quote(CAST(metadata AS TEXT)) END AS BLOB)"
)


class Append(msgspec.Struct, frozen=True):
    """Append the rows of one call; settles with the first id."""

    rows: list[NewRow]

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def apply(self, connection: apsw.Connection) -> int:
        return append(connection, self.rows)

    @classmethod
    def apply_run(cls, connection: apsw.Connection, run: Sequence[Append]) -> list[int]:
        next_id = append(connection, [row for write in run for row in write.rows])
        first_ids = []
        for write in run:
            first_ids.append(next_id)
            next_id += len(write.rows)
        return first_ids


def append(connection: apsw.Connection, rows: Sequence[NewRow]) -> int:
    """Append and trim; return the first id. The ids of one call are consecutive."""
    connection.executemany(
        "INSERT INTO status_log(occurred_at, new_status, metadata) VALUES (?, ?, ?)", rows
    )
    last_id = connection.last_insert_rowid()
    first_id = last_id - len(rows) + 1
    keep_from = STATUS_LOG.trim_below(first_id, last_id)
    if keep_from is not None:
        connection.execute("DELETE FROM status_log WHERE id < ?", (keep_from,))
    return first_id


def page(
    connection: apsw.Connection, before: int | None, limit: int, max_bytes: int
) -> list[StatusRow]:
    """Rows of ids below `before`, newest first, until either bound is reached."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM status_log WHERE id < ? ORDER BY id DESC LIMIT ?",  # noqa: S608
        (before if before is not None else 2**63 - 1, limit),
    )
    return _bounded(found, max_bytes)


def after(connection: apsw.Connection, row_id: int, limit: int, max_bytes: int) -> list[StatusRow]:
    """Rows of ids above `row_id`, oldest first, until either bound is reached."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM status_log WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (row_id, limit),
    )
    return _bounded(found, max_bytes)


def _bounded(found: apsw.Cursor, max_bytes: int) -> list[StatusRow]:
    """At least one row where there is one."""
    rows: list[StatusRow] = []
    size = 0
    for values in found:
        row = _row(*values)
        rows.append(row)
        size += len(row.new_status) + len(bytes(row.metadata)) + _ROW_OVERHEAD
        if size > max_bytes:
            break
    return rows


def span(connection: apsw.Connection) -> tuple[int, int]:
    """The oldest and the newest id; (1, 0) where there is no row."""
    # Two subqueries: SQLite answers min and max from the index only one at a time.
    oldest, newest = connection.execute(
        "SELECT (SELECT min(id) FROM status_log), (SELECT max(id) FROM status_log)"
    ).get
    return (1, 0) if newest is None else (oldest, newest)


def _row(id_: int, occurred_at: int, new_status: bytes, metadata: bytes | None) -> StatusRow:
    return StatusRow(
        id=id_,
        occurred_at=occurred_at,
        new_status=_utf8(new_status),
        metadata=msgspec.Raw(b"null" if metadata is None else _utf8(metadata).encode()),
    )


def _utf8(stored: bytes) -> str:
    return stored.decode(errors="replace")

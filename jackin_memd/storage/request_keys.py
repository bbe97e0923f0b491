"""request_keys: the answer to a keyed call, kept so that a repeat gets it again.

The key's row commits with the rows of its call, so there is no moment at
which one is on disk without the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from jackin_memd.core.rolling import Window
from jackin_memd.wire.errors import ErrorCode, MemdError

CREATE_REQUEST_KEYS = """CREATE TABLE request_keys (
        id INTEGER PRIMARY KEY,
        channel TEXT NOT NULL,
        key TEXT NOT NULL,
        request_hash TEXT NOT NULL,
        answer TEXT NOT NULL,
        recorded_at INTEGER NOT NULL,
        UNIQUE (channel, key)
    )"""

#: The newest keys of each database; a retry comes within seconds.
KEPT = Window(10_000)


class RequestKey(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of one channel are apart from those of another."""

    channel: str
    key: str
    request_hash: str
    """SHA-256 of method and parameters: the same key must mean the same call."""
    now: int


class Repeated(msgspec.Struct, frozen=True):
    """The answer to a call that was made before; nothing was changed."""

    answer: bytes


def find_answer(connection: apsw.Connection, key: RequestKey) -> Repeated | None:
    """The kept answer of this call. Raises MemdError (IDEMPOTENCY_CONFLICT)."""
    found = connection.execute(
        "SELECT request_hash, answer FROM request_keys WHERE channel=? AND key=?",
        (key.channel, key.key),
    ).get
    if found is not None:
        request_hash, answer = found
        if request_hash != key.request_hash:
            raise MemdError(
                ErrorCode.IDEMPOTENCY_CONFLICT,
                "the idempotency key was used before, for another call",
                hint="use a new key for a new call, the same key only to repeat one",
                field="idempotency_key",
            )
        return Repeated(answer.encode())
    return None


def keep_answer(connection: apsw.Connection, key: RequestKey, answer: bytes) -> None:
    """Keep the answer (JSON) in the transaction of its call."""
    connection.execute(
        "INSERT INTO request_keys(channel, key, request_hash, answer, recorded_at) "
        "VALUES (?, ?, ?, ?, ?)",
        (key.channel, key.key, key.request_hash, answer.decode(), key.now),
    )
    new_id = connection.last_insert_rowid()
    keep_from = KEPT.trim_below(new_id, new_id)
    if keep_from is not None:
        connection.execute("DELETE FROM request_keys WHERE id < ?", (keep_from,))


class Keyed(msgspec.Struct, frozen=True):
    """A write that happens once for its key; settles with `Repeated` after that."""

    key: RequestKey
    apply_first: Callable[[apsw.Connection], Any]
    row_count: int

    def apply(self, connection: apsw.Connection) -> Any | Repeated:
        """The write's own result must be a JSON type or a struct."""
        repeated = find_answer(connection, self.key)
        if repeated is not None:
            return repeated
        result = self.apply_first(connection)
        keep_answer(connection, self.key, msgspec.json.encode(result))
        return result

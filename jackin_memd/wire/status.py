"""status.*: the log of an instance's status transitions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from jackin_memd.wire.codec import INT64_MAX
from jackin_memd.wire.vocab import ONE_LINE, IdempotencyKey, InstanceRef

#: Words in use: working, blocked, done, idle, unknown; older emitters write
#: `busy` (reads as working) and `question` (reads as blocked). Any other word
#: is kept as given.
StatusWord = Annotated[str, Meta(min_length=1, max_length=128, pattern=ONE_LINE)]

MAX_ENTRIES = 5000


class StatusEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    new_status: StatusWord
    metadata: Any = None
    """Any JSON value, such as the prompt of a question; at most 64 KiB as JSON."""
    occurred_at: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None
    """Epoch seconds; the daemon's time where it is left out."""


class StatusRecordParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    entries: Annotated[list[StatusEntry], Meta(min_length=1, max_length=MAX_ENTRIES)]
    """Committed together or not at all."""
    instance: InstanceRef | None = None
    """May be left out on a capsule channel, which has one instance only."""
    idempotency_key: IdempotencyKey | None = None


class StatusRecordResult(msgspec.Struct, frozen=True, kw_only=True):
    first_id: int
    last_id: int
    """The ids of one call are consecutive."""
    cursor: str
    """The place after the last row."""


class StatusRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    occurred_at: int
    new_status: str
    metadata: Raw


class StatusListParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instance: InstanceRef | None = None
    before: Annotated[str, Meta(max_length=64)] | None = None
    """The `next` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class StatusListResult(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[StatusRow]
    """Newest first."""
    next: str | None
    """Where the next page begins; null says that there is none."""
    dropped: int
    """Rows that the rolling window has let go since the database began."""


class StatusLatestParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instance: InstanceRef | None = None


class StatusLatestResult(msgspec.Struct, frozen=True, kw_only=True):
    row: StatusRow | None
    cursor: str
    """The place after the newest row; hand it to status.subscribe to go on from here."""

"""Subscriptions: what is sent without a call.

A subscription delivers each row once and in order, from a cursor on. The
daemon waits for no subscriber: one that is slow reads from the table when it
comes back, and is told of a gap only where rows have left the table.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from jackin_memd.wire.vocab import InstanceRef

#: Notification methods.
ROWS = "stream.rows"
GAP = "stream.gap"
END = "stream.end"


#: Named in one subscription; leaving both lists out follows any number.
MAX_INSTANCES = 1000


class Start(Enum):
    NOW = "now"
    OLDEST = "oldest"


class SubscribeParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    instances: Annotated[list[InstanceRef], Meta(min_length=1, max_length=MAX_INSTANCES)] | None = (
        None
    )
    """Left out: all of the operator's instances, also those loaded later; on a
    capsule channel, its own."""
    after: (
        Annotated[
            dict[InstanceRef, Annotated[str, Meta(max_length=64)]],
            Meta(max_length=MAX_INSTANCES),
        ]
        | None
    ) = None
    """Container name to the last cursor seen of it: goes on exactly there. An
    instance that is not named starts at its oldest row."""
    start: Start = Start.NOW
    """Where instances start when `after` is left out."""


class SubscribeResult(msgspec.Struct, frozen=True, kw_only=True):
    subscription: str
    cursors: dict[str, str]
    """Where each instance starts: pass it as `after` when nothing came since."""


class CancelParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subscription: Annotated[str, Meta(max_length=64)]


class CancelResult(msgspec.Struct, frozen=True, kw_only=True):
    cancelled: bool


class RowsEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`stream.rows`: rows of one table of one instance, oldest first.

    No rows: the instance has joined the subscription at `cursor`.
    """

    subscription: str
    instance: str
    cursor: str
    """The place after the last of these rows."""
    rows: list[Raw]


class GapEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`stream.gap`: rows that this subscriber can't get any more."""

    subscription: str
    instance: str
    missed: int | None
    """Null where it can't be known: the database was made anew."""
    cursor: str
    """Where delivery goes on."""
    reason: str


class EndEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`stream.end`: nothing more comes of this instance until it is loaded again; where
    `instance` is null, of the whole subscription, which this version never sends."""

    subscription: str
    instance: str | None
    code: str
    message: str

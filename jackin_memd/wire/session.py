"""hello, ping, status, shutdown: the calls that keep working across versions.

The params of `hello`, `status` and `shutdown` ignore unknown members, and
the members below keep their names and types for ever: an old daemon can
always be asked who it is, stopped and replaced.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from jackin_memd.wire.codec import Int64
from jackin_memd.wire.vocab import ONE_LINE_OR_NONE, Channel, Role


class HelloParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    protocol_version: Int64
    """The version that the caller speaks; it must equal the daemon's."""
    build: Annotated[str, Meta(max_length=128, pattern=ONE_LINE_OR_NONE)] = ""
    """Name and version of the calling program, for logs and messages."""
    role: Role = Role.OPERATOR
    """`observer` gives up the right to write, for this connection."""


class HelloResult(msgspec.Struct, frozen=True, kw_only=True):
    protocol_version: int
    build: str
    channel: Channel
    """What this connection is to the daemon."""
    instance: str | None
    """The container name that a capsule channel is bound to."""
    max_frame_bytes: int


class PingParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class PingResult(msgspec.Struct, frozen=True):
    pass


class DaemonStatusParams(msgspec.Struct, frozen=True):
    pass


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds from a write's arrival to its acknowledgement, over the last writes."""

    samples: int
    p50_ms: float | None
    p99_ms: float | None


class DaemonStatus(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    """`serving` or `stopping`."""
    pid: int
    protocol_version: int
    build: str
    home: str
    socket: str
    sqlite_version: str
    started_at: int
    """Epoch seconds."""
    uptime_s: float
    rss_bytes: int
    threads: int
    instances_loaded: int
    instances_failed: int
    databases_open: int
    connections: dict[str, int]
    """Open connections of each channel."""
    requests_in_flight: int
    write_queue_depth: int
    """Writes that wait for a commit."""
    read_queue_depth: int
    subscriptions: int
    commits: int
    rows: int
    rows_per_commit: float | None
    acknowledgement: Latency


class ShutdownParams(msgspec.Struct, frozen=True):
    pass


class ShutdownResult(msgspec.Struct, frozen=True, kw_only=True):
    accepted: bool
    pid: int


class DiscoverParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


#: An OpenRPC 1.3 document; its own schema is the OpenRPC project's.
DiscoverResult = dict[str, Any]

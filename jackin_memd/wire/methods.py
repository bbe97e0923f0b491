"""The method table: the single source for what can be called, by whom.

Dispatch, clients, `rpc.discover`, the protocol page and the bad-input tests
are all made from it. A method is added here once; a test fails while its
service, its docs or its command is missing.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from jackin_memd.wire import instances, session, status, streams
from jackin_memd.wire.vocab import Channel


class Effect(Enum):
    """What a call does, for retries and for access."""

    READ = "read"
    WRITE = "write"
    """Changes stored state; takes an `idempotency_key`."""
    STREAM = "stream"
    """Opens or closes a subscription of this connection."""
    CONTROL = "control"
    """Acts on the daemon or the connection."""


class Reach(Enum):
    """Which rows a call is about; decides how a capsule's call is bound."""

    HOST = "host"
    """Nothing of an instance."""
    INSTANCE = "instance"
    """One instance: named on operator channels, the channel's own on a capsule's."""
    INSTANCES = "instances"
    """Several instances: on a capsule channel, its own alone."""


class Method(msgspec.Struct, frozen=True):
    name: str
    params: type[Any]
    result: Any
    effect: Effect
    reach: Reach
    channels: frozenset[Channel]
    summary: str
    any_version: bool = False
    """Answered whatever protocol version the caller speaks, also before hello."""
    notifications: tuple[tuple[str, type[Any]], ...] = ()


ANYONE = frozenset(Channel)
OPERATOR = frozenset({Channel.OPERATOR})
READERS = frozenset({Channel.OPERATOR, Channel.OBSERVER})
WRITERS = frozenset({Channel.OPERATOR, Channel.CAPSULE})

_STREAM_EVENTS = (
    (streams.ROWS, streams.RowsEvent),
    (streams.GAP, streams.GapEvent),
    (streams.END, streams.EndEvent),
)

_TABLE = (
    Method(
        "hello", session.HelloParams, session.HelloResult,
        Effect.CONTROL, Reach.HOST, ANYONE,
        "Agree on the protocol version; the first call on every connection.",
        any_version=True,
    ),
    Method(
        "ping", session.PingParams, session.PingResult,
        Effect.READ, Reach.HOST, ANYONE,
        "Answer at once.",
    ),
    Method(
        "status", session.DaemonStatusParams, session.DaemonStatus,
        Effect.READ, Reach.HOST, READERS,
        "What the daemon is, holds and has done.",
        any_version=True,
    ),
    Method(
        "shutdown", session.ShutdownParams, session.ShutdownResult,
        Effect.CONTROL, Reach.HOST, OPERATOR,
        "Finish what was accepted, then exit.",
        any_version=True,
    ),
    Method(
        "rpc.discover", session.DiscoverParams, session.DiscoverResult,
        Effect.READ, Reach.HOST, ANYONE,
        "The OpenRPC document of this daemon.",
    ),
    Method(
        "instance.load", instances.InstanceLoadParams, instances.Instance,
        Effect.WRITE, Reach.HOST, OPERATOR,
        "Create or migrate an instance's database and open its socket.",
    ),
    Method(
        "instance.unload", instances.InstanceUnloadParams, instances.Instance,
        Effect.WRITE, Reach.HOST, OPERATOR,
        "Close an instance's socket and database; its files stay.",
    ),
    Method(
        "instance.purge", instances.InstancePurgeParams, instances.InstancePurgeResult,
        Effect.WRITE, Reach.HOST, OPERATOR,
        "Unload an instance and delete its jackin.db and its socket.",
    ),
    Method(
        "instance.list", instances.InstanceListParams, instances.InstanceListResult,
        Effect.READ, Reach.HOST, READERS,
        "All known instances, ordered by container name.",
    ),
    Method(
        "instance.get", instances.InstanceGetParams, instances.Instance,
        Effect.READ, Reach.INSTANCE, ANYONE,
        "One instance, by container name or short id.",
    ),
    Method(
        "status.record", status.StatusRecordParams, status.StatusRecordResult,
        Effect.WRITE, Reach.INSTANCE, WRITERS,
        "Append status transitions; answered when they are durable.",
    ),
    Method(
        "status.list", status.StatusListParams, status.StatusListResult,
        Effect.READ, Reach.INSTANCE, ANYONE,
        "Status transitions, newest first, a page at a time.",
    ),
    Method(
        "status.latest", status.StatusLatestParams, status.StatusLatestResult,
        Effect.READ, Reach.INSTANCE, ANYONE,
        "The newest status transition.",
    ),
    Method(
        "status.subscribe", streams.SubscribeParams, streams.SubscribeResult,
        Effect.STREAM, Reach.INSTANCES, ANYONE,
        "Every status transition from a cursor on, live.",
        notifications=_STREAM_EVENTS,
    ),
    Method(
        "subscription.cancel", streams.CancelParams, streams.CancelResult,
        Effect.STREAM, Reach.HOST, ANYONE,
        "End one of this connection's subscriptions.",
    ),
)  # fmt: skip

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}

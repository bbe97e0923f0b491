"""Who may call what: deny unless the method table says otherwise."""

from __future__ import annotations

import msgspec

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.methods import Method
from jackin_memd.wire.vocab import Channel, Container


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a connection is, by the listener that accepted it."""

    channel: Channel
    container: Container | None = None
    """The instance that a capsule channel is bound to."""


def refusal(method: Method, principal: Principal) -> MemdError | None:
    """Why this principal may not call the method, or None where it may."""
    if principal.channel in method.channels:
        return None
    allowed = ", ".join(sorted(channel.value for channel in method.channels))
    return MemdError(
        ErrorCode.PERMISSION_DENIED,
        f"{method.name} is not for the {principal.channel.value} channel",
        hint=f"it may be called on: {allowed}",
    )

"""What a service knows of the call it serves, and how it may answer."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec

from jackin_memd.core.access import Principal
from jackin_memd.engine.pending import Pending
from jackin_memd.storage.request_keys import RequestKey
from jackin_memd.wire.codec import encode
from jackin_memd.wire.session import HelloParams


class Session(Protocol):
    """The connection, as services see it."""

    principal: Principal

    def greet(self, hello: HelloParams) -> Principal:
        """Hello was accepted; returns what the connection is from now on."""
        ...

    async def notify(self, method: str, params: msgspec.Struct) -> None:
        """Send a notification once there is room for it."""
        ...

    def start_subscription(self, run: Callable[[str], Awaitable[None]]) -> str:
        """Run a subscription under the connection; returns its id. Raises MemdError."""
        ...

    def cancel_subscription(self, subscription: str) -> bool: ...


Answer = Any | Pending[Any] | Coroutine[Any, Any, Any]
"""Now, when the commit is durable, or from a task of its own."""

Handler = Callable[[Any, Session], Answer]

Clock = Callable[[], int]
"""Epoch seconds."""


def request_key(
    method: str, params: msgspec.Struct, key: str | None, principal: Principal, now: int
) -> RequestKey | None:
    """The key of a call that has one, apart from keys of other channels."""
    if key is None:
        return None
    request = method.encode() + b"\0" + encode(params)
    return RequestKey(
        channel=principal.channel.value,
        key=key,
        request_hash=hashlib.sha256(request).hexdigest(),
        now=now,
    )

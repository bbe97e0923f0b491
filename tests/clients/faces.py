"""Both faces of the client behind one interface, so that one test stands for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio

from jackin_mem.aio import AsyncClient, open_client
from jackin_mem.aio_subscription import open_subscription
from jackin_mem.blocking import Client
from jackin_mem.resume import OnLink, ignore_link
from jackin_mem.session import Settings, StreamEvent
from jackin_memd.wire.methods import METHODS
from jackin_memd.wire.streams import SubscribeParams

T = TypeVar("T")

PATIENCE_S = 20.0

SUBSCRIBE = METHODS["status.subscribe"]


class Face(Protocol):
    def calls(
        self, path: Path, *calls: tuple[str, Any], timeout_s: float = ..., retry: bool = ...
    ) -> list[Any]:
        """Make the calls in turn with one client; raises at the first that fails."""
        ...

    def follow(
        self, path: Path, params: SubscribeParams, count: int, **options: Any
    ) -> list[StreamEvent]:
        """The first `count` events of a subscription, or fewer where it ends."""
        ...


class OnSockets:
    def calls(
        self,
        path: Path,
        *calls: tuple[str, Any],
        timeout_s: float = PATIENCE_S,
        retry: bool = False,
    ) -> list[Any]:
        with Client(path, timeout_s=timeout_s) as client:
            return [client.call(method, params, retry=retry) for method, params in calls]

    def follow(
        self, path: Path, params: SubscribeParams, count: int, **options: Any
    ) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        with Client(path).subscribe(params, **options) as subscription:
            for event in subscription:
                events.append(event)
                if len(events) == count:
                    break
        return events


class OnTrio:
    def calls(
        self,
        path: Path,
        *calls: tuple[str, Any],
        timeout_s: float = PATIENCE_S,
        retry: bool = False,
    ) -> list[Any]:
        async def make(client: AsyncClient) -> list[Any]:
            return [await client.call(method, params, retry=retry) for method, params in calls]

        return with_client(path, make, timeout_s=timeout_s)

    def follow(
        self,
        path: Path,
        params: SubscribeParams,
        count: int,
        *,
        reconnect_s: float | None = None,
        on_link: OnLink = ignore_link,
    ) -> list[StreamEvent]:
        opened = open_subscription(
            Settings(path=path), SUBSCRIBE, params, reconnect_s=reconnect_s, on_link=on_link
        )

        async def receive() -> list[StreamEvent]:
            events: list[StreamEvent] = []
            async with opened as subscription:
                async for event in subscription:
                    events.append(event)
                    if len(events) == count:
                        break
            return events

        return run(receive)


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run on trio; what takes too long has failed."""

    async def bounded() -> T:
        with trio.fail_after(PATIENCE_S):
            return await main()

    return trio.run(bounded)


def with_client(
    path: Path, use: Callable[[AsyncClient], Awaitable[T]], *, timeout_s: float = PATIENCE_S
) -> T:
    async def main() -> T:
        async with open_client(path, timeout_s=timeout_s) as client:
            return await use(client)

    return run(main)

"""Both faces against the real daemon, through kills and restarts."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
import trio

from jackin_mem.aio import AsyncClient, open_client
from jackin_mem.blocking import Client
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceUnloadParams
from jackin_memd.wire.session import PingParams, PingResult
from jackin_memd.wire.status import (
    StatusEntry,
    StatusLatestParams,
    StatusLatestResult,
    StatusListParams,
    StatusRecordParams,
    StatusRow,
)
from jackin_memd.wire.streams import RowsEvent, Start, SubscribeParams
from jackin_memd.wire.vocab import Channel, Role
from tests.clients.faces import Face, run, with_client
from tests.support.daemon import CONTAINER, OTHER, Daemon, record

PING = ("ping", PingParams())
OLDEST = SubscribeParams(start=Start.OLDEST)


def row_record(word: str) -> tuple[str, StatusRecordParams]:
    entries = [StatusEntry(new_status=word)]
    return "status.record", StatusRecordParams(entries=entries, instance=CONTAINER)


def words(event: object) -> list[str]:
    if not isinstance(event, RowsEvent):
        return []
    return [msgspec.json.decode(row, type=StatusRow).new_status for row in event.rows]


def test_calls_are_answered_with_their_types(face: Face, daemon: Daemon) -> None:
    daemon.load()
    pong, recorded, latest = face.calls(
        daemon.socket,
        PING,
        row_record("working"),
        ("status.latest", StatusLatestParams(instance=CONTAINER)),
    )
    assert pong == PingResult()
    assert recorded.first_id == recorded.last_id == 1
    assert isinstance(latest, StatusLatestResult)
    assert latest.row is not None
    assert latest.row.new_status == "working"


def test_a_refusal_carries_code_field_and_hint(face: Face, daemon: Daemon) -> None:
    with pytest.raises(MemdError) as refused:
        face.calls(daemon.socket, ("status.latest", StatusLatestParams(instance="nope")))
    error = refused.value
    assert (error.code, error.field) == (ErrorCode.INSTANCE_NOT_FOUND, "instance")
    assert error.hint


def test_an_instances_own_socket_needs_no_instance(face: Face, daemon: Daemon) -> None:
    daemon.load()
    face.calls(
        daemon.instance_socket(),
        ("status.record", StatusRecordParams(entries=[StatusEntry(new_status="idle")])),
    )
    assert daemon.rows("SELECT new_status FROM status_log") == [("idle",)]


def test_an_observer_may_not_write(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client(role=Role.OBSERVER) as observer:
        assert observer.hello is not None
        assert observer.hello.channel is Channel.OBSERVER
        with pytest.raises(MemdError) as refused:
            observer.call(*row_record("idle"))
    assert refused.value.code is ErrorCode.PERMISSION_DENIED


def test_a_retried_call_survives_a_restart_between_two(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client:
        client.call(*row_record("first"), retry=True)
        daemon.kill()
        daemon.start()
        client.call(*row_record("second"), retry=True)  # finds its connection dead
    assert daemon.rows("SELECT new_status FROM status_log ORDER BY id") == [
        ("first",),
        ("second",),
    ]


def test_a_retried_call_survives_a_restart_on_trio(daemon: Daemon) -> None:
    daemon.load()

    async def use(client: AsyncClient) -> None:
        await client.call(*row_record("first"), retry=True)
        await trio.to_thread.run_sync(daemon.kill)
        await trio.to_thread.run_sync(daemon.start)
        await client.call(*row_record("second"), retry=True)

    with_client(daemon.socket, use)
    assert daemon.rows("SELECT count(*) FROM status_log") == [(2,)]


def test_a_pipeline_is_answered_whole(daemon: Daemon) -> None:
    daemon.load()
    calls = [row_record(f"w{number}") for number in range(300)]
    with daemon.client() as client:
        results = client.pipeline(calls)
        assert [result.first_id for result in results] == list(range(1, 301))
        newest = client.call("status.list", StatusListParams(instance=CONTAINER, limit=1))
    assert newest.rows[0].new_status == "w299"


def test_many_trio_calls_share_one_connection(daemon: Daemon) -> None:
    daemon.load()

    async def use(client: AsyncClient) -> int:
        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(client.call, *row_record(f"w{number}"))
        status = await client.call("status", msgspec.json.decode(b"{}", type=dict))
        connections: dict[str, int] = status.connections
        return connections["operator"]

    assert with_client(daemon.socket, use) == 1
    assert daemon.rows("SELECT count(DISTINCT new_status) FROM status_log") == [(200,)]


# -- subscriptions ----------------------------------------------------------------


def test_a_subscription_outlives_kills_without_loss_or_doubles(daemon: Daemon) -> None:
    """Rows come before, between and after two kills; one subscriber sees each once."""
    daemon.load()
    expected = [f"{part}-{number}" for part in "abc" for number in range(50)]
    seen: list[str] = []

    def follow(subscription: object) -> None:
        for event in subscription:  # type: ignore[attr-defined]
            seen.extend(words(event))
            if len(seen) >= len(expected):
                return

    with Client(daemon.socket).subscribe(SubscribeParams()) as subscription:
        thread = threading.Thread(target=follow, args=(subscription,))
        thread.start()
        for part in "abc":
            with daemon.client() as client:
                client.pipeline([row_record(f"{part}-{number}") for number in range(50)])
            if part != "c":
                daemon.kill()
                daemon.start()
        thread.join(20)
        assert not thread.is_alive()
    assert seen == expected


def test_a_trio_subscription_outlives_a_kill(daemon: Daemon) -> None:
    daemon.load()
    links: list[MemdError | None] = []

    async def main() -> list[str]:
        seen: list[str] = []
        async with (
            open_client(daemon.socket) as client,
            client.subscribe(SubscribeParams(), on_link=links.append) as subscription,
        ):
            for word in ("before", "after"):
                await client.call(*row_record(word), retry=True)
                while word not in seen:
                    seen += words(await anext(subscription))
                if word == "before":
                    await trio.to_thread.run_sync(daemon.kill)
                    await trio.to_thread.run_sync(daemon.start)
        return seen

    assert run(main) == ["before", "after"]
    assert [link is None for link in links] == [False, True]


def test_rows_written_while_a_subscriber_is_away_are_delivered(
    face: Face, daemon: Daemon, short_path: Path
) -> None:
    daemon.load()
    daemon.load(OTHER)
    with daemon.client() as client, client.subscribe(OLDEST) as subscription:
        client.call(*row_record("seen"))
        while "seen" not in words(subscription.receive(20)):
            pass
        away = subscription.cursors
    with daemon.client() as client:
        client.call(*row_record("missed"))
        record(client, "other", instance=OTHER)
    events = face.follow(daemon.socket, SubscribeParams(after=away), 2)
    assert sorted(word for event in events for word in words(event)) == ["missed", "other"]


def test_an_unloaded_instance_ends_and_goes_on_when_it_is_loaded_again(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client, client.subscribe(OLDEST) as subscription:
        client.call(*row_record("first"))
        while "first" not in words(subscription.receive(20)):
            pass
        client.call("instance.unload", InstanceUnloadParams(instance=CONTAINER))
        ended = subscription.receive(20)
        assert type(ended).__name__ == "EndEvent"
        daemon.load()
        client.call(*row_record("second"))
        assert words(subscription.receive(20)) == ["second"]

"""Many connections at once, and connections that end at an awkward moment."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from jackin_memd.wire.vocab import PROTOCOL_VERSION
from tests.support.daemon import CONTAINER, OTHER, Daemon
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted, request

HELLO = request("hello", b'{"protocol_version": %d}' % PROTOCOL_VERSION, "hello")


def framed(*payloads: bytes) -> bytes:
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


def record(word: str, key: str | None = None, id_: int = 1) -> bytes:
    params = {"entries": [{"new_status": word}]} | ({"idempotency_key": key} if key else {})
    return request("status.record", json.dumps(params).encode(), id_)


def test_500_connections_at_once_each_get_an_answer(shared: Daemon) -> None:
    with ExitStack() as stack:
        peers = [stack.enter_context(Raw(shared.socket)) for _ in range(500)]
        for number, peer in enumerate(peers):
            peer.send(framed(HELLO, request("ping", id_=number)))
        for number, peer in enumerate(peers):
            assert peer.read()["result"]["channel"] == "operator"
            assert peer.read() == {"jsonrpc": "2.0", "id": number, "result": {}}
        assert shared.status().connections["operator"] >= 500


def test_connections_that_are_gone_are_forgotten(shared: Daemon) -> None:
    with ExitStack() as stack:
        peers = [stack.enter_context(greeted(shared.instance_socket())) for _ in range(50)]
        assert shared.status().connections["capsule"] == 50
        for peer in peers:
            peer.half_close()
        for peer in peers:
            assert peer.read_to_end() == []
    assert shared.status().connections["capsule"] == 0


@proves("wire-connection-limit")
def test_a_connection_over_the_limit_is_told_so_and_disturbs_nobody(stopped: Daemon) -> None:
    stopped.configure(limits={"connections": 3})
    stopped.start()
    with ExitStack() as stack:
        first, *others = [stack.enter_context(greeted(stopped.socket)) for _ in range(3)]
        with Raw(stopped.socket) as refused:
            (farewell,) = refused.read_to_end()
        assert code_of(farewell) == "TOO_MANY_CONNECTIONS"
        assert farewell["error"]["data"]["limit"] == 3
        assert [peer.call("ping") for peer in others] == [{}, {}]
        first.half_close()
        first.read_to_end()  # it has left: there is room for another
        with greeted(stopped.socket) as next_:
            assert next_.call("ping") == {}


@proves("wire-connection-limit")
def test_the_limit_of_one_socket_is_not_that_of_another(stopped: Daemon) -> None:
    stopped.configure(limits={"connections": 2})
    stopped.start()
    stopped.load(CONTAINER)
    with greeted(stopped.instance_socket()), greeted(stopped.instance_socket()):
        with Raw(stopped.instance_socket()) as refused:
            assert code_of(refused.read()) == "TOO_MANY_CONNECTIONS"
        with greeted(stopped.socket) as operator:
            assert operator.call("ping") == {}


@proves("wire-idempotency")
def test_a_row_whose_answer_found_nobody_is_kept_and_its_key_tells_so(shared: Daemon) -> None:
    with greeted(shared.socket) as watcher:
        watcher.call("status.subscribe", instances=[CONTAINER])
        assert watcher.read()["params"]["rows"] == []
        with greeted(shared.instance_socket()) as leaving:
            leaving.send_frame(record("left", key="left-1"))
        (row,) = watcher.read()["params"]["rows"]
    with greeted(shared.instance_socket()) as back:
        back.send_frame(record("left", key="left-1"))
        assert back.read()["result"]["first_id"] == row["id"]
    assert shared.rows("SELECT id FROM status_log WHERE new_status = 'left'") == [(row["id"],)]


def test_notifications_of_a_client_that_leaves_at_once_are_all_done(shared: Daemon) -> None:
    note = (
        b'{"jsonrpc":"2.0","method":"status.record","params":{"entries":[{"new_status":"note"}]}}'
    )
    with greeted(shared.instance_socket(OTHER)) as peer:
        peer.send(framed(*[note] * 2000))
        peer.half_close()
        assert peer.read_to_end() == []
    found = shared.rows("SELECT count(*) FROM status_log WHERE new_status = 'note'", OTHER)
    assert found == [(2000,)]


@proves("wire-reply-before-close")
@pytest.mark.parametrize("count", [1, 3, 600])
def test_answers_still_come_to_a_client_that_closed_its_sending_half(
    shared: Daemon, count: int
) -> None:
    with greeted(shared.instance_socket(OTHER)) as peer:
        calls = [
            record("half", id_=number) if number % 2 else request("status.latest", id_=number)
            for number in range(count)
        ]
        peer.send(framed(*calls))
        peer.half_close()
        answers = peer.read_to_end()
    assert sorted(answer["id"] for answer in answers) == list(range(count))
    assert all("result" in answer for answer in answers)


def test_a_client_that_leaves_before_hello_is_answered_is_no_error(shared: Daemon) -> None:
    for _ in range(20):
        with Raw(shared.socket) as peer:
            peer.send(framed(HELLO))
        Raw(shared.socket).close()
    with greeted(shared.socket) as peer:  # accepted after those
        assert peer.call("ping") == {}

"""Batches: one frame of replies, that holds one for each entry that wants one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Answer, Call, Event, Peer, Refusal
from tests.support.proves import proves
from tests.wire.streams_of_bytes import codes, payloads_of, replies, request

NOTIFICATION = b'{"jsonrpc":"2.0","method":"ping"}'


def batch(*entries: bytes) -> bytes:
    return frame(b"[" + b",".join(entries) + b"]")


def numbered(*ids: int) -> list[bytes]:
    return [request(call_id=b"%d" % id_) for id_ in ids]


def calls(events: list[Event]) -> list[Call]:
    assert all(isinstance(event, Call) for event in events)
    return [event for event in events if isinstance(event, Call)]


@proves("wire-batches")
def test_replies_are_collected_in_one_frame_and_none_is_sent_before_the_last() -> None:
    peer = Peer(answers=False)
    first, second, third = calls(peer.receive_data(batch(*numbered(1, 2, 3))))
    assert peer.result(second, "b") is None
    assert peer.failure(first, MemdError(ErrorCode.DISK_FULL, "full")) is None
    said = replies(peer.result(third, "c"))
    assert {reply["id"]: reply.get("result") for reply in said} == {1: None, 2: "b", 3: "c"}


@proves("wire-batches")
def test_a_bad_entry_is_answered_beside_the_good_ones_and_stops_none_of_them() -> None:
    peer = Peer(answers=False)
    good = request(call_id=b"1")
    bad = b'{"jsonrpc":"2.0","id":2,"method":7}'
    (call,) = calls(peer.receive_data(batch(good, bad, b"5", b'"x"')))
    said = replies(peer.result(call, {}))
    assert sorted((reply["id"] or 0, "error" in reply) for reply in said) == [
        (0, True), (0, True), (1, False), (2, True),
    ]  # fmt: skip


def test_notifications_in_a_batch_are_calls_that_get_no_reply() -> None:
    peer = Peer(answers=False)
    note, call = calls(peer.receive_data(batch(NOTIFICATION, request())))
    assert peer.result(note, 1) is None
    assert [reply["id"] for reply in replies(peer.result(call, 2))] == [1]


@proves("wire-batches")
def test_a_batch_of_notifications_alone_gives_no_reply_at_all() -> None:
    peer = Peer(answers=False)
    for note in calls(peer.receive_data(batch(NOTIFICATION, NOTIFICATION))):
        assert peer.result(note, 1) is None


@proves("wire-batches")
def test_a_batch_without_one_good_entry_is_refused_with_a_reply_for_each() -> None:
    (refusal,) = Peer(answers=False).receive_data(batch(b"1", b"2", b"{}"))
    assert isinstance(refusal, Refusal)
    assert codes(refusal.frame) == ["INVALID_REQUEST"] * 3


def test_bad_entries_are_answered_though_all_the_others_are_notifications() -> None:
    note, refusal = Peer(answers=False).receive_data(batch(NOTIFICATION, b"1"))
    assert isinstance(note, Call)
    assert isinstance(refusal, Refusal)
    assert codes(refusal.frame) == ["INVALID_REQUEST"]


def test_an_empty_batch_is_refused_with_one_reply_that_is_no_batch() -> None:
    (refusal,) = Peer(answers=False).receive_data(frame(b" [ ] "))
    assert isinstance(refusal, Refusal)
    assert replies(refusal.frame)["error"]["data"]["code"] == "INVALID_REQUEST"


def test_a_batch_in_a_batch_is_a_bad_entry() -> None:
    (refusal,) = Peer(answers=False).receive_data(batch(b"[" + request() + b"]"))
    assert isinstance(refusal, Refusal)
    assert codes(refusal.frame) == ["INVALID_REQUEST"]


def test_a_batch_of_the_limit_passes_and_one_entry_more_makes_no_call() -> None:
    peer = Peer(answers=False, max_batch=3)
    assert len(calls(peer.receive_data(batch(*numbered(1, 2, 3))))) == 3
    (refusal,) = peer.receive_data(batch(*numbered(1, 2, 3, 4)))
    assert isinstance(refusal, Refusal)
    assert refusal.error.code is ErrorCode.BATCH_TOO_LARGE
    assert refusal.error.details == {"limit": 3}


@proves("wire-reply-limit")
def test_a_reply_over_the_frame_limit_becomes_an_error_with_the_calls_id() -> None:
    peer = Peer(answers=False, max_frame_bytes=1000)
    (call,) = calls(peer.receive_data(frame(request())))
    said = replies(peer.result(call, "x" * 1000))
    assert (said["id"], said["error"]["data"]["code"]) == (1, "REPLY_TOO_LARGE")


def test_a_reply_of_exactly_the_frame_limit_is_sent() -> None:
    peer = Peer(answers=False, max_frame_bytes=1000)
    (call,) = calls(peer.receive_data(frame(request())))
    envelope = len(payloads_of(peer.result(call, "") or b"")[0])
    assert "result" in replies(peer.result(call, "x" * (1000 - envelope)))
    assert "error" in replies(peer.result(call, "x" * (1001 - envelope)))


@proves("wire-reply-limit")
def test_an_error_over_the_frame_limit_becomes_a_short_one() -> None:
    peer = Peer(answers=False, max_frame_bytes=1000)
    (call,) = calls(peer.receive_data(frame(request())))
    error = MemdError(ErrorCode.DISK_FULL, "x" * 1000)
    assert codes(peer.failure(call, error)) == ["REPLY_TOO_LARGE"]


@proves("wire-reply-limit")
def test_only_the_replies_that_do_not_fit_the_batchs_frame_are_replaced() -> None:
    peer = Peer(answers=False, max_frame_bytes=3000)
    first, second, third = calls(peer.receive_data(batch(*numbered(1, 2, 3))))
    peer.result(first, "x" * 1500)
    peer.result(second, "y" * 1500)
    sent = peer.result(third, "z" * 100)
    assert codes(sent) == ["ok", "REPLY_TOO_LARGE", "ok"]
    assert [reply["id"] for reply in replies(sent)] == [1, 2, 3]


def test_the_last_reply_may_take_all_the_room_that_is_left() -> None:
    peer = Peer(answers=False, max_frame_bytes=3000)
    *early, last = calls(peer.receive_data(batch(*numbered(1, 2, 3))))
    for call in early:
        peer.result(call, "x")
    assert codes(peer.result(last, "x" * 2700)) == ["ok"] * 3


def test_a_batchs_frame_is_filled_to_its_last_byte_and_not_beyond() -> None:
    def sent(size: int) -> bytes:
        peer = Peer(answers=False, max_frame_bytes=1000)
        (call,) = calls(peer.receive_data(batch(request())))
        return peer.result(call, "x" * size) or b""

    around = len(payloads_of(sent(0))[0])
    assert codes(sent(1000 - around)) == ["ok"]
    assert codes(sent(1001 - around)) == ["REPLY_TOO_LARGE"]


@pytest.mark.parametrize("number", [3, 7, 20])
def test_the_smallest_limit_that_takes_a_batch_takes_its_refusals_to_the_byte(number: int) -> None:
    def taken(limit: int) -> bytes | None:
        """The frame of replies that would fit alone; None where the batch is refused."""
        peer = Peer(answers=False, max_frame_bytes=limit)
        events = peer.receive_data(batch(*numbered(*range(number))))
        if not isinstance(events[0], Call):
            return None
        return [peer.result(call, "x" * (limit - 60)) for call in calls(events)][-1]

    limit = next(limit for limit in range(500, 10_000) if taken(limit) is not None)
    (payload,) = payloads_of(taken(limit) or b"")
    assert len(json.loads(payload)) == number
    assert len(payload) == limit


def test_what_waits_for_a_batchs_last_reply_is_never_more_than_one_frame() -> None:
    peer = Peer(answers=False, max_frame_bytes=100_000)
    *most, last = calls(peer.receive_data(batch(*numbered(*range(200)))))
    for call in most:
        peer.result(call, "x" * 90_000)
    waiting = last.batch
    assert waiting is not None
    assert sum(map(len, waiting.replies)) <= 100_000
    assert len(payloads_of(peer.result(last, "x" * 90_000) or b"")[0]) <= 100_000


def test_a_batch_whose_refusals_alone_would_not_fit_makes_no_call() -> None:
    peer = Peer(answers=False, max_frame_bytes=2000)
    (refusal,) = peer.receive_data(batch(*numbered(*range(20))))
    assert isinstance(refusal, Refusal)
    assert refusal.error.code is ErrorCode.BATCH_TOO_LARGE


@proves("wire-reply-limit")
@given(
    st.lists(st.tuples(st.text(max_size=128), st.integers(0, 1500)), min_size=1, max_size=8),
    st.integers(1200, 6000),
    st.randoms(use_true_random=False),
)
def test_each_call_of_a_batch_is_answered_once_within_one_frame(
    entries: list[tuple[str, int]], limit: int, random: Any
) -> None:
    peer = Peer(answers=False, max_frame_bytes=limit)
    sent = batch(*(request(call_id=json.dumps(id_).encode()) for id_, _ in entries))
    if len(sent) - 4 > limit:
        return
    events = peer.receive_data(sent)
    if isinstance(events[0], Refusal):
        assert events[0].error.code is ErrorCode.BATCH_TOO_LARGE
        return
    waiting = list(zip(calls(events), entries, strict=True))
    random.shuffle(waiting)
    *early, reply = [peer.result(call, "x" * size) for call, (_, size) in waiting]
    assert early == [None] * (len(entries) - 1)
    (payload,) = payloads_of(reply or b"")
    assert len(payload) <= limit
    assert sorted(answer["id"] for answer in json.loads(payload)) == sorted(i for i, _ in entries)


@proves("wire-reply-limit")
def test_the_longest_ids_and_the_largest_batch_fit_the_default_frame() -> None:
    peer = Peer(answers=False)
    id_ = json.dumps("\x01" * 128).encode()
    some = calls(peer.receive_data(batch(*[request(call_id=id_)] * 1000)))
    *_, sent = [peer.result(call, "x" * 1_000_000) for call in some]
    assert 1 <= codes(sent).count("ok") <= 4
    assert len(payloads_of(sent or b"")[0]) <= 4 * 1024 * 1024


def test_a_batch_of_responses_answers_the_calls_one_by_one() -> None:
    client = Peer(answers=True)
    events = client.receive_data(
        batch(b'{"jsonrpc":"2.0","id":1,"result":5}', b'{"jsonrpc":"2.0","id":2,"result":6}')
    )
    assert [(e.id, bytes(e.result)) for e in events if isinstance(e, Answer)] == [
        (1, b"5"), (2, b"6"),
    ]  # fmt: skip


@pytest.mark.parametrize("space", [b" ", b"\n\t \r"])
def test_a_batch_is_known_by_its_first_byte_that_is_not_white_space(space: bytes) -> None:
    peer = Peer(answers=False)
    payload = space + b"[" + request() + b"]"
    (call,) = calls(peer.receive_data(frame(payload)))
    assert isinstance(replies(peer.result(call, 1)), list)

"""Envelopes: what a message may be, and the reply to what it may not be."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Answer, Broken, Call, Event, Peer, Refusal
from tests.support.proves import proves
from tests.wire.streams_of_bytes import replies, request

MIB = 1024 * 1024


def one(payload: bytes, *, answers: bool = False) -> Event:
    (event,) = Peer(answers=answers).receive_data(frame(payload))
    return event


def refused(payload: bytes, *, answers: bool = False) -> MemdError:
    """The error of the refusal, after a look at the reply that carries it."""
    event = one(payload, answers=answers)
    assert isinstance(event, Refusal)
    said = replies(event.frame)
    assert said["jsonrpc"] == "2.0"
    assert said["error"]["data"]["code"] == event.error.code.word
    assert said["error"]["code"] == event.error.code.number
    return event.error


def reply_id(payload: bytes) -> object:
    event = one(payload)
    assert isinstance(event, Refusal)
    return replies(event.frame)["id"]


@proves("wire-json-rpc")
def test_a_request_is_a_call_with_its_id_method_and_the_bytes_of_its_params() -> None:
    event = one(request(call_id=b'"a"', params=b'{"x":1}'))
    assert isinstance(event, Call)
    assert (event.id, event.method, bytes(event.params)) == ("a", "ping", b'{"x":1}')  # type: ignore[arg-type]
    assert event.wants_reply


def test_absent_params_are_told_from_empty_ones() -> None:
    event = one(request())
    assert isinstance(event, Call)
    assert event.params is UNSET


@pytest.mark.parametrize("call_id", [b"0", b"-1", b"9223372036854775807", b'""', b'"\\u0000"'])
def test_an_id_is_any_64_bit_integer_or_short_text(call_id: bytes) -> None:
    assert isinstance(one(request(call_id=call_id)), Call)


@proves("wire-ids")
@pytest.mark.parametrize(
    "call_id",
    [
        b"null", b"true", b"1.5", b"1.0", b"1e3", b"{}", b"[]", b"9223372036854775808",
        b"-9223372036854775809", b"9" * 5000, b'"' + b"x" * 129 + b'"', b'"' + b"x" * MIB + b'"',
    ],
    ids=lambda call_id: call_id[:20].decode(),
)  # fmt: skip
def test_an_id_of_any_other_kind_is_refused_and_not_quoted(call_id: bytes) -> None:
    payload = request(call_id=call_id)
    error = refused(payload)
    assert error.code is ErrorCode.INVALID_REQUEST
    assert len(error.message) < 500
    assert reply_id(payload) is None


@proves("wire-ids")
def test_a_refusal_quotes_the_id_where_it_can_be_read() -> None:
    assert reply_id(b'{"jsonrpc":"2.0","id":"abc","method":5}') == "abc"
    assert reply_id(b'{"jsonrpc":"2.0","id":7}') == 7
    assert reply_id(b'{"id":7,') is None


@pytest.mark.parametrize("length", [129, MIB])
def test_a_method_name_longer_than_a_label_is_refused_without_being_quoted(length: int) -> None:
    error = refused(request(method=b'"' + b"m" * length + b'"'))
    assert error.code is ErrorCode.INVALID_REQUEST
    assert len(error.message) < 500


@pytest.mark.parametrize(
    "payload",
    [b"null", b"5", b'"x"', b"true", b"{}", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}',
     b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":2.0,"id":1,"method":"ping"}',
     b'{"id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"ping","result":1}',
     b'{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":""}}'],
)  # fmt: skip
def test_json_that_is_not_a_message_is_an_invalid_request(payload: bytes) -> None:
    assert refused(payload).code is ErrorCode.INVALID_REQUEST


@proves("wire-unknown-member")
@pytest.mark.parametrize("name", ["extra", "Method", "a`b", "x - at `$.y"])
def test_an_unknown_member_is_refused_by_name(name: str) -> None:
    error = refused(b'{"jsonrpc":"2.0","id":1,"method":"ping","%b":1}' % name.encode())
    assert error.code is ErrorCode.INVALID_REQUEST
    assert name.split(" - at ", maxsplit=1)[0] in error.message


def test_the_name_of_an_unknown_member_is_quoted_only_so_far() -> None:
    error = refused(b'{"jsonrpc":"2.0","id":1,"method":"ping","' + b"k" * MIB + b'":1}')
    assert "kkk" in error.message
    assert len(error.message) < 500


@proves("wire-direction")
@pytest.mark.parametrize(
    "response",
    [b'{"jsonrpc":"2.0","id":1,"result":{}}',
     b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
)  # fmt: skip
def test_a_peer_that_makes_no_calls_refuses_responses(response: bytes) -> None:
    assert refused(response).code is ErrorCode.INVALID_REQUEST
    assert isinstance(one(response, answers=True), Answer)


def test_a_response_with_both_a_result_and_an_error_is_refused() -> None:
    both = b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}'
    assert refused(both, answers=True).code is ErrorCode.INVALID_REQUEST


def test_a_result_of_null_is_an_answer() -> None:
    event = one(b'{"jsonrpc":"2.0","id":1,"result":null}', answers=True)
    assert isinstance(event, Answer)
    assert (bytes(event.result), event.error) == (b"null", None)


@proves("wire-error-shape")
def test_an_error_with_a_word_of_a_newer_daemon_still_says_what_it_is() -> None:
    event = one(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":999,"message":"no","data":{"code":"NEW_ONE"}}}',
        answers=True,
    )
    assert isinstance(event, Answer)
    assert event.error is not None
    assert event.error.code is ErrorCode.INTERNAL_ERROR
    assert event.error.details == {"unknown_code": "NEW_ONE", "number": 999}


def test_an_errors_hint_and_field_are_text_or_stay_details() -> None:
    event = one(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x",'
        b'"data":{"code":"DISK_FULL","hint":5,"field":["a"]}}}',
        answers=True,
    )
    assert isinstance(event, Answer)
    assert event.error is not None
    assert (event.error.hint, event.error.field) == (None, None)
    assert event.error.details == {"hint": 5, "field": ["a"]}


@proves("wire-frame-limit")
@pytest.mark.parametrize(
    ("prefix", "code"),
    [(b"\0\0\0\0", ErrorCode.FRAME_EMPTY), (b"\x7f\0\0\0", ErrorCode.FRAME_TOO_LARGE)],
)
def test_a_refused_length_ends_the_stream_with_a_reply_after_what_came_before(
    prefix: bytes, code: ErrorCode
) -> None:
    peer = Peer(answers=False)
    call, broken = peer.receive_data(frame(request()) + prefix + b"x" * 100)
    assert isinstance(call, Call)
    assert isinstance(broken, Broken)
    assert broken.error.code is code
    assert replies(broken.frame) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": code.number, "message": broken.error.message, "data": {
            "code": code.word, "hint": broken.error.hint, **broken.error.details}},
    }  # fmt: skip


@proves("wire-frame-limit")
def test_a_call_or_notification_over_the_limit_is_refused_before_it_is_sent() -> None:
    peer = Peer(answers=True, max_frame_bytes=100)
    for send in (peer.call, peer.notify):
        with pytest.raises(MemdError) as caught:
            send("m", {"x": "y" * 100})
        assert caught.value.code is ErrorCode.FRAME_TOO_LARGE
    assert len(peer.call("m", {})[1]) < 104


def test_no_id_is_used_for_two_calls() -> None:
    peer = Peer(answers=True)
    assert len({peer.call("m", {})[0] for _ in range(100)}) == 100


def test_a_peer_tells_whether_a_frame_is_under_way() -> None:
    peer = Peer(answers=False)
    sent = frame(request())
    peer.receive_data(sent[:-1])
    assert peer.mid_frame
    peer.receive_data(sent[-1:])
    assert not peer.mid_frame

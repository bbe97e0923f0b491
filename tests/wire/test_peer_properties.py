"""What holds of a peer for any input at all."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from jackin_memd.wire import codec
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.methods import METHODS
from jackin_memd.wire.peer import Answer, Broken, Call, Peer, Refusal
from tests.support.proves import proves
from tests.wire.streams_of_bytes import (
    bytewise,
    ids,
    json_values,
    meanings,
    payloads,
    payloads_of,
    received,
    replies,
    split_at,
    streams,
)

LIMIT = 400  # small, so that streams meet it

anyone = st.booleans()
cuts = st.lists(st.integers(0, 10_000), max_size=12)


@proves("wire-any-split")
@given(streams, cuts, anyone)
def test_any_split_of_a_stream_gives_the_same_events(
    stream: bytes, cuts: list[int], answers: bool
) -> None:
    def events(pieces: Any) -> Any:
        return meanings(received(Peer(answers=answers, max_frame_bytes=LIMIT), pieces))

    whole = events([stream])
    assert events(split_at(stream, cuts)) == whole
    assert events(bytewise(stream)) == whole


@proves("wire-no-exception")
@given(json_values, anyone)
@example(json.loads("[" * 300 + "]" * 300), True)
def test_any_json_value_as_a_message_gives_one_kind_of_event(value: Any, answers: bool) -> None:
    peer = Peer(answers=answers)
    events = peer.receive_data(frame(json.dumps(value).encode()))
    assert [type(event) for event in events] == [Refusal]


@proves("wire-no-exception")
@given(payloads, anyone)
def test_whatever_a_frame_holds_is_an_event_and_never_an_exception(
    payload: bytes, answers: bool
) -> None:
    events = Peer(answers=answers).receive_data(frame(payload))
    for event in events:
        assert isinstance(event, Call | Answer | Refusal)
    # What a broken stream would mean can't follow from a readable frame.
    assert events


@proves("wire-no-exception")
@given(st.binary(max_size=200), anyone)
def test_any_bytes_give_events_and_a_broken_stream_is_the_last_of_them(
    data: bytes, answers: bool
) -> None:
    events = Peer(answers=answers, max_frame_bytes=LIMIT).receive_data(data)
    assert all(not isinstance(event, Broken) for event in events[:-1])


@given(payloads, anyone)
def test_every_refusal_is_a_reply_that_a_calling_peer_understands(
    payload: bytes, answers: bool
) -> None:
    for event in Peer(answers=answers).receive_data(frame(payload)):
        if isinstance(event, Refusal):
            understood = Peer(answers=True).receive_data(event.frame)
            assert understood
            for answer in understood:
                assert isinstance(answer, Answer)
                assert answer.error is not None


@given(st.lists(payloads, min_size=1, max_size=5), st.integers(120, 900))
def test_no_peer_sends_a_frame_over_the_limit_where_a_refusal_fits_at_all(
    some: list[bytes], room: int
) -> None:
    peer = Peer(answers=False, max_frame_bytes=2000 + room)
    big = {"x": "y" * room}
    for event in peer.receive_data(b"".join(map(frame, some))):
        sent = peer.result(event, big) if isinstance(event, Call) else event.frame  # type: ignore[union-attr]
        for payload in payloads_of(sent or b""):
            assert len(payload) <= 2000 + room


@proves("wire-no-exception")
@given(json_values | st.dictionaries(st.text(), json_values))
def test_any_params_are_decoded_or_refused_for_every_method(value: Any) -> None:
    for method in METHODS.values():
        decoder = msgspec.json.Decoder(method.params)
        try:
            codec.decode_params(Raw(codec.encode(value)), decoder)
        except MemdError as error:
            assert error.code is ErrorCode.INVALID_PARAMS


@given(st.lists(st.tuples(st.text(max_size=128), json_values), max_size=6), cuts)
def test_every_call_arrives_equal_to_what_was_sent(
    calls: list[tuple[str, Any]], cuts: list[int]
) -> None:
    client, server = Peer(answers=True), Peer(answers=False)
    sent = [(method, params, client.call(method, params)) for method, params in calls]
    stream = b"".join(data for _, _, (_, data) in sent)
    arrived = received(server, split_at(stream, cuts))
    assert [
        (event.method, json.loads(bytes(event.params)), event.id)  # type: ignore[union-attr,arg-type]
        for event in arrived
    ] == [(method, params, id_) for method, params, (id_, _) in sent]


@given(st.text(max_size=128), json_values)
def test_a_notification_arrives_as_a_call_that_wants_no_reply(method: str, params: Any) -> None:
    (event,) = Peer(answers=True).receive_data(Peer(answers=False).notify(method, params))
    assert isinstance(event, Call)
    assert (event.method, event.wants_reply) == (method, False)
    assert json.loads(bytes(event.params)) == params  # type: ignore[arg-type]
    assert Peer(answers=False).result(event, 1) is None
    assert Peer(answers=False).failure(event, MemdError(ErrorCode.DISK_FULL, "")) is None


@given(ids, json_values, cuts)
def test_every_result_comes_back_equal(id_: int | str, value: Any, cuts: list[int]) -> None:
    client, server = Peer(answers=True), Peer(answers=False)
    sent = server.result(Call(id_, "m", Raw(b"{}")), value)
    (answer,) = received(client, split_at(sent or b"", cuts))
    assert isinstance(answer, Answer)
    assert (answer.id, json.loads(bytes(answer.result)), answer.error) == (id_, value, None)


details = st.dictionaries(
    st.text().filter(lambda name: name not in {"code", "hint", "field"}), json_values, max_size=3
)


@proves("wire-error-shape")
@given(ids, st.sampled_from(ErrorCode), st.text(), st.none() | st.text(), st.none() | st.text(),
       details)  # fmt: skip
def test_every_error_comes_back_equal(
    id_: int | str,
    code: ErrorCode,
    message: str,
    hint: str | None,
    field: str | None,
    details: dict[str, Any],
) -> None:
    client, server = Peer(answers=True), Peer(answers=False)
    error = MemdError(code, message, hint=hint, field=field, details=details)
    sent = server.failure(Call(id_, "m", Raw(b"{}")), error)
    assert replies(sent)["error"]["code"] == code.number
    (answer,) = client.receive_data(sent or b"")
    assert isinstance(answer, Answer)
    assert answer.id == id_
    back = answer.error
    assert back is not None
    assert (back.code, back.message, back.hint, back.field, back.details) == (
        code, message, hint, field, details,
    )  # fmt: skip

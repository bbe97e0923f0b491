"""JSON that parsers disagree about, or that costs them more than it should."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from jackin_memd.wire import codec
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Call, Peer, Refusal
from tests.support.proves import proves
from tests.wire.streams_of_bytes import request


class Params(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    value: Any = None
    number: codec.Int64 = 0
    text: str = ""


class Tolerant(msgspec.Struct, omit_defaults=True):
    """As the methods that any version may call."""

    number: codec.Int64 = 0


DECODER = msgspec.json.Decoder(Params)
TOLERANT = msgspec.json.Decoder(Tolerant)


def outcome(
    params: bytes, *, space: bytes = b"", decoder: msgspec.json.Decoder[Any] = DECODER
) -> tuple[ErrorCode, str | None] | None:
    """What becomes of a call with these params, from the frame to the decoded params."""
    payload = request(params=params).replace(b'"jsonrpc":', b'"jsonrpc":' + space)
    (event,) = Peer(answers=False).receive_data(frame(payload))
    if isinstance(event, Refusal):
        return event.error.code, event.error.field
    assert isinstance(event, Call)
    try:
        codec.decode_params(event.params, decoder)
    except MemdError as error:
        return error.code, error.field
    return None


def value(text: bytes) -> bytes:
    return b'{"value":' + text + b"}"


#: Canonical bytes take a short way through the codec, spaced ones a long way.
both_ways = pytest.mark.parametrize("space", [b"", b" "], ids=["canonical", "spaced"])


@proves("wire-strict-json")
@both_ways
@pytest.mark.parametrize(
    "text",
    [
        b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'{"\xff":1}', b'"\\ud800"', b'"\\udc00x"',
        b'{"\\ud800":1}', b"NaN", b"Infinity", b"-Infinity", b"01", b"+1", b"1.", b".5", b"'x'",
        b'"\t"', b"[1,]", b'{"a":1,}', b"/**/1", b"\xef\xbb\xbf1", b"tru", b"1 2",
    ],
)  # fmt: skip
def test_text_that_is_not_json_in_utf_8_is_a_parse_error_wherever_it_stands(
    text: bytes, space: bytes
) -> None:
    assert outcome(value(text), space=space) == (ErrorCode.PARSE_ERROR, None)
    (event,) = Peer(answers=False).receive_data(frame(request(call_id=text)))
    assert isinstance(event, Refusal)
    # An array or object is no id, which shows before its end does.
    assert event.error.code in {ErrorCode.PARSE_ERROR, ErrorCode.INVALID_REQUEST}


@both_ways
@pytest.mark.parametrize("text", [b'"\xff"', b'"\\ud800"', b"NaN", b'{"\xff":1}'])
def test_what_a_tolerant_method_ignores_must_still_be_json(text: bytes, space: bytes) -> None:
    params = b'{"unknown":' + text + b"}"
    assert outcome(params, space=space, decoder=TOLERANT) == (ErrorCode.PARSE_ERROR, None)


@both_ways
@pytest.mark.parametrize("text", [b"1e999", b"9" * 5000, b'{"any":[1]}'])
def test_a_tolerant_method_ignores_an_unknown_field_of_any_size(text: bytes, space: bytes) -> None:
    assert outcome(b'{"unknown":' + text + b"}", space=space, decoder=TOLERANT) is None


@proves("wire-strict-json")
@both_ways
@pytest.mark.parametrize("text", [b"1e999", b"-1e999", b"9" * 5000])
def test_a_number_that_no_type_holds_is_refused_by_its_field(text: bytes, space: bytes) -> None:
    assert outcome(value(text), space=space) == (ErrorCode.INVALID_PARAMS, "value")


@both_ways
@pytest.mark.parametrize("text", [str(2**63).encode(), str(-(2**63) - 1).encode(), b"1.0", b"1e2"])
def test_a_field_takes_64_bit_integers_alone(text: bytes, space: bytes) -> None:
    params = b'{"number":' + text + b"}"
    assert outcome(params, space=space) == (ErrorCode.INVALID_PARAMS, "number")


@both_ways
@pytest.mark.parametrize("text", [str(2**63 - 1).encode(), str(-(2**63)).encode(), b"-0"])
def test_a_field_takes_every_64_bit_integer(text: bytes, space: bytes) -> None:
    assert outcome(b'{"number":' + text + b"}", space=space) is None


@proves("wire-duplicate-keys")
@both_ways
@pytest.mark.parametrize(
    ("params", "field"),
    [
        (b'{"number":1,"number":1}', "number"),
        (b'{"number":1,"n\\u0075mber":1}', "number"),
        (b'{"value":{"a":1,"a":1}}', "a"),
        (b'{"value":{"a":1,"\\u0061":1}}', "a"),
        (b'{"value":[{"deep":{"b":1,"c":2,"b":3}}]}', "b"),
        (b'{"value":{"":1,"":2}}', ""),
    ],
)
def test_a_key_twice_in_one_object_of_the_params_is_refused_by_name(
    params: bytes, field: str, space: bytes
) -> None:
    assert outcome(params, space=space) == (ErrorCode.INVALID_PARAMS, field)


@proves("wire-duplicate-keys")
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"\\u0069d":1,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', "method"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}', "params"),
        (b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}', "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","message":"b"}}', "message"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a","data":{"x":1,"x":2}}}', "x"),
    ],
)
def test_a_key_twice_in_the_envelope_is_refused_by_name(payload: bytes, field: str) -> None:
    (event,) = Peer(answers=True).receive_data(frame(payload))
    assert isinstance(event, Refusal)
    assert (event.error.code, event.error.field) == (ErrorCode.INVALID_REQUEST, field)


SPACES = b" " * 2000


@proves("wire-duplicate-keys")
@pytest.mark.parametrize("member", [b"params", b"result"])
def test_a_long_value_that_looks_like_what_is_between_two_keys_hides_none(member: bytes) -> None:
    """Were the text of the value cut out wherever it stands, the two ids would be one key."""
    between = b'" : 1 ,' + SPACES + b'"'
    payload = b'{"jsonrpc":"2.0","id%bid":2,"%b":%b}' % (between, member, between)
    (event,) = Peer(answers=True).receive_data(frame(payload))
    assert isinstance(event, Refusal)
    assert event.error.field == "id"


@pytest.mark.parametrize("text", [b'{"a":{"a":{"a":1}}}', b'[{"a":1},{"a":1}]', b'{"a":1,"A":1}'])
def test_the_same_key_in_different_objects_is_fine(text: bytes) -> None:
    assert outcome(value(text), space=b" ") is None


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@both_ways
def test_json_nested_400_deep_is_read(opening: bytes, closing: bytes, space: bytes) -> None:
    assert outcome(value(opening * 400 + b"1" + closing * 400), space=space) is None


@proves("wire-deep-nesting")
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@both_ways
def test_json_nested_100_000_deep_is_refused(opening: bytes, closing: bytes, space: bytes) -> None:
    deep = opening * 100_000 + b"1" + closing * 100_000
    assert outcome(value(deep), space=space) == (ErrorCode.PARSE_ERROR, None)
    for payload in (deep, b"[" + deep + b"]", opening * 800_000):
        (event,) = Peer(answers=True).receive_data(frame(payload))
        assert isinstance(event, Refusal)
        assert event.error.code in {ErrorCode.PARSE_ERROR, ErrorCode.INVALID_REQUEST}


def test_params_nested_without_end_are_refused_by_whoever_decodes_them_first() -> None:
    decoders: list[msgspec.json.Decoder[Any]] = [DECODER, TOLERANT]
    for decoder in decoders:
        with pytest.raises(MemdError) as caught:
            codec.decode_params(msgspec.Raw(value(b"[" * 100_000 + b"]" * 100_000)), decoder)
        assert caught.value.code is ErrorCode.PARSE_ERROR


@proves("wire-deep-nesting")
@pytest.mark.parametrize("depth", range(960, 1005))
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a": '])
def test_at_the_interpreters_own_limit_json_is_read_or_refused(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = opening * depth + b"1" + closing * depth
    assert outcome(value(deep)) in {None, (ErrorCode.PARSE_ERROR, None)}
    (event,) = Peer(answers=True).receive_data(
        frame(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":{"a":%b}}}' % deep)
    )
    assert event is not None


class CountedKey(str):
    """A key that counts what is done with it."""

    __slots__ = ()
    touched = 0

    def __hash__(self) -> int:
        CountedKey.touched += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountedKey.touched += 1
        return super().__eq__(other)


def touches(keys: int) -> int:
    pairs: list[tuple[str, Any]] = [(CountedKey(number), None) for number in range(keys)]
    pairs.append((CountedKey(keys - 1), None))
    CountedKey.touched = 0
    assert codec._duplicate(pairs) == str(keys - 1)
    return CountedKey.touched


@proves("wire-linear-cost")
def test_finding_a_key_that_stands_twice_touches_each_key_a_few_times_only() -> None:
    assert touches(10_000) <= 5 * 10_000


MOST = 4 * 1024 * 1024

#: Frames of 4 MiB that each stress another path. Any of them with a quadratic
#: path would take hours, so the suite's own time limit is the assertion.
HUGE = {
    "brackets": b"[" * (MOST - 100),
    "braces": b'{"":' * (MOST // 4 - 100),
    "a batch of numbers": b"[" + b"1," * (MOST // 2 - 100) + b"1]",
    "a batch of empty batches": b"[" + b"[]," * (MOST // 3 - 100) + b"[]]",
    "white space": b" " * (MOST - 100),
    "one number": b"9" * (MOST - 100),
    "one unknown key": b'{"' + b"k" * (MOST - 100) + b'":1}',
    "one unknown key that looks like a path": b'{"' + b" - at `$" * (MOST // 8 - 100) + b'":1}',
    "one unknown member": b'{"jsonrpc":"2.0","' + b"`" * (MOST - 100) + b'":1}',
    "escapes": b'{"jsonrpc":"2.0","id":"' + b"\\u0061" * (MOST // 6 - 100) + b'"}',
}

HUGE_PARAMS = {
    "a float of as many digits": b"0." + b"3" * (MOST - 200),
    "an integer of as many digits": b"9" * (MOST - 200),
    "keys": b"{" + b",".join(b'"%d":1' % n for n in range(380_000)) + b"}",
    "the same key": b"{" + b",".join([b'"k":1'] * 600_000) + b"}",
    "keys, then one again": b"{" + b",".join(b'"%d":1' % n for n in range(380_000)) + b',"7":1}',
    "objects": b"[" + b",".join([b"{}"] * 1_000_000) + b"]",
    "spaced objects": b"[" + b", ".join([b'{"a": 1}'] * 300_000) + b"]",
    "nests as deep as allowed": b"[" + b",".join([b"[" * 400 + b"]" * 400] * 5000) + b"]",
}


@proves("wire-linear-cost")
@pytest.mark.parametrize("name", HUGE)
def test_the_largest_frame_costs_no_more_than_its_size_in_passes(name: str) -> None:
    assert len(HUGE[name]) <= MOST
    (event,) = Peer(answers=False).receive_data(frame(HUGE[name]))
    assert isinstance(event, Refusal)
    assert len(event.frame) < 1000


@proves("wire-linear-cost")
@both_ways
@pytest.mark.parametrize("name", HUGE_PARAMS)
def test_the_largest_params_cost_no_more_than_their_size_in_passes(name: str, space: bytes) -> None:
    found = outcome(value(HUGE_PARAMS[name]), space=space)
    assert found is None or found[0] is ErrorCode.INVALID_PARAMS


@contextmanager
def measured() -> Iterator[list[int]]:
    """The peak of bytes allocated inside, once it is over."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@proves("wire-frame-limit")
def test_a_refused_length_costs_no_memory_however_much_it_announces() -> None:
    peer = Peer(answers=False)
    chunk = b"\xff\xff\xff\xff" + b"x" * 65_000
    with measured() as peak:
        peer.receive_data(chunk)
    assert peak[0] < 200_000

"""Metadata is any JSON value: what was accepted is served again, by every way to read it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.daemon import CONTAINER, OTHER, Daemon
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted


@pytest.fixture
def capsule(shared: Daemon) -> Iterator[Raw]:
    with greeted(shared.instance_socket()) as connection:
        yield connection


def recorded(capsule: Raw, metadata: bytes) -> dict[str, Any]:
    """The response to recording one row with this JSON as metadata."""
    return capsule.call_raw(
        "status.record", b'{"entries":[{"new_status":"m","metadata":%s}]}' % metadata
    )


def read_back(capsule: Raw) -> list[bytes]:
    """The newest row's metadata as each way to read it has it."""
    found = []
    for method, params in (("status.latest", b"{}"), ("status.list", b'{"limit":1}')):
        capsule.send_call(method, params)
        found.append(metadata_in(capsule.read_payload()))
    return found


def metadata_in(payload: bytes) -> bytes:
    """Cut out of the bytes: what is nested deep is not for every parser."""
    _, _, rest = payload.partition(b'"metadata":')
    depth, in_string, escaped = 0, False, False
    for place, byte in enumerate(rest):
        char = bytes([byte])
        if in_string:
            in_string, escaped = escaped or char != b'"', char == b"\\" and not escaped
        elif char == b'"':
            in_string = True
        elif char in {b"[", b"{"}:
            depth += 1
        elif char in {b"]", b"}"} and depth:
            depth -= 1
        elif char in {b",", b"}"} and not depth:
            return rest[:place]
    raise AssertionError(payload)


VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, -0.0, 1e300, 5e-324, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1,
    "", "text", "\0", "\x7f", "\u2028\u2029", 'quotes " and \\ and /', "日本語 🦀", "\ufeff",
    [], {}, [[]], [None, {}], {"": ""}, {"a": {"b": [1, 2, {"c": None}]}},
    {"nul\0key": 1, "é": 2, "🦀": 3}, {"__proto__": 1, "metadata": {"metadata": 2}},
    ["NaN", "null", "Infinity"], {"id": 99, "new_status": "fake"}, list(range(1000)),
    '{"json": "in a text"}', "x" * 65_534,
]  # fmt: skip


@proves("status-metadata")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30].replace("\0", "NUL"))
def test_any_json_value_comes_back_equal(capsule: Raw, value: Any) -> None:
    assert "result" in recorded(capsule, json.dumps(value).encode())
    for found in read_back(capsule):
        parsed = json.loads(found)
        assert (parsed, type(parsed)) == (value, type(value))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(
        st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@proves("status-metadata")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=json_values, ascii_=st.booleans(), spaces=st.sampled_from([None, 2]))
def test_whatever_json_is_recorded_comes_back_equal(
    capsule: Raw, value: Any, ascii_: bool, spaces: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=spaces)
    assert "result" in recorded(capsule, text.encode())
    assert [json.loads(found) for found in read_back(capsule)] == [value, value]


@proves("status-metadata")
def test_a_subscriber_gets_the_same_bytes_as_a_reader(shared: Daemon, capsule: Raw) -> None:
    with greeted(shared.socket) as follower:
        follower.call("status.subscribe", instances=[CONTAINER])
        follower.read()  # it has joined
        for text in ('{"a": [1, 2.5, "é"]}', "null", '"text"', '{"deep": [[[[]]]]}'):
            recorded(capsule, text.encode())
            live = metadata_in(follower.read_payload())
            assert read_back(capsule) == [live, live]


@proves("wire-strict-json")
@pytest.mark.parametrize(
    "text",
    [b"NaN", b"Infinity", b"1e999", b"-1e999", b"01", b"+1", b".5", b"1.", b"'a'", b'"\\x41"',
     b'"\xff"', b'"\\ud800"', b'"\\udc00\\ud800"', b"[1,]", b'{"a":1,}', b"{a:1}", b"tru",
     b'"\t"', b"undefined", b"/* */ 1"],
)  # fmt: skip
def test_what_is_no_strict_json_is_refused_and_not_recorded(
    shared: Daemon, capsule: Raw, text: bytes
) -> None:
    before = shared.rows("SELECT max(id) FROM status_log")
    answer = recorded(capsule, text)
    assert code_of(answer) in {"PARSE_ERROR", "INVALID_PARAMS"}
    assert shared.rows("SELECT max(id) FROM status_log") == before


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30, -(10**400)])
def test_an_integer_that_no_64_bits_hold_is_refused_or_kept_but_never_bent(
    capsule: Raw, number: int
) -> None:
    answer = recorded(capsule, str(number).encode())
    if "error" in answer:
        assert code_of(answer) == "INVALID_PARAMS"
        assert answer["error"]["data"]["field"] == "entries[0].metadata"
    else:
        assert read_back(capsule) == [str(number).encode()] * 2


@pytest.mark.parametrize("key", ["a", "a\0b", "é"])
def test_a_key_that_stands_twice_is_refused(capsule: Raw, key: str) -> None:
    quoted = json.dumps(key).encode()
    answer = recorded(capsule, b'[{"x":{%s:1,%s:2}}]' % (quoted, quoted))
    assert code_of(answer) == "INVALID_PARAMS"
    assert answer["error"]["data"]["field"] == key


# -- depth ---------------------------------------------------------------------------------


def nested(depth: int, kind: str) -> bytes:
    opened, closed = (b"[", b"]") if kind == "arrays" else (b'{"a":', b"}")
    return opened * depth + b"1" + closed * depth


@proves("wire-deep-nesting", "status-metadata")
@pytest.mark.parametrize("kind", ["arrays", "objects"])
def test_metadata_nested_as_deep_as_is_accepted_is_served_again(
    shared: Daemon, capsule: Raw, kind: str
) -> None:
    """Up to the deepest that is accepted, which must be what the protocol page promises."""
    deepest = 0
    with greeted(shared.socket) as follower:
        follower.call("status.subscribe", instances=[CONTAINER])
        follower.read()  # it has joined
        for depth in (1, 10, 100, 490, *range(900, 1010), 2000, 10_000):
            sent = nested(depth, kind)
            answer = recorded(capsule, sent)
            if "error" in answer:
                assert code_of(answer) == "PARSE_ERROR"
                assert "deep" in answer["error"]["message"]
                continue
            deepest = depth
            assert read_back(capsule) == [sent, sent]
            assert metadata_in(follower.read_payload()) == sent
    assert deepest >= 490
    assert deepest < sys.getrecursionlimit()


@pytest.mark.parametrize("kind", ["arrays", "objects"])
def test_one_deep_row_does_not_hide_the_others(shared: Daemon, kind: str) -> None:
    with greeted(shared.instance_socket(OTHER)) as capsule:
        for depth in range(480, 1000, 20):
            recorded(capsule, nested(depth, kind))
        recorded(capsule, b'"last"')
        capsule.send_call("status.list", b'{"limit":1000}')
        assert metadata_in(capsule.read_payload()) == b'"last"'
        with greeted(shared.socket) as follower:
            follower.call("status.subscribe", instances=[OTHER], start="oldest")
            while b'"last"' not in follower.read_payload():
                pass

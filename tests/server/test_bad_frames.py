"""Bytes that are no frames of JSON: each gets its error, and others notice nothing."""

from __future__ import annotations

import json

import pytest

from jackin_memd.wire.framing import DEFAULT_MAX_FRAME_BYTES
from tests.support.daemon import Daemon
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, request

LIMIT = DEFAULT_MAX_FRAME_BYTES

#: Text whose first four bytes read as a length far over the limit.
HTTP = b"GET /memd HTTP/1.1\r\nHost: localhost\r\n\r\n"


def length(size: int) -> bytes:
    return size.to_bytes(4, "big")


@proves("wire-frame-limit", "wire-reply-before-close")
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(HTTP, "FRAME_TOO_LARGE", id="another protocol"),
        pytest.param(b"\xff" * 70_000, "FRAME_TOO_LARGE", id="noise"),
        pytest.param(length(0), "FRAME_EMPTY", id="a frame of nothing"),
        pytest.param(length(LIMIT + 1), "FRAME_TOO_LARGE", id="a byte over the limit"),
        pytest.param(length(2**32 - 1), "FRAME_TOO_LARGE", id="the longest length"),
    ],
)
def test_a_length_that_is_refused_gets_the_reason_and_an_end(
    stranger: Raw, sent: bytes, code: str
) -> None:
    stranger.send(sent)
    farewell, *more = stranger.read_to_end()
    assert more == []
    assert code_of(farewell) == code
    assert farewell["id"] is None
    assert farewell["error"]["data"]["hint"]


def test_an_announced_length_over_the_limit_is_refused_with_both_numbers(raw: Raw) -> None:
    raw.send(length(LIMIT + 1))  # not one byte of the frame itself
    data = raw.read()["error"]["data"]
    assert (data["limit_bytes"], data["announced_bytes"]) == (LIMIT, LIMIT + 1)


@proves("wire-reply-before-close")
def test_what_stood_before_a_broken_frame_is_answered_first(raw: Raw) -> None:
    ping = request("ping", id_=7)
    raw.send(length(len(ping)) + ping + length(0))
    first, farewell = raw.read_to_end()
    assert first == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert code_of(farewell) == "FRAME_EMPTY"


def test_a_frame_of_exactly_the_limit_is_served(raw: Raw) -> None:
    raw.send_frame(request("ping", id_=1).ljust(LIMIT))
    assert raw.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_client_that_is_refused_and_goes_on_sending_gets_to_read_why(stranger: Raw) -> None:
    try:
        for _ in range(200):
            stranger.send(b"\xff" * 65_536)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the daemon has heard enough
    assert code_of(stranger.read()) == "FRAME_TOO_LARGE"


@pytest.mark.parametrize("kept", [0, 1, 3, 4, 5, 20, -1])
def test_a_frame_cut_off_by_a_close_harms_nobody(shared: Daemon, kept: int) -> None:
    with Raw(shared.socket) as peer:
        peer.hello()
        ping = request("ping")
        peer.send((length(len(ping)) + ping)[:kept])
        peer.half_close()
        assert peer.read_to_end() == []  # nothing was asked, so nothing is answered


BAD_TEXTS = {
    "no JSON": b"record this!",
    "nothing but a bracket": b"{",
    "two texts": b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
    "white space": b"   ",
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "UTF-16": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode("utf-16-le"),
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"p\xffing"}',
    "an overlong NUL": b'{"jsonrpc":"2.0","id":1,"method":"ping\xc0\x80"}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"ping\\ud800"}',
    "surrogates in the wrong order": b'{"jsonrpc":"2.0","id":1,"method":"\\udc00\\ud800"}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}',
    "Infinity": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
    "a bare control character": b'{"jsonrpc":"2.0","id":1,"method":"pi\nng"}',
}


@proves("wire-strict-json", "wire-no-exception")
@pytest.mark.parametrize("text", BAD_TEXTS.values(), ids=BAD_TEXTS.keys())
def test_text_that_is_no_json_is_refused_and_the_connection_goes_on(raw: Raw, text: bytes) -> None:
    raw.send_frame(text)
    assert code_of(raw.read()) == "PARSE_ERROR"
    assert raw.call("ping") == {}


@proves("wire-deep-nesting")
@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"", b"", id="the whole message"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":', b"}", id="in the params"
        ),
        pytest.param(
            b'[{"jsonrpc":"2.0","id":1,"method":"ping","params":', b"}]", id="in a batch's entry"
        ),
        pytest.param(b'{"jsonrpc":"2.0","method":"ping","id":', b"}", id="in the id"),
    ],
)
@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_json_nested_without_end_is_refused_and_the_connection_goes_on(
    raw: Raw, depth: int, before: bytes, after: bytes, opened: bytes, closed: bytes
) -> None:
    inner = opened * depth + b"1" + closed * depth
    raw.send_frame(before + inner + after)
    refused = raw.read()
    if isinstance(refused, list):
        (refused,) = refused
    assert code_of(refused) in {"PARSE_ERROR", "INVALID_REQUEST"}
    assert raw.call("ping") == {}


@proves("wire-any-split")
def test_a_call_cut_into_single_bytes_is_served_like_any_other(raw: Raw) -> None:
    ping = request("ping", id_="apart")
    for byte in length(len(ping)) + ping:
        raw.send(bytes([byte]))
    assert raw.read() == {"jsonrpc": "2.0", "id": "apart", "result": {}}

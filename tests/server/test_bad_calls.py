"""JSON that is no call, or not one that can be served: a precise error each time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackin_memd.wire.methods import METHODS
from tests.support.daemon import CONTAINER, Daemon
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted, request
from tests.wire.bad_input import bad_params

RECORD = {"instance": CONTAINER, "entries": [{"new_status": "working"}]}


@proves("wire-precise-errors-live")
@pytest.mark.parametrize("name", METHODS)
def test_every_bad_params_of_every_method_is_refused_by_its_field(raw: Raw, name: str) -> None:
    wrong = []
    for number, bad in enumerate(bad_params(METHODS[name])):
        raw.send_call(name, bad.raw, number)
        answer = raw.read_answer()
        error = answer.get("error", {})
        data = error.get("data", {})
        got = (answer["id"], data.get("code"), data.get("field"))
        # A frame that is no JSON as a whole may hide its id.
        ids = (number, None) if bad.code.word == "PARSE_ERROR" else (number,)
        if got[0] not in ids or got[1:] != (bad.code.word, bad.field) or not error["message"]:
            wrong.append((bad.label, bad.field, got))
    assert wrong == []
    assert raw.call("ping") == {}


@proves("wire-error-shape")
@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("status.recrod", "status.record"),
        ("Ping", "ping"),
        ("instance.lode", "instance.load"),
        ("status_list", "status.list"),
    ],
)
def test_an_unknown_method_is_refused_with_the_one_that_was_meant(
    raw: Raw, method: str, meant: str
) -> None:
    answer = raw.call_raw(method)
    assert code_of(answer) == "METHOD_NOT_FOUND"
    assert f"did you mean {meant}?" in answer["error"]["data"]["hint"]


@pytest.mark.parametrize("method", ["", "rpc.", "a" * 128, "\0", "ping\0", "..", "日本語"])
def test_a_method_that_resembles_none_is_refused_all_the_same(raw: Raw, method: str) -> None:
    answer = raw.call_raw(method)
    assert code_of(answer) == "METHOD_NOT_FOUND"
    assert "rpc.discover" in answer["error"]["data"]["hint"]


ODD_MESSAGES: dict[str, Any] = {
    "a text": "ping",
    "a number": 7,
    "null": None,
    "an empty object": {},
    "no version": {"id": 1, "method": "ping"},
    "version 1": {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    "the version as a number": {"jsonrpc": 2.0, "id": 1, "method": "ping"},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "a method that is no text": {"jsonrpc": "2.0", "id": 1, "method": 5},
    "a method of 4 KiB": {"jsonrpc": "2.0", "id": 1, "method": "p" * 4096},
    "an id of null": {"jsonrpc": "2.0", "id": None, "method": "ping"},
    "an id of true": {"jsonrpc": "2.0", "id": True, "method": "ping"},
    "an id of 1.5": {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
    "an id beyond int64": {"jsonrpc": "2.0", "id": 2**63, "method": "ping"},
    "an id of 4 KiB": {"jsonrpc": "2.0", "id": "i" * 4096, "method": "ping"},
    "an object as id": {"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"},
    "a member too many": {"jsonrpc": "2.0", "id": 1, "method": "ping", "auth": "x"},
    "a response": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "an error response": {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
    "a call and a response": {"jsonrpc": "2.0", "id": 1, "method": "ping", "result": {}},
}


@proves("wire-direction", "wire-json-rpc")
@pytest.mark.parametrize("message", ODD_MESSAGES.values(), ids=ODD_MESSAGES.keys())
def test_json_that_is_no_call_is_refused_and_the_connection_goes_on(raw: Raw, message: Any) -> None:
    raw.send_frame(json.dumps(message).encode())
    assert code_of(raw.read()) == "INVALID_REQUEST"
    assert raw.call("ping") == {}


@proves("wire-duplicate-keys")
@pytest.mark.parametrize(
    ("text", "key", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', "id", "INVALID_REQUEST"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"x"}', "method",
         "INVALID_REQUEST"),
        (request("instance.get", b'{"instance":"a","instance":"b"}'), "instance",
         "INVALID_PARAMS"),
        (request("status.record", b'{"entries":[{"new_status":"a","metadata":'
                 b'[{"deep":1,"deep":2}]}]}'), "deep", "INVALID_PARAMS"),
    ],
)  # fmt: skip
def test_a_key_that_stands_twice_is_named_and_refused(
    raw: Raw, text: bytes, key: str, code: str
) -> None:
    raw.send_frame(text)
    answer = raw.read()
    assert code_of(answer) == code
    assert answer["error"]["data"]["field"] == key


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(b"9223372036854775808", id="the least too large"),
        pytest.param(b"-9223372036854775809", id="the largest too small"),
        pytest.param(b"18446744073709551616", id="one of 65 bits"),
        pytest.param(b"1" + b"0" * 5000, id="one of 5001 digits"),
        pytest.param(b"1e400", id="one that no double holds"),
    ],
)
def test_a_number_beyond_64_bits_is_refused_by_its_field(raw: Raw, number: bytes) -> None:
    answer = raw.call_raw("status.list", b'{"limit": %s}' % number)
    assert code_of(answer) == "INVALID_PARAMS"
    assert answer["error"]["data"]["field"] == "limit"


@pytest.mark.parametrize("name", ["\0", "jk-\0", "jk-a\0/../../etc", "a\nb", "a\x7fb", "a\u2028b"])
@pytest.mark.parametrize(
    ("method", "field"), [("instance.load", "container"), ("instance.get", "instance")]
)
def test_a_nul_or_control_character_in_a_name_is_refused(
    raw: Raw, method: str, field: str, name: str
) -> None:
    error = raw.refused(method, **{field: name})
    assert (error["data"]["code"], error["data"]["field"]) == ("INVALID_PARAMS", field)
    assert name not in error["message"]


# -- batches ----------------------------------------------------------------------


@proves("wire-batches")
def test_an_empty_batch_is_refused_with_one_error(raw: Raw) -> None:
    raw.send_frame(b"[]")
    assert code_of(raw.read()) == "INVALID_REQUEST"
    assert raw.call("ping") == {}


def test_a_batch_of_10_000_is_refused_whole_with_the_limit(shared: Daemon, raw: Raw) -> None:
    record = request("status.record", json.dumps(RECORD).encode())
    before = shared.rows("SELECT count(*) FROM status_log")
    raw.send_frame(b"[" + b",".join([record] * 10_000) + b"]")
    answer = raw.read()
    assert code_of(answer) == "BATCH_TOO_LARGE"
    assert answer["error"]["data"]["limit"] == 1000
    assert raw.call("ping") == {}
    assert shared.rows("SELECT count(*) FROM status_log") == before


def test_a_batch_of_the_limit_is_answered_in_one_frame(shared: Daemon) -> None:
    with greeted(shared.instance_socket()) as capsule:
        record = b'{"entries":[{"new_status":"batched"}]}'
        calls = [request("status.record", record, number) for number in range(1000)]
        capsule.send_frame(b"[" + b",".join(calls) + b"]")
        answers = capsule.read()
        assert sorted(answer["id"] for answer in answers) == list(range(1000))
        first_ids = {answer["result"]["first_id"] for answer in answers}
        assert len(first_ids) == 1000
        assert capsule.call("ping") == {}


def test_bad_entries_of_a_batch_are_answered_beside_the_good_ones(raw: Raw) -> None:
    entries = [
        request("ping", id_="good"),
        b'{"jsonrpc":"2.0","method":"ping"}',  # a notification: no answer
        b"5",
        b'{"jsonrpc":"2.0","id":"response","result":{}}',
        request("no.such", id_="unknown"),
        b'{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}',
    ]
    raw.send_frame(b"[" + b",".join(entries) + b"]")
    answers = {
        answer["id"]: code_of(answer) if "error" in answer else "ok" for answer in raw.read()
    }
    assert answers == {
        "good": "ok", None: "INVALID_REQUEST", "response": "INVALID_REQUEST",
        "unknown": "METHOD_NOT_FOUND", "x": "INVALID_PARAMS",
    }  # fmt: skip


@proves("wire-json-rpc")
def test_a_notification_is_done_and_not_answered(shared: Daemon, raw: Raw) -> None:
    note = {"jsonrpc": "2.0", "method": "status.record",
            "params": {"instance": CONTAINER, "entries": [{"new_status": "noted"}]}}  # fmt: skip
    raw.send_frame(json.dumps(note).encode())
    raw.send_frame(b'{"jsonrpc":"2.0","method":"no.such.thing"}')
    latest = raw.call("status.latest", instance=CONTAINER)  # the next frame that comes
    while latest["row"] is None or latest["row"]["new_status"] != "noted":
        latest = raw.call("status.latest", instance=CONTAINER)
    assert shared.rows("SELECT count(*) FROM status_log WHERE new_status = 'noted'") == [(1,)]

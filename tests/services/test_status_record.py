"""Recording status: one call is all or nothing, and what is given comes back as it was."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from time import time

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import (
    MAX_ENTRIES,
    StatusEntry,
    StatusLatestParams,
    StatusListParams,
    StatusRecordParams,
)
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted


def count(daemon: Daemon, word: str, container: str = CONTAINER) -> int:
    found: list[tuple[int]] = daemon.rows(
        f"SELECT count(*) FROM status_log WHERE new_status = '{word}'",  # noqa: S608
        container,
    )
    return found[0][0]


@proves("store-atomic-call", "status-log")
def test_5000_entries_of_one_call_are_recorded_together(shared: Daemon) -> None:
    with shared.capsule() as capsule:
        entries = [entry("bulk", number) for number in range(MAX_ENTRIES)]
        recorded = capsule.call("status.record", StatusRecordParams(entries=entries))
        assert recorded.last_id - recorded.first_id + 1 == MAX_ENTRIES
        latest = capsule.call("status.latest", StatusLatestParams())
    assert latest.cursor == recorded.cursor
    rows = shared.rows("SELECT id, metadata FROM status_log WHERE new_status='bulk' ORDER BY id")
    assert rows == [(recorded.first_id + n, str(n)) for n in range(MAX_ENTRIES)]


def test_5001_entries_are_refused_with_the_limit_and_none_is_recorded(shared: Daemon) -> None:
    with greeted(shared.instance_socket()) as capsule:
        error = capsule.refused("status.record", entries=[{"new_status": "over"}] * 5001)
    assert (error["data"]["code"], error["data"]["field"]) == ("INVALID_PARAMS", "entries")
    assert "5000" in error["message"]
    assert count(shared, "over") == 0


@proves("store-atomic-call", "wire-precise-errors")
@pytest.mark.parametrize("bad", [0, 7, 99])
def test_one_bad_entry_refuses_the_whole_call_and_is_named(shared: Daemon, bad: int) -> None:
    entries = [{"new_status": "part"} for _ in range(100)]
    entries[bad] = {"new_status": ""}
    with greeted(shared.instance_socket()) as capsule:
        error = capsule.refused("status.record", entries=entries)
        assert capsule.call("ping") == {}
    assert error["data"]["code"] == "INVALID_PARAMS"
    assert "entries[" in error["data"]["field"]
    assert count(shared, "part") == 0


@proves("store-atomic-call")
def test_metadata_over_64_kib_refuses_the_call_and_names_its_entry(shared: Daemon) -> None:
    entries = [{"new_status": "large"}, {"new_status": "large", "metadata": "x" * 65_535}]
    with greeted(shared.instance_socket()) as capsule:
        error = capsule.refused("status.record", entries=entries)
        data = error["data"]
        assert (data["code"], data["field"]) == ("INVALID_PARAMS", "entries[1].metadata")
        assert "65537" in error["message"]
        assert "65536" in error["message"]
        assert count(shared, "large") == 0
        entries[1]["metadata"] = "x" * 65_534  # with its quotes exactly the limit
        assert capsule.call("status.record", entries=entries)["last_id"] > 0


@proves("status-metadata")
@pytest.mark.parametrize("text", ["é", "語", "🦀"])
def test_metadata_is_measured_in_bytes_and_not_in_characters(shared: Daemon, text: str) -> None:
    size = len(text.encode())
    with greeted(shared.instance_socket()) as capsule:
        error = capsule.refused(
            "status.record", entries=[{"new_status": "wide", "metadata": text * (65_536 // size)}]
        )
        assert error["data"]["field"] == "entries[0].metadata"
        fitting = text * (65_534 // size)
        capsule.call("status.record", entries=[{"new_status": "wide", "metadata": fitting}])
        assert capsule.call("status.latest")["row"]["metadata"] == fitting


@proves("status-time")
def test_occurred_at_is_kept_and_the_daemons_time_where_it_is_left_out(shared: Daemon) -> None:
    given = [0, 1, 1_700_000_000, 2**31, 2**63 - 1]
    began = int(time())
    with shared.capsule(OTHER) as capsule:
        entries = [StatusEntry(new_status="then", occurred_at=when) for when in given]
        entries.append(StatusEntry(new_status="now"))
        capsule.call("status.record", StatusRecordParams(entries=entries))
        page = capsule.call("status.list", StatusListParams(limit=len(entries)))
    *then, now = [row.occurred_at for row in reversed(page.rows)]
    assert then == given
    assert began <= now <= int(time())


@proves("status-any-word")
@pytest.mark.parametrize(
    "word",
    ["working", "busy", "question", "nobody thought of this", "日本語", "🦀🦀", "Ünïcödé",
     "e\u0301",
     "'; DROP TABLE status_log; --", "a" * 128, "é" * 128, "%s {} $x", "\ufffd", "\u200b", "NULL",
     "null", " padded ", "\U0010ffff"],
)  # fmt: skip
def test_any_word_is_kept_as_given(shared: Daemon, word: str) -> None:
    with shared.capsule() as capsule:
        record(capsule, word)
        assert capsule.call("status.latest", StatusLatestParams()).row.new_status == word
    assert shared.rows("SELECT new_status FROM status_log ORDER BY id DESC LIMIT 1") == [(word,)]


def test_each_call_gets_the_ids_after_those_of_the_call_before(shared: Daemon) -> None:
    with shared.capsule() as one, shared.client() as two:
        first = record(one, "a", "b", "c")
        second = record(two, "d", instance=CONTAINER)
        third = record(one, "e", "f")
    assert first.last_id == first.first_id + 2
    assert (second.first_id, second.last_id) == (first.last_id + 1, first.last_id + 1)
    assert (third.first_id, third.last_id) == (second.last_id + 1, second.last_id + 2)


@proves("wire-idempotency", "wire-idempotency-conflict")
def test_a_key_records_once_and_only_for_its_own_call(shared: Daemon) -> None:
    with shared.capsule() as capsule:
        first = record(capsule, "once", "once", idempotency_key="key 1")
        assert record(capsule, "once", "once", idempotency_key="key 1") == first
        for words in (["once"], ["once", "twice"]):
            with pytest.raises(MemdError) as caught:
                record(capsule, *words, idempotency_key="key 1")
            assert caught.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
            assert caught.value.field == "idempotency_key"
    assert count(shared, "once") == 2


@proves("wire-idempotency")
def test_the_same_key_many_times_at_once_records_once(shared: Daemon) -> None:
    params = json.dumps({"entries": [{"new_status": "raced"}], "idempotency_key": "race"}).encode()
    with greeted(shared.instance_socket()) as one, greeted(shared.instance_socket()) as two:
        for number in range(50):
            one.send_call("status.record", params, number)
            two.send_call("status.record", params, number)
        answers = [peer.read()["result"] for peer in (one, two) for _ in range(50)]
    assert all(answer == answers[0] for answer in answers)
    assert count(shared, "raced") == 1


def test_a_refused_call_keeps_no_key(shared: Daemon) -> None:
    with greeted(shared.instance_socket()) as capsule:
        entries = [{"new_status": "kept", "metadata": "x" * 70_000}]
        capsule.refused("status.record", entries=entries, idempotency_key="refused first")
        entries[0]["metadata"] = "smaller"
        assert capsule.call("status.record", entries=entries, idempotency_key="refused first")


@proves("store-savepoints")
def test_a_call_that_fails_in_the_database_fails_alone(shared: Daemon) -> None:
    """Many calls that share commits; one of them has a key of another call."""
    good = json.dumps({"entries": [{"new_status": "neighbour"}]}).encode()
    bad = json.dumps({"entries": [{"new_status": "bad"}], "idempotency_key": "taken"}).encode()
    with greeted(shared.instance_socket()) as capsule:
        capsule.call("status.record", entries=[{"new_status": "x"}], idempotency_key="taken")
        for number in range(100):
            capsule.send_call("status.record", bad if number % 10 == 5 else good, number)
        answers = {answer["id"]: answer for answer in (capsule.read() for _ in range(100))}
    refused = {id_ for id_, answer in answers.items() if "error" in answer}
    assert refused == {5, 15, 25, 35, 45, 55, 65, 75, 85, 95}
    assert {code_of(answers[id_]) for id_ in refused} == {"IDEMPOTENCY_CONFLICT"}
    assert (count(shared, "neighbour"), count(shared, "bad")) == (90, 0)


@proves("store-readers-not-blocked", "store-single-writer")
def test_an_outside_reader_neither_waits_nor_is_waited_for(shared: Daemon, raw: Raw) -> None:
    uri = f"{shared.instance_db().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=0)) as reader:
        reader.execute("BEGIN")
        (seen,) = reader.execute("SELECT count(*) FROM status_log").fetchone()
        raw.call("status.record", instance=CONTAINER, entries=[{"new_status": "meanwhile"}])
        assert reader.execute("SELECT count(*) FROM status_log").fetchone() == (seen,)
        reader.execute("COMMIT")
        assert reader.execute(
            "SELECT new_status FROM status_log ORDER BY id DESC LIMIT 1"
        ).fetchone() == ("meanwhile",)

"""Reading status: pages that neither repeat nor skip a row, and a log that rolls."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from jackin_mem.blocking import Client
from jackin_memd.wire.status import (
    StatusLatestParams,
    StatusListParams,
    StatusListResult,
    StatusRecordParams,
)
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.proves import proves
from tests.support.raw import greeted

WINDOW = 10_000


def pages(client: Client, limit: int, instance: str = CONTAINER) -> Iterator[StatusListResult]:
    """All pages, newest first."""
    before = None
    while True:
        page: StatusListResult = client.call(
            "status.list", StatusListParams(instance=instance, before=before, limit=limit)
        )
        yield page
        before = page.next
        if before is None:
            return


def fill(client: Client, rows: int, **params: Any) -> int:
    """Append rows, 5,000 at a time; the newest id."""
    last = 0
    while rows > 0:
        entries = [entry("fill")] * min(rows, 5000)
        last = client.call("status.record", StatusRecordParams(entries=entries, **params)).last_id
        rows -= len(entries)
    return last


@proves("status-pages")
@pytest.mark.parametrize("limit", [1, 7, 100, 1000])
def test_pages_go_through_every_row_once_newest_first(daemon: Daemon, limit: int) -> None:
    daemon.load()
    rows = {1: 12, 7: 49, 100: 250, 1000: 2001}[limit]
    with daemon.client() as client:
        fill(client, rows, instance=CONTAINER)
        found = list(pages(client, limit))
    assert [row.id for page in found for row in page.rows] == list(range(rows, 0, -1))
    assert all(len(page.rows) == limit for page in found[:-1])
    assert all(page.rows for page in found)
    assert [page.dropped for page in found] == [0] * len(found)


def test_an_empty_log_is_one_empty_page(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        page = capsule.call("status.list", StatusListParams())
        assert (page.rows, page.next, page.dropped) == ([], None, 0)
        latest = capsule.call("status.latest", StatusLatestParams())
        assert latest.row is None
        recorded = record(capsule, "first")
    with greeted(daemon.socket) as follower:  # the cursor of the empty log is a place too
        follower.call("status.subscribe", after={CONTAINER: latest.cursor})
        event = follower.read()["params"]
    assert [row["id"] for row in event["rows"]] == [1]
    assert event["cursor"] == recorded.cursor


@proves("status-pages")
def test_pages_are_the_same_while_rows_are_being_written(daemon: Daemon) -> None:
    daemon.load()
    done = Event()

    def write() -> int:
        with daemon.capsule() as capsule:
            written = 0
            while not done.is_set():
                written = record(capsule, "meanwhile").last_id
            return written

    with daemon.client() as client, ThreadPoolExecutor(1) as threads:
        last = fill(client, 3000, instance=CONTAINER)
        writing = threads.submit(write)
        try:
            found = list(pages(client, 50))
        finally:
            done.set()
        assert writing.result() > last
    ids = [row.id for page in found for row in page.rows]
    assert ids == list(range(ids[0], 0, -1))
    assert ids[0] >= last


@proves("status-pages")
def test_a_page_of_large_rows_is_shorter_and_says_that_there_is_more(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client:
        for _ in range(3):
            big = [entry("big", "x" * 65_000)] * 20
            client.call("status.record", StatusRecordParams(entries=big, instance=CONTAINER))
        found = list(pages(client, 1000))
    assert len(found) > 1
    assert [row.id for page in found for row in page.rows] == list(range(60, 0, -1))


@proves("status-latest")
def test_the_latest_row_comes_with_the_cursor_after_it(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        for number in range(1, 4):
            recorded = record(capsule, f"state {number}")
            latest = capsule.call("status.latest", StatusLatestParams())
            assert (latest.row.id, latest.row.new_status) == (number, f"state {number}")
            assert latest.cursor == recorded.cursor


@pytest.mark.parametrize(
    "text", ["", "x", "0123456789abcdef.1", "0123456789abcdef.-1", "1", "." * 64]
)
def test_a_cursor_that_this_database_never_gave_is_refused(shared: Daemon, text: str) -> None:
    with greeted(shared.socket) as operator:
        error = operator.refused("status.list", instance=OTHER, before=text or "-")
    assert (error["data"]["code"], error["data"]["field"]) == ("CURSOR_INVALID", "before")


# -- the rolling window ----------------------------------------------------------------------


@proves("status-trim", "status-dropped")
def test_the_log_keeps_its_newest_10_000_and_says_how_many_it_let_go(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client:
        fill(client, WINDOW, instance=CONTAINER)
        page = client.call("status.list", StatusListParams(instance=CONTAINER, limit=1))
        assert page.dropped == 0
        most = 0
        for size in (1, 1, 98, 1, 99, 50, 50, 37, 200, 1, 5000):
            last = fill(client, size, instance=CONTAINER)
            ((rows, oldest),) = daemon.rows("SELECT count(*), min(id) FROM status_log")
            most = max(most, rows)
            assert rows >= WINDOW
            assert rows == last - oldest + 1
            page = client.call("status.list", StatusListParams(instance=CONTAINER, limit=1))
            assert page.dropped == oldest - 1
        assert WINDOW < most <= WINDOW * 1.01
        ids = [row.id for page in pages(client, 1000) for row in page.rows]
    assert ids == list(range(last, last - len(ids), -1))
    assert len(ids) == rows


@proves("status-trim")
def test_one_instances_rows_do_not_push_out_anothers(daemon: Daemon) -> None:
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    with daemon.client() as client:
        record(client, "kept", instance=OTHER)
        fill(client, WINDOW + 500, instance=CONTAINER)
        page = client.call("status.list", StatusListParams(instance=OTHER))
    assert [row.new_status for row in page.rows] == ["kept"]


@proves("status-dropped", "status-pages")
def test_a_page_after_rows_that_were_let_go_ends_and_does_not_fail(daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client:
        fill(client, 200, instance=CONTAINER)
        page = client.call("status.list", StatusListParams(instance=CONTAINER, limit=100))
        fill(client, WINDOW + 500, instance=CONTAINER)
        later = client.call("status.list", StatusListParams(instance=CONTAINER, before=page.next))
    assert (later.rows, later.next) == ([], None)
    assert later.dropped >= 700

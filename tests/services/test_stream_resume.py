"""A subscriber gets each row once and in order, whatever happens to its connection."""

from __future__ import annotations

import shutil
from itertools import cycle

import pytest

from jackin_memd.wire.status import StatusRecordParams
from jackin_memd.wire.streams import RowsEvent, Start, SubscribeParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.following import Follower
from tests.support.instances import load, purge, unload
from tests.support.proves import proves
from tests.support.writer import writers

WINDOW = 10_000


@pytest.fixture
def two(daemon: Daemon) -> Daemon:
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    return daemon


def fill(daemon: Daemon, rows: int, instance: str = CONTAINER) -> int:
    last = 0
    with daemon.client() as client:
        while rows > 0:
            entries = [entry("fill")] * min(rows, 5000)
            params = StatusRecordParams(entries=entries, instance=instance)
            last = client.call("status.record", params).last_id
            rows -= len(entries)
    return last


@proves("stream-live", "stream-durable-first")
def test_a_row_that_a_subscriber_has_is_on_disk(two: Daemon) -> None:
    with Follower(two.socket) as follower, two.capsule() as capsule:
        for number in range(1, 20):
            record(capsule, f"row {number}")
            follower.until_rows(CONTAINER, number)
            assert two.rows("SELECT max(id) FROM status_log") == [(number,)]


@proves("stream-once-in-order", "stream-resume")
@pytest.mark.parametrize("stay", [(1,), (3, 1, 20), (50,)])
def test_each_row_comes_once_over_reconnects_while_other_processes_write(
    two: Daemon, stay: tuple[int, ...]
) -> None:
    rows, returns = 3 * 300, 0
    with (
        Follower(two.socket, start="oldest") as follower,
        writers(two.instance_socket(), processes=3, rows=300) as busy,
    ):
        for events in cycle(stay):
            for _ in range(events):
                follower.take()
                if len(follower.ids[CONTAINER]) >= rows:
                    break
            if len(follower.ids[CONTAINER]) >= rows:
                break
            follower.leave()
            follower.come_back()
            returns += 1
        acknowledged = sorted(pair for writer in busy for pair in writer.acknowledged())
    assert follower.ids[CONTAINER] == list(range(1, rows + 1))
    assert list(zip(follower.ids[CONTAINER], follower.words[CONTAINER], strict=True)) == (
        acknowledged
    )
    assert follower.gaps == []
    assert returns > 0


@proves("stream-resume", "stream-once-in-order", "client-reconnect")
def test_each_row_comes_once_over_a_killed_daemon_while_other_processes_write(
    two: Daemon,
) -> None:
    """The client's own subscription, which reconnects by itself, and writers that repeat."""
    rows = 2 * 400
    ids: list[int] = []
    with (
        two.client().subscribe(SubscribeParams(start=Start.OLDEST)) as subscription,
        writers(two.instance_socket(), processes=2, rows=400, retry=True) as busy,
    ):
        kills = iter((100, 300, 500))
        kill_at = next(kills)
        while len(ids) < rows:
            event = subscription.receive(20)
            if isinstance(event, RowsEvent) and event.instance == CONTAINER:
                ids += [read_id(bytes(row)) for row in event.rows]
            if len(ids) > kill_at:
                two.kill()
                two.start()
                kill_at = next(kills, rows)
        acknowledged = [pair for writer in busy for pair in writer.acknowledged()]
    assert ids == list(range(1, rows + 1))
    assert sorted(id_ for id_, _ in acknowledged) == ids
    assert sorted(two.rows("SELECT id, new_status FROM status_log")) == sorted(acknowledged)


def read_id(row: bytes) -> int:
    return int(row.removeprefix(b'{"id":').split(b",", 1)[0])


@proves("stream-resume")
def test_rows_of_the_time_away_come_first_and_then_what_is_new(two: Daemon) -> None:
    with Follower(two.socket) as follower, two.capsule() as capsule:
        record(capsule, "seen")
        follower.until_rows(CONTAINER, 1)
        follower.leave()
        record(capsule, "missed", "missed")
        follower.come_back()
        record(capsule, "new")
        follower.until_rows(CONTAINER, 4)
    assert follower.words[CONTAINER] == ["seen", "missed", "missed", "new"]


@proves("stream-resume")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_the_very_next_row_comes_after_a_restart(two: Daemon, end: str) -> None:
    with Follower(two.socket) as follower:
        fill(two, 700)
        follower.until_rows(CONTAINER, 500)
        two.kill() if end == "SIGKILL" else two.terminate()
        follower.leave()
        two.start()
        fill(two, 10)
        follower.come_back()
        follower.until_rows(CONTAINER, 710)
    assert follower.ids[CONTAINER] == list(range(1, 711))


@proves("stream-resume")
def test_a_resumed_instance_that_is_not_served_goes_on_there_when_it_is(two: Daemon) -> None:
    with Follower(two.socket) as follower:
        fill(two, 3)
        follower.until_rows(CONTAINER, 3)
        follower.leave()
        fill(two, 4)
        unload(two)
        follower.come_back()  # CONTAINER is not served now
        load(two)
        follower.until_rows(CONTAINER, 7)
    assert follower.ids[CONTAINER] == [1, 2, 3, 4, 5, 6, 7]


@proves("stream-once-in-order")
def test_an_unloading_and_loading_loses_and_repeats_nothing(two: Daemon) -> None:
    with Follower(two.socket) as follower:
        for round_ in range(1, 6):
            fill(two, 40)
            unload(two)
            load(two)
            fill(two, 2)
            follower.until_rows(CONTAINER, 42 * round_)
    assert follower.ids[CONTAINER] == list(range(1, 42 * 5 + 1))
    assert [end["code"] for end in follower.ends] == ["UNLOADED"] * 5
    assert follower.gaps == []


@proves("stream-once-in-order", "instance-load-again")
def test_loading_a_loaded_instance_disturbs_no_stream(two: Daemon) -> None:
    with (
        Follower(two.socket) as follower,
        writers(two.instance_socket(), processes=2, rows=300) as busy,
    ):
        while any(writer.process.poll() is None for writer in busy):
            load(two)
        follower.until_rows(CONTAINER, 600)
        load(two)
        fill(two, 1)
        follower.until_rows(CONTAINER, 601)
    assert follower.ids[CONTAINER] == list(range(1, 602))
    assert follower.joined == [OTHER, CONTAINER] or follower.joined == [CONTAINER, OTHER]
    assert follower.ends == []


# -- gaps ------------------------------------------------------------------------------------


@proves("stream-gap")
@pytest.mark.parametrize("seen", [0, 1, 700])
def test_rows_that_were_let_go_are_counted_exactly(two: Daemon, seen: int) -> None:
    with Follower(two.socket) as follower:
        if seen:
            fill(two, seen)
            follower.until_rows(CONTAINER, seen)
        follower.leave()
        last = fill(two, WINDOW + 1234)
        ((oldest,),) = two.rows("SELECT min(id) FROM status_log")
        follower.come_back()
        follower.until(lambda me: me.ids[CONTAINER][-1:] == [last])
    (gap,) = follower.gaps
    assert gap["missed"] == oldest - 1 - seen
    assert gap["reason"]
    assert follower.ids[CONTAINER] == [*range(1, seen + 1), *range(oldest, last + 1)]


@proves("stream-gap")
def test_the_cursor_of_a_gap_is_a_place_to_go_on_from(two: Daemon) -> None:
    with Follower(two.socket) as follower:
        follower.leave()
        last = fill(two, WINDOW + 500)
        follower.come_back()
        follower.until(lambda me: bool(me.gaps))
        follower.leave()
        follower.come_back()
        follower.until(lambda me: me.ids[CONTAINER][-1:] == [last])
    assert [gap["missed"] for gap in follower.gaps] == [500]
    assert follower.ids[CONTAINER] == list(range(501, last + 1))


@proves("stream-gap-new-database", "store-epoch")
def test_a_database_made_anew_is_a_gap_of_unknown_size(two: Daemon) -> None:
    with Follower(two.socket) as follower:
        fill(two, 5)
        follower.until_rows(CONTAINER, 5)
        follower.leave()
        purge(two)
        two.load()
        fill(two, 2)
        follower.come_back()
        follower.until_rows(CONTAINER, 7)
    assert [gap["missed"] for gap in follower.gaps] == [None]
    assert follower.ids[CONTAINER] == [1, 2, 3, 4, 5, 1, 2]


@proves("stream-gap-new-database")
def test_a_database_put_back_from_an_older_copy_is_a_gap_too(two: Daemon) -> None:
    copy = two.home.parent / "copy.db"
    fill(two, 5)
    two.terminate()
    shutil.copy(two.instance_db(), copy)
    two.start()
    with Follower(two.socket, start="oldest") as follower:
        fill(two, 5)
        follower.until_rows(CONTAINER, 10)
        follower.leave()
    two.terminate()
    shutil.copy(copy, two.instance_db())
    two.start()
    follower.come_back()
    follower.until_rows(CONTAINER, 15)
    follower.leave()
    assert [gap["missed"] for gap in follower.gaps] == [None]
    assert follower.ids[CONTAINER][10:] == [1, 2, 3, 4, 5]

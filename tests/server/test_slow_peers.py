"""Peers that are slow or never come to an end: nobody waits for them, and they cost little."""

from __future__ import annotations

import select
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest

from jackin_memd.wire.session import PingParams
from jackin_memd.wire.status import StatusRecordParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.proves import proves
from tests.support.raw import PATIENCE_S, Raw, code_of, greeted, request

FRAME_S, HELLO_S, SEND_S = 0.4, 0.8, 1.0

CONFIG = {"timeouts": {"frame_s": FRAME_S, "hello_s": HELLO_S, "send_s": SEND_S}}

#: A page of rows as large as the daemon sends, 16 times 60 KiB.
BIG_PAGE = [entry("big", "x" * 60_000)] * 16

#: What the daemon may hold for one peer that does not read: far below what was asked for.
BOUND_BYTES = 48 * 1024 * 1024


def hung_up(peer: Raw, timeout_s: float) -> bool:
    """Whether the daemon closes within this time, told without reading anything."""
    poll = select.poll()
    poll.register(peer.socket, 0)
    return bool(poll.poll(timeout_s * 1000))


def readable(peer: Raw, timeout_s: float) -> bool:
    return bool(select.select([peer.socket], [], [], timeout_s)[0])


def peak_rss(daemon: Daemon) -> int:
    """The most memory that the daemon ever had, in bytes."""
    status = Path(f"/proc/{daemon.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here to read the peak memory from")
    (line,) = (li for li in status.read_text("ascii").splitlines() if li.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@proves("wire-frame-deadline")
@pytest.mark.parametrize("first", [1, 4, 10])
def test_a_frame_that_trickles_in_byte_by_byte_has_one_deadline(raw: Raw, first: int) -> None:
    ping = request("ping").ljust(2000)
    frame = len(ping).to_bytes(4, "big") + ping
    raw.send(frame[:first])
    sent = first
    while not readable(raw, FRAME_S / 20):  # never a pause that a deadline for a piece would see
        raw.send(frame[sent : sent + 1])
        sent += 1
    assert sent < len(frame)
    (farewell,) = raw.read_to_end()
    assert code_of(farewell) == "FRAME_TIMEOUT"


@proves("wire-frame-deadline")
def test_a_frame_whose_rest_never_comes_is_given_up(raw: Raw) -> None:
    raw.send(b"\0\0\0\x20{")
    (farewell,) = raw.read_to_end()
    assert code_of(farewell) == "FRAME_TIMEOUT"


def test_the_deadline_of_a_frame_is_not_that_of_the_frame_before_it(raw: Raw) -> None:
    """A stream of calls in which each piece ends in the middle of a frame."""
    ping = request("ping")
    frame = len(ping).to_bytes(4, "big") + ping
    raw.send(frame[:9])
    end = monotonic() + 3 * FRAME_S
    while monotonic() < end:
        raw.send(frame[9:] + frame[:9])
        assert raw.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert not readable(raw, FRAME_S / 20)


@proves("wire-hello-deadline")
def test_a_connection_without_a_hello_is_told_so_and_closed(stranger: Raw) -> None:
    (farewell,) = stranger.read_to_end()
    assert code_of(farewell) == "HELLO_TIMEOUT"


@proves("wire-hello-deadline")
def test_calls_before_hello_do_not_extend_its_deadline(stranger: Raw) -> None:
    answers = 0
    while not readable(stranger, HELLO_S / 20):
        assert code_of(stranger.call_raw("ping")) == "HELLO_REQUIRED"
        answers += 1
    (farewell,) = stranger.read_to_end()
    assert code_of(farewell) == "HELLO_TIMEOUT"
    assert answers > 1


def test_a_greeted_connection_may_be_silent_for_as_long_as_it_likes(raw: Raw) -> None:
    assert not readable(raw, 2 * max(FRAME_S, HELLO_S, SEND_S))
    assert raw.call("ping") == {}


@proves("wire-back-pressure")
def test_a_client_that_never_reads_its_answers_costs_little_and_is_closed(shared: Daemon) -> None:
    page = request("status.list", b'{"instance":"%s","limit":16}' % OTHER.encode())
    with shared.client() as operator, greeted(shared.socket) as hoarder:
        operator.call("status.record", StatusRecordParams(entries=BIG_PAGE, instance=OTHER))
        before = peak_rss(shared)
        hoarder.send((len(page).to_bytes(4, "big") + page) * 500)  # 500 answers of 1 MiB
        while not hung_up(hoarder, 0):
            operator.call("ping", PingParams())  # others go on as before
            record(operator, "working", instance=CONTAINER)
        assert peak_rss(shared) - before < BOUND_BYTES


@proves("stream-slow-subscriber")
def test_a_subscriber_that_never_reads_costs_little_and_is_closed(shared: Daemon) -> None:
    big = StatusRecordParams(entries=BIG_PAGE, instance=OTHER)
    with shared.client() as operator, greeted(shared.socket) as hoarder:
        hoarder.call("status.subscribe", instances=[OTHER])
        before = peak_rss(shared)
        for _ in range(80):
            operator.call("status.record", big)
        assert hung_up(hoarder, PATIENCE_S)
        assert peak_rss(shared) - before < BOUND_BYTES
        assert operator.call("status.record", big).last_id >= 80 * 16


@proves("wire-frame-deadline", "wire-back-pressure")
def test_the_deadline_of_a_frame_rests_while_the_daemon_does_not_read_it(shared: Daemon) -> None:
    """A large call behind many answers that are read slowly: its sender has to wait."""
    page = request("status.list", b'{"instance":"%s","limit":16}' % OTHER.encode())
    large = request("ping", id_="large").ljust(4_000_000)
    texts = [page] * 40 + [large]
    with (
        shared.client() as operator,
        greeted(shared.socket) as slow,
        ThreadPoolExecutor(1) as threads,
    ):
        operator.call("status.record", StatusRecordParams(entries=BIG_PAGE, instance=OTHER))
        sending = threads.submit(
            slow.send, b"".join(len(text).to_bytes(4, "big") + text for text in texts)
        )
        began = monotonic()
        answers = []
        for _ in texts:
            assert not hung_up(slow, FRAME_S / 10)
            answers.append(slow.read())
        sending.result()
    assert monotonic() - began > FRAME_S
    assert sum(answer["id"] == "large" for answer in answers) == 1
    assert all("result" in answer for answer in answers)


@proves("wire-back-pressure")
def test_a_client_that_reads_late_gets_every_answer(shared: Daemon) -> None:
    with greeted(shared.socket) as late:
        frames = [request("rpc.discover", id_=number) for number in range(100)]
        late.send(b"".join(len(text).to_bytes(4, "big") + text for text in frames))
        assert not hung_up(late, SEND_S / 2)
        assert sorted(late.read()["id"] for _ in frames) == list(range(100))
        assert late.call("ping") == {}

"""Stopping: what was accepted is finished, the rest is left for the next daemon."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jackin_memd.wire.status import StatusRecordParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, entry, record
from tests.support.instances import get
from tests.support.proves import proves
from tests.support.raw import Raw, greeted, request
from tests.support.writer import writers

WAITING = "waiting for the daemon before this one to finish"


def left_over(daemon: Daemon) -> set[str]:
    """Names in the instance's folder, but for the database itself."""
    return {path.name for path in daemon.instance_db().parent.iterdir()} - {"jackin.db"}


@proves("daemon-drain", "store-ack-survives-kill", "daemon-stops-cleanly")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_what_8_writers_were_acknowledged_is_on_disk_after_a_signal(
    daemon: Daemon, sent: signal.Signals
) -> None:
    daemon.load()
    with writers(daemon.instance_socket(), processes=8, rows=1_000_000) as busy:
        daemon.process.send_signal(sent)
        assert daemon.wait() == 0
        acknowledged = [pair for writer in busy for pair in writer.acknowledged()]
    assert left_over(daemon) == set()  # checkpointed: looked at before anybody opens it
    assert len({id_ for id_, _ in acknowledged}) == len(acknowledged) >= 8
    stored = dict(daemon.rows("SELECT id, new_status FROM status_log"))
    assert {id_: stored.get(id_) for id_, _ in acknowledged} == dict(acknowledged)
    assert not daemon.socket.exists()
    assert not daemon.instance_socket().exists()
    daemon.log.ended()
    assert daemon.log.count("Traceback") == 0


@proves("store-ack-survives-kill")
def test_what_8_writers_were_acknowledged_is_on_disk_after_sigkill(daemon: Daemon) -> None:
    daemon.load()
    with writers(daemon.instance_socket(), processes=8, rows=1_000_000) as busy:
        daemon.kill()
        acknowledged = [pair for writer in busy for pair in writer.acknowledged()]
    stored = dict(daemon.rows("SELECT id, new_status FROM status_log"))
    assert {id_: stored.get(id_) for id_, _ in acknowledged} == dict(acknowledged)
    daemon.start()
    with daemon.capsule() as capsule:
        assert record(capsule, "on").first_id == len(stored) + 1


def hoard(path: Path, instance: str) -> Raw:
    """A peer that has asked for several megabytes and not read them yet."""
    peer = greeted(path)
    page = request("status.list", b'{"instance":"%s","limit":1000}' % instance.encode())
    peer.send((len(page).to_bytes(4, "big") + page) * 4)
    return peer


def fill_pages(daemon: Daemon, instance: str) -> None:
    with daemon.client() as client:
        big = [entry("big", "x" * 60_000)] * 16
        client.call("status.record", StatusRecordParams(entries=big, instance=instance))


@proves("daemon-drain", "wire-reply-before-close")
def test_answers_that_wait_for_their_reader_are_still_delivered(stopped: Daemon) -> None:
    stopped.configure(timeouts={"drain_s": 3600, "send_s": 3600})
    stopped.start()
    stopped.load()
    fill_pages(stopped, CONTAINER)
    with hoard(stopped.socket, CONTAINER) as late:
        first = late.read()  # the others are under way
        stopped.process.send_signal(signal.SIGTERM)
        stopped.wait_for_log("stopping: finishing what was accepted")
        answers = [first, *late.read_to_end()]
    assert stopped.wait() == 0
    assert all(len(answer["result"]["rows"]) == 16 for answer in answers)


@proves("daemon-drain", "daemon-singleton")
def test_the_next_daemon_takes_over_when_the_one_before_has_drained(stopped: Daemon) -> None:
    stopped.configure(timeouts={"drain_s": 3600, "send_s": 3600})
    stopped.start()
    stopped.load()
    fill_pages(stopped, CONTAINER)
    successor = Daemon(stopped.home, stopped.config)
    try:
        with (
            hoard(stopped.socket, CONTAINER) as late,
            stopped.capsule() as capsule,
            ThreadPoolExecutor(1) as threads,
        ):
            acknowledged = record(capsule, "last of the first").last_id
            late.read()
            stopped.process.send_signal(signal.SIGTERM)
            stopped.wait_for_log("stopping: finishing what was accepted")
            starting = threads.submit(successor.start)
            successor.wait_for_log(WAITING)
            assert stopped.process.poll() is None
            assert not starting.done()
            late.read_to_end()
            starting.result()
        assert stopped.wait() == 0
        with successor.capsule() as capsule:
            assert record(capsule, "first of the second").first_id == acknowledged + 1
    finally:
        successor.end()


@proves("daemon-drain")
def test_a_reader_that_never_comes_holds_a_stop_up_for_drain_s_and_no_longer(
    stopped: Daemon,
) -> None:
    stopped.configure(timeouts={"drain_s": 0.3, "send_s": 3600})
    stopped.start()
    stopped.load()
    fill_pages(stopped, CONTAINER)
    with hoard(stopped.socket, CONTAINER) as never, stopped.capsule() as capsule:
        never.read()
        acknowledged = record(capsule, "acknowledged").last_id
        assert stopped.terminate() == 0
    stopped.log.ended()
    assert stopped.log.count("did not finish in 0.3 s") == 1
    assert left_over(stopped) == set()
    assert stopped.rows("SELECT max(id) FROM status_log") == [(acknowledged,)]


@proves("daemon-drain")
@pytest.mark.parametrize("said", [b"", b"\0\0\0\x09{", b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_peers_that_say_nothing_or_nonsense_do_not_hold_a_stop_up(
    stopped: Daemon, said: bytes
) -> None:
    stopped.configure(timeouts={"drain_s": 3600})
    stopped.start()
    stopped.load()
    with Raw(stopped.socket) as one, greeted(stopped.instance_socket()) as another:
        one.send(said)
        another.send(said)
        another.call("ping") if not said else None
        assert stopped.terminate() == 0


@proves("daemon-drain")
def test_subscribers_do_not_hold_a_stop_up(stopped: Daemon) -> None:
    stopped.configure(timeouts={"drain_s": 3600})
    stopped.start()
    stopped.load()
    with greeted(stopped.socket) as follower:
        follower.call("status.subscribe")
        assert stopped.terminate() == 0
        assert all("id" not in message for message in follower.read_to_end())


@proves("daemon-drain")
def test_signals_while_it_drains_change_nothing(stopped: Daemon) -> None:
    stopped.configure(timeouts={"drain_s": 3600, "send_s": 3600})
    stopped.start()
    stopped.load()
    fill_pages(stopped, CONTAINER)
    with hoard(stopped.socket, CONTAINER) as late:
        late.read()
        for sent in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            stopped.process.send_signal(sent)
            stopped.wait_for_log("stopping: finishing what was accepted")
        late.read_to_end()
    assert stopped.wait() == 0


@proves("daemon-stops-cleanly", "instance-restart")
def test_a_stop_in_the_middle_of_loads_leaves_each_loaded_or_unknown(daemon: Daemon) -> None:
    names = [f"jk-{number:08d}-x" for number in range(60)]
    with greeted(daemon.socket) as operator:
        for number, name in enumerate(names):
            params = b'{"container":"%s","role_key":"r"}' % name.encode()
            operator.send_call("instance.load", params, number)
        first = operator.read()
        daemon.process.send_signal(signal.SIGTERM)
        answers = [first, *operator.read_to_end()]
    assert daemon.wait() == 0
    answered = [a["id"] for a in answers if "result" in a and a["result"]["state"] == "loaded"]
    assert answered
    refused = {a["error"]["data"]["code"] for a in answers if "error" in a}
    assert refused <= {"DAEMON_STOPPING"}
    daemon.start()
    for number in answered:
        assert get(daemon, names[number]).problem is None
        with daemon.capsule(names[number]) as capsule:
            assert record(capsule, "working").first_id == 1
    daemon.load(OTHER)
    assert daemon.log.count("Traceback") == 0


@proves("daemon-stops-cleanly")
def test_a_stop_in_the_middle_of_loads_leaves_no_socket_behind(daemon: Daemon) -> None:
    with greeted(daemon.socket) as operator:
        for number in range(60):
            params = b'{"container":"jk-%08d-x","role_key":"r"}' % number
            operator.send_call("instance.load", params, number)
        operator.read()
        daemon.process.send_signal(signal.SIGTERM)
        operator.read_to_end()
    assert daemon.wait() == 0
    assert list(daemon.home.glob("sockets/*/memd.sock")) == []
    assert not daemon.socket.exists()

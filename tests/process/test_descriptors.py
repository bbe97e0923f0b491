"""No descriptor left: who comes later waits, and the daemon lives."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jackin_memd.wire.instances import InstanceState, InstanceUnloadParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.raw import Raw, request
from tests.support.shared import assert_unharmed

LIMIT = 64
HELLO = request("hello", b'{"protocol_version": 1}')


def readable(peer: Raw, timeout_s: float) -> bool:
    return bool(select.select([peer.socket], [], [], timeout_s)[0])


@pytest.fixture
def narrow(stopped: Daemon) -> Daemon:
    """A daemon that may have 64 descriptors, with two instances."""
    stopped.start(prefix=("sh", "-c", f'ulimit -n {LIMIT}; exec "$@"', "sh"))
    stopped.load(CONTAINER)
    stopped.load(OTHER, "reviewer")
    return stopped


@contextmanager
def crowd(path: Path) -> Iterator[tuple[list[Raw], list[Raw]]]:
    """More connections than there are descriptors: those let in, and those that wait."""
    with ExitStack() as stack:
        peers = [stack.enter_context(Raw(path)) for _ in range(2 * LIMIT)]
        for peer in peers:
            peer.send_frame(HELLO)
        for number, peer in enumerate(peers):
            if not readable(peer, 1.0):  # they are let in in the order they came
                yield peers[:number], peers[number:]
                return
        pytest.fail("all were let in")


def test_connections_beyond_the_descriptors_wait_until_others_leave(narrow: Daemon) -> None:
    with narrow.client() as early, crowd(narrow.socket) as (inside, waiting):
        assert len(inside) > LIMIT // 4
        assert record(early, "working", instance=CONTAINER).first_id == 1
        for peer in inside:
            peer.close()
        for peer in waiting[: LIMIT // 2]:
            assert peer.read()["result"]["channel"] == "operator"
            assert peer.call("ping") == {}
            peer.close()
    assert_unharmed(narrow)


def test_an_instance_crowded_by_its_agent_leaves_the_daemon_and_can_be_unloaded(
    narrow: Daemon,
) -> None:
    with narrow.client() as early, crowd(narrow.instance_socket()) as (inside, waiting):
        assert inside
        assert record(early, "working", instance=OTHER).first_id == 1
        gone = early.call("instance.unload", InstanceUnloadParams(instance=CONTAINER))
        assert gone.state is InstanceState.UNLOADED
        assert [peer.read_to_end() for peer in waiting] == [[]] * len(waiting)
        with Raw(narrow.socket) as later:
            later.hello()
            assert not readable(later, 0.5)  # nothing of the crowd comes after it
            assert later.call("ping") == {}
    assert_unharmed(narrow)

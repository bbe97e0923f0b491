"""1,000 registered instances: every one is served, and hardly any costs anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jackin_memd.wire.instances import InstanceListParams, InstanceLoadParams, InstanceState
from jackin_memd.wire.status import StatusListParams
from tests.support.daemon import Daemon, record
from tests.support.following import Follower
from tests.support.proves import proves
from tests.support.raw import greeted
from tests.support.shared import running_daemon

NAMES = [f"jk-{number:08d}-shop-builder" for number in range(1000)]
MAX_OPEN = 32

pytestmark = pytest.mark.timeout(240)  # 2,000 commits and 3,000 openings, on any machine

#: The event loop's, the writers and the readers, and what trio needs now and then.
MAX_THREADS = 16


@pytest.fixture(scope="module")
def crowded() -> Iterator[Daemon]:
    """A daemon that was restarted with 1,000 loaded instances; each has one row."""
    with running_daemon(limits={"open_databases": MAX_OPEN}) as daemon:
        with daemon.client() as client:
            loads = [
                ("instance.load", InstanceLoadParams(container=name, role_key="builder"))
                for name in NAMES
            ]
            loaded = [instance for start in range(0, 1000, 100)
                      for instance in client.pipeline(loads[start:start + 100])]  # fmt: skip
            assert {instance.state for instance in loaded} == {InstanceState.LOADED}
            for name in NAMES:
                assert record(client, "before", instance=name).first_id == 1
        assert daemon.terminate() == 0
        daemon.start()
        yield daemon


@proves("instance-restart", "store-lazy-open")
def test_after_a_restart_no_database_is_open_that_nobody_asked_for(crowded: Daemon) -> None:
    crowded.terminate()
    crowded.start()
    status = crowded.status()
    assert (status.instances_loaded, status.instances_failed) == (len(NAMES) + 2, 0)
    assert status.databases_open == 1  # the registry
    assert status.threads <= MAX_THREADS


@proves("instance-restart", "store-lazy-open")
def test_every_socket_answers_and_the_databases_stay_bounded(crowded: Daemon) -> None:
    most = 0
    for number, name in enumerate(NAMES):
        with crowded.capsule(name) as capsule:
            page = capsule.call("status.list", StatusListParams())
            assert page.rows[-1].new_status == "before"
            assert record(capsule, "after").first_id == page.rows[0].id + 1
        if number % 50 == 0:
            most = max(most, crowded.status().databases_open)
    status = crowded.status()
    assert 1 < most <= MAX_OPEN
    assert status.databases_open <= MAX_OPEN
    assert status.threads <= MAX_THREADS


@proves("instance-list")
def test_the_list_has_all_of_them_in_order(crowded: Daemon) -> None:
    with crowded.client() as client:
        first = client.call("instance.list", InstanceListParams())
        rest = client.call("instance.list", InstanceListParams(after=first.instances[-1].container))
    names = [instance.container for page in (first, rest) for instance in page.instances]
    assert first.more
    assert not rest.more
    assert [name for name in names if name in set(NAMES)] == NAMES


@proves("stream-once-in-order")
def test_a_subscription_to_all_follows_all(crowded: Daemon) -> None:
    with greeted(crowded.socket) as operator, Follower(crowded.socket) as follower:
        assert len(follower.started["cursors"]) == len(NAMES) + 2
        for name in (NAMES[0], NAMES[499], NAMES[-1]):
            operator.call("status.record", instance=name, entries=[{"new_status": "seen"}])
            assert follower.until_rows(name, 1).words[name] == ["seen"]
    assert crowded.status().databases_open <= MAX_OPEN

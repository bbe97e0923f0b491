"""Loading instances: again, at the same time, by short id, and over a restart."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceListParams, InstanceListResult, InstanceState
from jackin_memd.wire.status import StatusLatestParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import get, load, purge, unload
from tests.support.proves import proves
from tests.support.raw import greeted

TWIN = "jk-k7p9m2xq-shop-reviewer"


def listed(daemon: Daemon, **params: object) -> InstanceListResult:
    with daemon.client() as client:
        found: InstanceListResult = client.call(
            "instance.list",
            InstanceListParams(**params),  # type: ignore[arg-type]
        )
        return found


@proves("instance-load-again")
def test_loading_a_loaded_instance_changes_nothing_and_answers_the_same(daemon: Daemon) -> None:
    first = load(daemon, role_key="builder")
    with greeted(daemon.instance_socket()) as inside, greeted(daemon.socket) as follower:
        follower.call("status.subscribe", instances=[CONTAINER])
        follower.read()  # it has joined
        inside.call("status.record", entries=[{"new_status": "one"}])
        assert load(daemon) == load(daemon, role_key="builder") == first
        inside.call("status.record", entries=[{"new_status": "two"}])
        events = [follower.read() for _ in range(2)]
    assert [[row["id"] for row in event["params"]["rows"]] for event in events] == [[1], [2]]


@proves("wire-idempotency")
def test_a_repeated_load_with_its_key_gives_the_first_answer(daemon: Daemon) -> None:
    first = load(daemon, role_key="builder", idempotency_key="k")
    unload(daemon)
    assert load(daemon, role_key="builder", idempotency_key="k") == first
    assert get(daemon).state is InstanceState.UNLOADED  # it was not done once more
    with pytest.raises(MemdError) as caught:
        load(daemon, OTHER, role_key="builder", idempotency_key="k")
    assert caught.value.code is ErrorCode.IDEMPOTENCY_CONFLICT


@proves("instance-load-again")
def test_loads_of_one_instance_at_the_same_time_make_one_of_it(daemon: Daemon) -> None:
    with ExitStack() as stack:
        peers = [stack.enter_context(greeted(daemon.socket)) for _ in range(20)]
        params = json.dumps({"container": CONTAINER, "role_key": "builder"}).encode()
        for peer in peers:
            peer.send_call("instance.load", params)
        answers = [peer.read()["result"] for peer in peers]
    assert all(answer == answers[0] for answer in answers)
    with daemon.capsule() as capsule:
        assert record(capsule, "working").first_id == 1
    assert daemon.status().databases_open == 2  # its own and the registry's


def test_loads_unloads_and_purges_at_the_same_time_leave_a_clean_end(daemon: Daemon) -> None:
    load(daemon, role_key="builder")
    with ExitStack() as stack:
        peers = [stack.enter_context(greeted(daemon.socket)) for _ in range(12)]
        for round_ in range(4):
            for number, peer in enumerate(peers):
                method = ("instance.load", "instance.unload", "instance.purge")[number % 3]
                given = {"container": CONTAINER, "role_key": "builder"}
                params = given if method == "instance.load" else {"instance": CONTAINER}
                peer.send_call(method, json.dumps(params).encode(), round_)
        for _ in range(4):
            for peer in peers:
                answer = peer.read()
                if "error" in answer:
                    assert answer["error"]["data"]["code"] == "INSTANCE_NOT_FOUND"
    assert load(daemon, role_key="builder").state is InstanceState.LOADED
    with daemon.capsule() as capsule:
        record(capsule, "working")
    purge(daemon)
    assert listed(daemon).instances == []
    assert daemon.log.matching(lambda line: "Traceback" in line) == []


# -- short ids ---------------------------------------------------------------------------


@proves("instance-short-id")
def test_a_short_id_names_its_instance(daemon: Daemon) -> None:
    loaded = load(daemon, role_key="builder")
    assert get(daemon, "k7p9m2xq") == loaded
    with daemon.client() as client:
        record(client, "by short id", instance="k7p9m2xq")
        latest = client.call("status.latest", StatusLatestParams(instance="k7p9m2xq"))
    assert latest.row.new_status == "by short id"
    assert unload(daemon, "k7p9m2xq").container == CONTAINER


@proves("instance-short-id")
@pytest.mark.parametrize("method", ["instance.get", "instance.unload", "instance.purge",
                                    "status.record", "status.list", "status.latest"])  # fmt: skip
def test_an_ambiguous_short_id_asks_for_the_full_name(daemon: Daemon, method: str) -> None:
    load(daemon, CONTAINER, role_key="builder")
    load(daemon, TWIN, role_key="reviewer")
    params = {"entries": [{"new_status": "x"}]} if method == "status.record" else {}
    with greeted(daemon.socket) as operator:
        error = operator.refused(method, instance="k7p9m2xq", **params)
        assert error["data"]["code"] == "INSTANCE_AMBIGUOUS"
        assert CONTAINER in error["data"]["hint"]
        assert TWIN in error["data"]["hint"]
        follow = operator.refused("status.subscribe", instances=["k7p9m2xq"])
        assert follow["data"]["code"] == "INSTANCE_AMBIGUOUS"
    purge(daemon, TWIN)
    assert get(daemon, "k7p9m2xq").container == CONTAINER  # no longer ambiguous


@pytest.mark.parametrize("name", ["shop", "worker", "k7p9m2xq-not-jks", "jk-shorty-x"])
def test_an_instance_without_a_short_id_goes_by_its_name(daemon: Daemon, name: str) -> None:
    assert load(daemon, name, role_key="builder").instance_id is None
    assert get(daemon, name).container == name


# -- lists ---------------------------------------------------------------------------------


@proves("instance-list")
def test_all_instances_are_listed_in_order_page_by_page(daemon: Daemon) -> None:
    names = sorted(f"jk-{number:08d}-x" for number in range(7))
    for name in reversed(names):
        load(daemon, name, role_key="r")
    unload(daemon, names[3])
    assert [instance.container for instance in listed(daemon).instances] == names
    seen, after = [], None
    while True:
        page = listed(daemon, limit=3, after=after)
        seen += [instance.container for instance in page.instances]
        if not page.more:
            break
        after = seen[-1]
    assert seen == names
    unloaded = listed(daemon, state=InstanceState.UNLOADED)
    assert [instance.container for instance in unloaded.instances] == [names[3]]
    assert len(listed(daemon, state=InstanceState.LOADED).instances) == 6


# -- restart -------------------------------------------------------------------------------


@proves("instance-restart", "instance-kept")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_loaded_instances_are_served_again_after_a_restart_with_no_call(
    daemon: Daemon, end: str
) -> None:
    for container in (CONTAINER, OTHER, TWIN):
        load(daemon, container, role_key="r")
    unload(daemon, TWIN)
    before = listed(daemon)
    with daemon.capsule() as capsule:
        cursor = record(capsule, "before").cursor
    daemon.kill() if end == "SIGKILL" else daemon.terminate()
    daemon.start()
    for container in (CONTAINER, OTHER):
        with greeted(daemon.instance_socket(container)) as inside:
            assert inside.call("instance.get")["container"] == container
    with daemon.capsule() as capsule:
        after = record(capsule, "after")
    assert after.first_id == 2
    assert after.cursor.split(".")[0] == cursor.split(".")[0]  # the same database
    assert listed(daemon) == before


@proves("instance-restart")
def test_many_restarts_lose_nothing(daemon: Daemon) -> None:
    load(daemon, role_key="builder")
    for number in range(1, 6):
        with daemon.capsule() as capsule:
            assert record(capsule, f"life {number}").first_id == number
        daemon.kill()
        daemon.start()
    assert daemon.rows("SELECT new_status FROM status_log ORDER BY id") == [
        (f"life {number}",) for number in range(1, 6)
    ]


def test_loading_many_at_once_serves_each(daemon: Daemon) -> None:
    names = [f"jk-{number:08d}-x" for number in range(40)]

    def load_and_record(name: str) -> int:
        load(daemon, name, role_key="r")
        with daemon.capsule(name) as capsule:
            return record(capsule, name).first_id

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(load_and_record, names)) == [1] * len(names)
    assert [daemon.rows("SELECT new_status FROM status_log", name) for name in names] == [
        [(name,)] for name in names
    ]

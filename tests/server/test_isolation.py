"""Two instances: neither can read, write, follow or even find out about the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jackin_memd.wire.methods import METHODS, Reach
from jackin_memd.wire.vocab import Channel
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.proves import proves
from tests.support.raw import Raw, greeted

OTHER_SHORT, OWN_SHORT = OTHER.split("-")[1], CONTAINER.split("-")[1]
MADE_UP = "jk-zzzzzzzz-no-such"

#: Names that a channel of CONTAINER must not get anywhere with.
NOT_OWN = [OTHER, OTHER_SHORT, MADE_UP, "zzzzzzzz", "registry", "daemon", "..", CONTAINER.upper()]

REACHING: dict[str, dict[str, Any]] = {
    "instance.get": {},
    "status.record": {"entries": [{"new_status": "intruding"}]},
    "status.list": {},
    "status.latest": {},
}


@pytest.fixture
def capsule(shared: Daemon) -> Iterator[Raw]:
    with greeted(shared.instance_socket()) as connection:
        yield connection


def test_every_method_that_reaches_an_instance_from_a_capsule_is_tried_here() -> None:
    tried = {*REACHING, "status.subscribe"}
    assert tried == {
        name
        for name, method in METHODS.items()
        if method.reach is not Reach.HOST and Channel.CAPSULE in method.channels
    }


@proves("access-capsule-bound")
@pytest.mark.parametrize("name", NOT_OWN)
@pytest.mark.parametrize("method", REACHING)
def test_another_instance_is_answered_like_one_that_does_not_exist(
    capsule: Raw, method: str, name: str
) -> None:
    made_up = capsule.refused(method, instance="jk-yyyyyyyy-nobody", **REACHING[method])
    assert made_up["data"]["code"] == "INSTANCE_NOT_FOUND"
    assert capsule.refused(method, instance=name, **REACHING[method]) == made_up


@proves("access-capsule-bound")
@pytest.mark.parametrize("name", NOT_OWN)
def test_a_capsule_can_follow_no_other_instance(capsule: Raw, name: str) -> None:
    made_up = capsule.refused("status.subscribe", instances=["jk-yyyyyyyy-nobody"])
    assert made_up["data"]["code"] == "INSTANCE_NOT_FOUND"
    assert capsule.refused("status.subscribe", instances=[name]) == made_up
    assert capsule.refused("status.subscribe", instances=[CONTAINER, name]) == made_up


@proves("access-capsule-bound")
def test_nothing_that_a_capsule_tries_reaches_the_other_database(
    shared: Daemon, capsule: Raw
) -> None:
    for name in NOT_OWN:
        capsule.call_raw("status.record", b'{"entries":[{"new_status":"intruding"}]}')
        capsule.refused("status.record", instance=name, entries=[{"new_status": "intruding"}])
    assert shared.rows("SELECT count(*) FROM status_log WHERE new_status='intruding'", OTHER) == [
        (0,)
    ]


@pytest.mark.parametrize("name", [CONTAINER, OWN_SHORT, None])
@pytest.mark.parametrize("method", REACHING)
def test_a_capsule_may_name_its_own_instance_or_none(
    capsule: Raw, method: str, name: str | None
) -> None:
    params = REACHING[method] | ({} if name is None else {"instance": name})
    assert capsule.call(method, **params) is not None


def test_a_subscription_without_names_is_to_the_own_instance_alone(
    shared: Daemon, capsule: Raw
) -> None:
    started = capsule.call("status.subscribe")
    assert set(started["cursors"]) == {CONTAINER}
    assert capsule.read()["params"]["instance"] == CONTAINER  # it has joined
    with shared.client() as operator:
        record(operator, "other's", instance=OTHER)
        record(operator, "mine", instance=CONTAINER)
    assert [row["new_status"] for row in capsule.read()["params"]["rows"]] == ["mine"]


@proves("access-capsule-bound")
def test_a_cursor_of_the_other_instance_opens_nothing(shared: Daemon, capsule: Raw) -> None:
    with shared.client() as operator:
        stolen = record(operator, "secret", instance=OTHER).cursor
        record(operator, "own", instance=CONTAINER)
    refused = capsule.refused("status.list", before=stolen)
    assert (refused["data"]["code"], refused["data"]["field"]) == ("CURSOR_INVALID", "before")
    started = capsule.call("status.subscribe", after={OTHER: stolen})
    assert set(started["cursors"]) == {CONTAINER}
    while not (event := capsule.read()["params"])["rows"]:
        pass
    assert event["instance"] == CONTAINER
    assert all(row["new_status"] != "secret" for row in event["rows"])


@proves("access-capsule-bound", "stream-gap-new-database")
def test_a_cursor_of_the_other_passed_as_the_own_is_a_gap_and_the_own_rows(
    shared: Daemon, capsule: Raw
) -> None:
    with shared.client() as operator:
        stolen = record(operator, "secret", instance=OTHER).cursor
        record(operator, "own", instance=CONTAINER)
    capsule.call("status.subscribe", after={CONTAINER: stolen})
    gap = capsule.read()
    assert (gap["method"], gap["params"]["missed"]) == ("stream.gap", None)
    rows = capsule.read()["params"]["rows"]
    assert rows
    assert all(row["new_status"] != "secret" for row in rows)


def test_the_same_key_in_two_instances_is_two_calls(shared: Daemon) -> None:
    with shared.capsule(CONTAINER) as mine, shared.capsule(OTHER) as others:
        record(mine, "mine", idempotency_key="same")
        record(others, "theirs", idempotency_key="same")
    assert shared.rows(
        "SELECT new_status FROM status_log WHERE new_status IN ('mine', 'theirs')", OTHER
    ) == [("theirs",)]


def test_a_key_of_the_capsule_and_one_of_the_operator_are_apart(shared: Daemon) -> None:
    with shared.capsule() as capsule, shared.client() as operator:
        first = record(capsule, "by capsule", idempotency_key="k")
        second = record(operator, "by operator", idempotency_key="k", instance=CONTAINER)
    assert second.first_id != first.first_id


def test_a_capsule_sees_of_its_instance_what_the_operator_sees(
    shared: Daemon, capsule: Raw, raw: Raw
) -> None:
    assert capsule.call("instance.get") == raw.call("instance.get", instance=CONTAINER)

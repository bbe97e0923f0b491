"""hello: first on every connection, of the daemon's version, and no way to more rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jackin_memd.wire.methods import METHODS, Effect
from jackin_memd.wire.vocab import PROTOCOL_VERSION, Channel
from tests.support.daemon import CONTAINER, Daemon
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted
from tests.wire.bad_input import good_params

AFTER_HELLO = [name for name, method in METHODS.items() if not method.any_version]
ANY_VERSION = [name for name, method in METHODS.items() if method.any_version]


@pytest.fixture
def capsule(shared: Daemon) -> Iterator[Raw]:
    with Raw(shared.instance_socket()) as connection:
        yield connection


@proves("wire-hello-first")
@pytest.mark.parametrize("name", AFTER_HELLO)
def test_a_method_before_hello_is_refused_and_hello_still_works(stranger: Raw, name: str) -> None:
    answer = stranger.call_raw(name, good_params(METHODS[name]))
    assert code_of(answer) == "HELLO_REQUIRED"
    assert "hello" in answer["error"]["data"]["hint"]
    assert stranger.hello()["protocol_version"] == PROTOCOL_VERSION
    assert stranger.call("ping") == {}


@proves("wire-hello-version")
@pytest.mark.parametrize(
    ("version", "older"),
    [(PROTOCOL_VERSION - 1, "client"), (PROTOCOL_VERSION + 1, "daemon"), (-(2**63), "client"),
     (2**63 - 1, "daemon")],
)  # fmt: skip
def test_another_protocol_version_is_refused_with_which_side_is_older(
    stranger: Raw, version: int, older: str
) -> None:
    error = stranger.refused("hello", protocol_version=version, build="other/2")
    assert error["data"]["code"] == "PROTOCOL_MISMATCH"
    assert error["data"]["older"] == older
    assert error["data"]["client_protocol"] == version
    assert error["data"]["daemon_protocol"] == PROTOCOL_VERSION
    assert f"the {older} is older" in error["message"]


@proves("wire-hello-version")
@pytest.mark.parametrize("version", [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_after_a_refused_hello_nothing_else_is_open(stranger: Raw, version: int) -> None:
    stranger.refused("hello", protocol_version=version)
    assert code_of(stranger.call_raw("ping")) == "HELLO_REQUIRED"
    assert code_of(stranger.call_raw("instance.list")) == "HELLO_REQUIRED"


@proves("wire-hello-every-version", "daemon-shutdown-any-version")
@pytest.mark.parametrize("hello", [None, PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_status_answers_whatever_the_version_and_ignores_later_params(
    shared: Daemon, stranger: Raw, hello: int | None
) -> None:
    if hello is not None:
        stranger.refused("hello", protocol_version=hello, token={"of": "later"})
    found = stranger.call("status", of_a_later_version=[1])
    assert found["pid"] == shared.pid
    assert found["protocol_version"] == PROTOCOL_VERSION


@proves("wire-hello-every-version", "daemon-shutdown-any-version")
@pytest.mark.parametrize("hello", [None, PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_shutdown_works_whatever_the_version(daemon: Daemon, hello: int | None) -> None:
    with Raw(daemon.socket) as stranger:
        if hello is not None:
            stranger.refused("hello", protocol_version=hello)
        answer = stranger.call("shutdown", of_a_later_version=True)
    assert answer == {"accepted": True, "pid": daemon.pid}
    assert daemon.wait() == 0


def test_the_methods_for_any_version_are_those_that_replace_a_daemon() -> None:
    assert ANY_VERSION == ["hello", "status", "shutdown"]


@proves("access-table", "access-by-listener")
@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if Channel.CAPSULE in m.channels])
def test_what_a_capsule_may_call_is_not_refused_for_its_channel(capsule: Raw, name: str) -> None:
    capsule.hello()
    answer = capsule.call_raw(name, good_params(METHODS[name]))
    assert "error" not in answer or code_of(answer) != "PERMISSION_DENIED"


@proves("access-table", "access-by-listener")
@pytest.mark.parametrize(
    "name", [n for n, m in METHODS.items() if Channel.CAPSULE not in m.channels]
)
@pytest.mark.parametrize("claimed", ["operator", "observer"])
def test_a_capsule_may_not_call_the_rest_whatever_role_it_claims(
    capsule: Raw, name: str, claimed: str
) -> None:
    assert capsule.hello(role=claimed)["channel"] == "capsule"
    answer = capsule.call_raw(name, good_params(METHODS[name]))
    assert code_of(answer) == "PERMISSION_DENIED"
    assert "capsule" in answer["error"]["message"]


@proves("access-by-listener")
@pytest.mark.parametrize("name", ["status", "shutdown"])
def test_a_capsule_gets_no_further_before_hello_than_after(capsule: Raw, name: str) -> None:
    assert code_of(capsule.call_raw(name)) == "PERMISSION_DENIED"


def test_what_a_capsule_and_an_observer_may_not_call_is_what_one_expects() -> None:
    """Else the tests that are made from the table would agree with a wrong one."""
    allowed = {
        channel: {name for name, method in METHODS.items() if channel in method.channels}
        for channel in Channel
    }
    assert not allowed[Channel.CAPSULE] & {
        "status", "shutdown", "instance.load", "instance.unload", "instance.purge", "instance.list",
    }  # fmt: skip
    assert all(METHODS[name].effect is not Effect.WRITE for name in allowed[Channel.OBSERVER])
    assert "shutdown" not in allowed[Channel.OBSERVER]


@proves("access-observer", "access-table")
@pytest.mark.parametrize("name", METHODS)
def test_an_observer_may_read_and_subscribe_only(shared: Daemon, name: str) -> None:
    with greeted(shared.socket, role="observer") as observer:
        answer = observer.call_raw(name, good_params(METHODS[name]))
        refused = "error" in answer and code_of(answer) == "PERMISSION_DENIED"
        assert refused == (Channel.OBSERVER not in METHODS[name].channels)
        assert observer.call("instance.get", instance=CONTAINER)["container"] == CONTAINER


@proves("access-observer")
def test_a_second_hello_can_give_up_rights_and_not_win_them(raw: Raw) -> None:
    assert raw.hello(role="operator")["channel"] == "operator"
    assert raw.hello(role="observer")["channel"] == "observer"
    assert raw.hello(role="operator")["channel"] == "observer"
    assert code_of(raw.call_raw("shutdown")) == "PERMISSION_DENIED"


def test_a_second_hello_of_another_version_is_refused_and_changes_nothing(raw: Raw) -> None:
    assert raw.refused("hello", protocol_version=0)["data"]["code"] == "PROTOCOL_MISMATCH"
    assert raw.call("ping") == {}


@pytest.mark.parametrize("role", ["root", "capsule", "", "OPERATOR", 5, None, ["operator"]])
def test_a_role_that_is_none_is_refused_by_its_field(stranger: Raw, role: object) -> None:
    error = stranger.refused("hello", protocol_version=PROTOCOL_VERSION, role=role)
    assert (error["data"]["code"], error["data"]["field"]) == ("INVALID_PARAMS", "role")
    assert code_of(stranger.call_raw("ping")) == "HELLO_REQUIRED"


def test_hello_says_who_is_who(raw: Raw, capsule: Raw) -> None:
    operator, inside = raw.hello(), capsule.hello()
    assert (operator["channel"], operator["instance"]) == ("operator", None)
    assert (inside["channel"], inside["instance"]) == ("capsule", CONTAINER)
    assert operator["build"] == inside["build"]
    assert operator["max_frame_bytes"] == 4 * 1024 * 1024

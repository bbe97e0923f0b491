"""Who may call what: the table decides, and the table keeps to the design."""

from __future__ import annotations

import pytest

from jackin_memd.core.access import Principal, refusal
from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.methods import METHODS, Effect, Method, Reach
from jackin_memd.wire.vocab import Channel, Container
from tests.support.proves import proves

EVERY = [
    pytest.param(method, channel, id=f"{method.name}-{channel.value}")
    for method in METHODS.values()
    for channel in Channel
]


def principal(channel: Channel) -> Principal:
    own = Container("jk-k7p9m2xq-shop-builder") if channel is Channel.CAPSULE else None
    return Principal(channel=channel, container=own)


@proves("access-table")
@pytest.mark.parametrize(("method", "channel"), EVERY)
def test_a_call_is_allowed_exactly_where_the_table_names_the_channel(
    method: Method, channel: Channel
) -> None:
    error = refusal(method, principal(channel))
    if channel in method.channels:
        assert error is None
        return
    assert error is not None
    assert error.code is ErrorCode.PERMISSION_DENIED
    assert method.name in error.message
    assert channel.value in error.message
    allowed = (error.hint or "").removeprefix("it may be called on: ").split(", ")
    assert set(allowed) == {one.value for one in method.channels}


def test_a_method_that_names_no_channel_is_refused_on_all() -> None:
    nobodys = Method("x", object, object, Effect.READ, Reach.HOST, frozenset(), "for nobody")
    assert all(refusal(nobodys, principal(channel)) is not None for channel in Channel)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_operator_may_call_everything(method: Method) -> None:
    assert refusal(method, principal(Channel.OPERATOR)) is None


@proves("access-observer")
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_observer_reads_and_subscribes_and_does_nothing_else(method: Method) -> None:
    allowed = refusal(method, principal(Channel.OBSERVER)) is None
    assert not allowed or method.effect in {Effect.READ, Effect.STREAM} or method.name == "hello"


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_capsule_changes_nothing_but_what_is_bound_to_an_instance(method: Method) -> None:
    allowed = refusal(method, principal(Channel.CAPSULE)) is None
    changes = method.effect in {Effect.WRITE, Effect.CONTROL} and method.name != "hello"
    assert not (allowed and changes) or method.reach is not Reach.HOST

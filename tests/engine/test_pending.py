"""An answer that comes later: settled once, taken once."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from jackin_memd.engine.pending import Pending
from tests.engine.driving import in_trio

FAILURE = ZeroDivisionError("the write's own")


@pytest.mark.parametrize("outcome", [5, None, FAILURE])
@pytest.mark.parametrize("early", [True, False])
def test_whoever_takes_it_gets_the_outcome_whichever_comes_first(outcome: Any, early: bool) -> None:
    pending: Pending[Any] = Pending()
    taken: list[Any] = []
    if early:
        pending.settle(outcome)
    pending.then(taken.append)
    if not early:
        assert taken == []
        pending.settle(outcome)
    assert taken == [outcome]


@pytest.mark.parametrize("early", [True, False])
def test_a_waiting_task_gets_the_value_or_the_error(early: bool) -> None:
    @in_trio
    async def test() -> None:
        for outcome in (5, None, FAILURE):
            pending: Pending[Any] = Pending()
            async with trio.open_nursery() as nursery:
                if early:
                    pending.settle(outcome)
                else:
                    nursery.start_soon(settle, pending, outcome)
                if outcome is FAILURE:
                    with pytest.raises(ZeroDivisionError) as raised:
                        await pending.wait()
                    assert raised.value is FAILURE
                else:
                    assert await pending.wait() is outcome

    async def settle(pending: Pending[Any], outcome: Any) -> None:
        pending.settle(outcome)

    test()


def test_a_changed_outcome_is_changed_and_an_error_is_passed_on() -> None:
    seen: list[Any] = []
    for outcome in (5, FAILURE):
        pending: Pending[Any] = Pending()
        pending.map(lambda value: value + 1).then(seen.append)
        pending.settle(outcome)
    assert seen == [6, FAILURE]


def test_what_the_change_raises_becomes_the_error() -> None:
    pending: Pending[int] = Pending()
    changed: list[Any] = []
    pending.map(lambda value: 1 // value).then(changed.append)
    pending.settle(0)
    assert [type(outcome) for outcome in changed] == [ZeroDivisionError]


def test_settling_or_taking_twice_is_a_fault_of_ours() -> None:
    pending: Pending[int] = Pending()
    pending.settle(1)
    with pytest.raises(AssertionError):
        pending.settle(2)
    pending.then(lambda _: None)
    with pytest.raises(AssertionError):
        pending.then(lambda _: None)

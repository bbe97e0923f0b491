"""A call with a key happens once, and a repeat gets the first answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw
import msgspec
import pytest

from jackin_memd.core.rolling import Window
from jackin_memd.storage import request_keys
from jackin_memd.storage.request_keys import (
    Keyed,
    Repeated,
    RequestKey,
    find_answer,
    keep_answer,
)
from jackin_memd.storage.status_log import Append
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import StatusRecordResult
from tests.storage.files import in_memory
from tests.support.proves import proves


@pytest.fixture
def database() -> Iterator[apsw.Connection]:
    connection = in_memory()
    yield connection
    connection.close()


def key(
    name: str = "k", *, channel: str = "capsule", request: str = "a", now: int = 7
) -> RequestKey:
    return RequestKey(channel=channel, key=name, request_hash=request, now=now)


def record(word: str, request_key: RequestKey) -> Keyed:
    return Keyed(request_key, Append([(1, word, None)]).apply, 1)


def words(database: apsw.Connection) -> list[str]:
    return [str(word) for (word,) in database.execute("SELECT new_status FROM status_log")]


@proves("wire-idempotency")
def test_a_repeat_changes_nothing_and_gets_the_first_answer(database: apsw.Connection) -> None:
    assert record("busy", key()).apply(database) == 1
    assert record("busy", key(now=99)).apply(database) == Repeated(b"1")
    assert words(database) == ["busy"]
    assert list(database.execute("SELECT channel, key, recorded_at FROM request_keys")) == [
        ("capsule", "k", 7)
    ]


@proves("wire-idempotency-conflict")
def test_a_key_used_for_another_call_is_refused_and_changes_nothing(
    database: apsw.Connection,
) -> None:
    record("busy", key()).apply(database)
    with pytest.raises(MemdError) as refused:
        record("idle", key(request="b")).apply(database)
    assert refused.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert refused.value.field == "idempotency_key"
    assert words(database) == ["busy"]


@pytest.mark.parametrize(
    "other", [key("K"), key("k "), key(channel="operator"), key(channel="observer")]
)
def test_another_key_or_another_channel_is_another_call(
    database: apsw.Connection, other: RequestKey
) -> None:
    record("busy", key()).apply(database)
    assert record("busy", other).apply(database) == 2


def test_an_answer_comes_back_as_it_was(database: apsw.Connection) -> None:
    answer = StatusRecordResult(first_id=1, last_id=2**63 - 1, cursor='待機\0\n"')
    first = Keyed(key(), lambda _: answer, 0).apply(database)
    assert first is answer
    repeated = Keyed(key(), must_not_run, 0).apply(database)
    assert isinstance(repeated, Repeated)
    assert msgspec.json.decode(repeated.answer, type=StatusRecordResult) == answer


def must_not_run(connection: apsw.Connection) -> None:
    raise AssertionError("the call was made before")


def test_a_call_that_failed_keeps_no_answer_and_may_be_repeated(
    database: apsw.Connection,
) -> None:
    def fail(connection: apsw.Connection) -> None:
        raise MemdError(ErrorCode.INVALID_PARAMS, "no")

    with pytest.raises(MemdError):
        Keyed(key(), fail, 1).apply(database)
    assert find_answer(database, key()) is None
    assert record("busy", key()).apply(database) == 1


def test_a_key_that_was_never_used_has_no_answer(database: apsw.Connection) -> None:
    assert find_answer(database, key()) is None


@pytest.fixture
def small_window(monkeypatch: pytest.MonkeyPatch) -> Window:
    window = Window(200)
    monkeypatch.setattr(request_keys, "KEPT", window)
    return window


@proves("store-key-window")
@pytest.mark.usefixtures("small_window")
def test_the_newest_answers_are_kept_and_at_most_one_percent_more(
    database: apsw.Connection,
) -> None:
    count: Callable[[], object] = lambda: database.execute("SELECT count(*) FROM request_keys").get  # noqa: E731
    for number in range(1, 1001):
        keep_answer(database, key(str(number)), b"0")
        assert min(number, 200) <= int(str(count())) <= 202
    assert find_answer(database, key("801")) == Repeated(b"0")
    assert find_answer(database, key("700")) is None


@proves("store-key-window")
def test_ten_thousand_answers_are_kept_of_each_database() -> None:
    assert request_keys.KEPT.rows == 10_000

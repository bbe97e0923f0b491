"""Group commit: one transaction, and a write that fails undoes itself alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.engine.group import Write, commit_group
from jackin_memd.storage.request_keys import Repeated
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.engine.writes import (
    GROUPS,
    UNFIT,
    VIOLATING,
    Change,
    append,
    codes,
    expected_after,
    keyed,
    prepared,
    refuse_after,
)
from tests.storage.files import contents, contents_of, in_memory, opened
from tests.support.proves import proves


def fine() -> None:
    """The file is still at its path."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[apsw.Connection]:
    with opened(tmp_path / "jackin.db") as connection:
        yield connection


def commit(database: apsw.Connection, *writes: Write[Any]) -> list[Any]:
    outcomes = commit_group(database, writes, fine, "jackin.db")
    assert not database.in_transaction
    return outcomes


def words(database: apsw.Connection) -> list[str]:
    found = database.execute("SELECT id, new_status FROM status_log ORDER BY id")
    rows = list(found)
    assert [id_ for id_, _ in rows] == list(range(1, len(rows) + 1))
    return [str(word) for _, word in rows]


def test_every_write_gets_its_own_result_in_its_place(database: apsw.Connection) -> None:
    group = (append("a"), append("b", "c"), keyed("k", "d"), append("e"), keyed("k", "d"))
    assert commit(database, *group) == [1, 2, 4, 5, Repeated(b"4")]
    assert words(database) == ["a", "b", "c", "d", "e"]


def test_a_group_is_one_commit(database: apsw.Connection) -> None:
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    database.set_commit_hook(count)
    commit(database, *[append(str(number)) for number in range(100)], keyed("k", "x"))
    assert commits == 1


@proves("store-savepoints")
@pytest.mark.parametrize("bad", [VIOLATING, UNFIT], ids=["constraint", "unfit value"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_writes_that_share_a_statement_only_the_bad_one_fails(
    database: apsw.Connection, bad: Write[Any], place: int
) -> None:
    group: list[Write[Any]] = [append("a"), append("b")]
    group.insert(place, bad)
    outcomes = commit(database, *group)
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [
        write is bad for write in group
    ]
    assert words(database) == ["a", "b"]


@pytest.mark.parametrize("bad", [VIOLATING, UNFIT], ids=["constraint", "unfit value"])
def test_a_bad_write_leaves_nothing_of_itself_among_others_or_alone(
    database: apsw.Connection, bad: Write[Any]
) -> None:
    assert isinstance(commit(database, bad)[0], Exception)
    group = (append("a"), bad, keyed("k", "b"), bad, bad)
    assert [isinstance(o, Exception) for o in commit(database, *group)] == [
        False, True, False, True, True,
    ]  # fmt: skip
    assert words(database) == ["a", "b"]


@proves("store-savepoints")
def test_a_write_that_raises_undoes_what_it_did_and_keeps_its_error(
    database: apsw.Connection,
) -> None:
    outcomes = commit(database, append("a"), refuse_after(append("undone")), append("b"))
    assert codes(outcomes) == [None, "INVALID_PARAMS", None]
    assert outcomes[1].message == "refused"
    assert words(database) == ["a", "b"]


@pytest.mark.parametrize("kind", [ValueError, KeyError, RecursionError, AssertionError])
def test_any_exception_of_a_write_is_its_own_outcome(
    database: apsw.Connection, kind: type[Exception]
) -> None:
    def act(connection: apsw.Connection) -> None:
        append("undone").apply(connection)
        raise kind

    assert codes(commit(database, Change(act))) == [kind.__name__]
    assert codes(commit(database, append("a"), Change(act), append("b"))) == [
        None, kind.__name__, None,
    ]  # fmt: skip
    assert words(database) == ["a", "b"]


def test_a_wrong_statement_of_one_write_is_not_the_others_error(database: apsw.Connection) -> None:
    nonsense = Change(lambda connection: connection.execute("NONSENSE"))
    assert codes(commit(database, append("a"), nonsense, append("b"))) == [
        None, "INTERNAL_ERROR", None,
    ]  # fmt: skip
    assert words(database) == ["a", "b"]


def test_a_key_used_for_two_calls_of_one_group_is_refused_for_the_second(
    database: apsw.Connection,
) -> None:
    group = (keyed("k", "a"), keyed("k", "b", request="b"), append("c"))
    assert codes(commit(database, *group)) == [None, "IDEMPOTENCY_CONFLICT", None]
    assert words(database) == ["a", "c"]


def test_a_file_that_is_gone_after_the_commit_is_everyones_error(database: apsw.Connection) -> None:
    gone = MemdError(ErrorCode.DATABASE_REPLACED, "gone")

    def verify() -> None:
        assert not database.in_transaction  # it is too late to be asked before
        raise gone

    assert commit_group(database, [append("a"), keyed("k", "b")], verify, "jackin.db") == [gone] * 2


def test_a_lock_held_by_another_program_is_everyones_error_and_passes(
    database: apsw.Connection, tmp_path: Path
) -> None:
    database.set_busy_timeout(0)
    other = apsw.Connection(str(tmp_path / "jackin.db"))
    other.execute("BEGIN IMMEDIATE")
    assert codes(commit(database, append("a"), keyed("k", "b"))) == ["DATABASE_UNAVAILABLE"] * 2
    other.execute("ROLLBACK")
    other.close()
    assert commit(database, append("a")) == [1]


@proves("store-disk-full", "store-atomic-call")
def test_a_database_that_is_really_full_takes_nothing_by_halves_and_recovers(
    database: apsw.Connection,
) -> None:
    pages = int(str(database.execute("PRAGMA page_count").get))
    large = append(*["x" * 1000] * 100)
    database.execute(f"PRAGMA max_page_count={pages + 2}").fetchall()
    for group in ([large], [append("a"), large], [keyed("k", "a"), large, keyed("l", "b")]):
        outcomes = commit(database, *group)
        assert codes(outcomes)[-1 if group[-1] is large else 1] == "DISK_FULL"
        stored = words(database)
        assert not any(word.startswith("x") for word in stored)
        succeeded = [code is None for code in codes(outcomes)]
        assert len(stored) == sum(succeeded)
        database.execute("DELETE FROM status_log")
        database.execute("DELETE FROM request_keys")
    database.execute("PRAGMA max_page_count=1000000").fetchall()
    assert commit(database, large, append("a")) == [1, 101]


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_leaves_what_its_writes_leave_one_by_one(tmp_path: Path, name: str) -> None:
    schema, writes = GROUPS[name]
    path = tmp_path / "group.db"
    prepared(path, schema)
    before = path.with_name("before.db")
    shutil.copy(path, before)
    with opened(path, schema) as connection:
        outcomes = commit(connection, *writes)
    assert contents(path) == expected_after(before, writes, outcomes)


instance_writes = st.lists(
    st.one_of(
        st.builds(append, st.sampled_from("abc")),
        st.builds(append, st.sampled_from("abc"), st.just("second")),
        st.builds(
            keyed, st.sampled_from("kl"), st.sampled_from("xy"), request=st.sampled_from("ab")
        ),
        st.builds(lambda word: refuse_after(append(word)), st.sampled_from("abc")),
        st.sampled_from([VIOLATING, UNFIT]),
    ),
    max_size=25,
)


@proves("store-savepoints", "store-atomic-call")
@given(instance_writes, st.lists(st.integers(1, 8), min_size=25, max_size=25))
def test_any_writes_in_any_groups_leave_what_they_leave_one_by_one(
    writes: list[Write[Any]], sizes: list[int]
) -> None:
    grouped, alone = in_memory(), in_memory()
    outcomes: list[Any] = []
    for size in sizes:
        group = writes[len(outcomes) : len(outcomes) + size]
        outcomes += commit(grouped, *group) if group else []
    one_by_one = [commit(alone, write)[0] for write in writes]
    assert codes(outcomes) == codes(one_by_one)
    assert results(outcomes) == results(one_by_one)
    assert contents_of(grouped) == contents_of(alone)


def results(outcomes: list[Any]) -> list[Any]:
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]

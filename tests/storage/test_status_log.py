"""status_log: append, page, follow, trim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.core.rolling import Window
from jackin_memd.storage import status_log
from jackin_memd.storage.status_log import Append, NewRow
from jackin_memd.wire.codec import encode
from tests.storage.files import in_memory, opened
from tests.support.proves import proves

MANY = 1 << 30


@pytest.fixture
def log() -> Iterator[apsw.Connection]:
    connection = in_memory()
    yield connection
    connection.close()


def rows(*words: str) -> list[NewRow]:
    return [(number, word, None) for number, word in enumerate(words)]


def ids(log: apsw.Connection) -> list[int]:
    return [int(id_) for (id_,) in log.execute("SELECT id FROM status_log ORDER BY id")]


# -- appending -----------------------------------------------------------------


def test_the_rows_of_a_call_have_consecutive_ids_from_the_one_returned(
    log: apsw.Connection,
) -> None:
    assert status_log.append(log, rows("busy", "idle")) == 1
    assert status_log.append(log, rows("question")) == 3
    found = list(log.execute("SELECT id, occurred_at, new_status FROM status_log"))
    assert found == [(1, 0, "busy"), (2, 1, "idle"), (3, 0, "question")]


def test_calls_that_share_a_statement_each_get_their_own_first_id(log: apsw.Connection) -> None:
    run = [Append(rows(*"a" * size)) for size in (1, 3, 2)]
    assert Append.apply_run(log, run) == [1, 2, 5]
    assert [write.row_count for write in run] == [1, 3, 2]
    assert Append(rows("next")).apply(log) == 7


@given(st.lists(st.integers(1, 7), min_size=1, max_size=10))
def test_a_run_is_the_same_as_its_calls_one_by_one(sizes: list[int]) -> None:
    together, alone = in_memory(), in_memory()
    writes = [Append(rows(*(f"{n}.{i}" for i in range(size)))) for n, size in enumerate(sizes)]
    assert Append.apply_run(together, writes) == [write.apply(alone) for write in writes]
    everything = "SELECT * FROM status_log"
    assert list(together.execute(everything)) == list(alone.execute(everything))


@proves("status-trim")
@given(st.lists(st.integers(1, 120), max_size=40))
def test_the_newest_rows_stay_whatever_the_sizes_of_the_calls(sizes: list[int]) -> None:
    log, window, total = in_memory(), Window(200), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status_log, "STATUS_LOG", window)
        for size in sizes:
            assert status_log.append(log, rows(*"x" * size)) == total + 1
            total += size
            assert ids(log) == list(range(max(1, total - len(ids(log)) + 1), total + 1))
            assert min(total, 200) <= len(ids(log)) <= 202


@proves("status-trim")
def test_ten_thousand_rows_are_kept_and_at_most_one_percent_more(log: apsw.Connection) -> None:
    for _ in range(250):
        status_log.append(log, rows(*["busy"] * 99))
        assert len(ids(log)) <= 10_100
    assert len(ids(log)) >= 10_000
    assert ids(log)[-1] == 250 * 99


# -- reading -------------------------------------------------------------------


@proves("status-pages")
def test_pages_go_from_the_newest_to_the_oldest_and_miss_nothing(log: apsw.Connection) -> None:
    status_log.append(log, rows(*(str(number) for number in range(1, 26))))
    seen: list[str] = []
    before: int | None = None
    while page := status_log.page(log, before, 7, MANY):
        seen += [row.new_status for row in page]
        before = page[-1].id
    assert seen == [str(number) for number in range(25, 0, -1)]


def test_what_comes_after_a_row_goes_from_the_oldest_to_the_newest(log: apsw.Connection) -> None:
    status_log.append(log, rows(*"abcde"))
    assert [row.new_status for row in status_log.after(log, 2, 2, MANY)] == ["c", "d"]
    assert [row.id for row in status_log.after(log, 0, 100, MANY)] == [1, 2, 3, 4, 5]
    assert status_log.after(log, 5, 100, MANY) == []


@pytest.mark.parametrize("read", [status_log.page, status_log.after])
def test_a_page_stops_once_it_is_large_enough_and_has_one_row_at_least(
    log: apsw.Connection, read: Any
) -> None:
    large = encode("x" * 1000).decode()
    status_log.append(log, [(1, "busy", large)] * 10)
    start = None if read is status_log.page else 0
    assert len(read(log, start, 100, 1)) == 1
    assert len(read(log, start, 100, 3000)) == 3
    assert len(read(log, start, 4, MANY)) == 4


@given(st.lists(st.tuples(st.text("ab -"), st.none() | st.text(max_size=300)), min_size=1))
def test_a_page_is_over_its_bound_by_its_last_row_alone(
    texts: list[tuple[str, str | None]],
) -> None:
    log = in_memory()
    status_log.append(
        log, [(2**63 - 1, word, None if more is None else encode(more).decode())
              for word, more in texts]
    )  # fmt: skip
    for bound in (1, 500, 2000):
        found = status_log.after(log, 0, 1000, bound)
        assert len(encode(found[:-1])) <= bound + 2


def test_the_span_is_of_the_rows_that_are_there(log: apsw.Connection) -> None:
    assert status_log.span(log) == (1, 0)
    status_log.append(log, rows(*"abc"))
    assert status_log.span(log) == (1, 3)
    log.execute("DELETE FROM status_log WHERE id < 3")
    assert status_log.span(log) == (3, 3)


METADATA: list[Any] = [
    None, True, 0, -(2**63), 2**63 - 1, 1.5, "", "null", "\0\n\"\\", "待機 🙂", [], {},
    {"prompt": "go on?", "choices": ["y", None, {"deep": [1]}]},
]  # fmt: skip


@proves("status-metadata")
@pytest.mark.parametrize("value", METADATA, ids=repr)
def test_metadata_comes_back_as_the_json_it_was(log: apsw.Connection, value: Any) -> None:
    status_log.append(log, [(1, "busy", None if value is None else encode(value).decode())])
    (row,) = status_log.page(log, None, 1, MANY)
    assert msgspec.json.decode(row.metadata) == value


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("'not JSON'", "not JSON"),
        ("'{cut'", "{cut"),
        ("''", ""),
        ("'{a:1}'", "{a:1}"),  # JSON5, which the wire does not speak
        ("'say \"hi\"\n'", 'say "hi"\n'),
        ("7", 7),
        ("1.5", 1.5),
        ("x'6e6f'", "no"),
        ("x'7b7d'", {}),
        ("x'ff00'", "\ufffd\0"),
        ("CAST(x'ff' AS TEXT)", "\ufffd"),
    ],
)
def test_metadata_by_a_foreign_hand_is_shown_and_breaks_no_page(
    log: apsw.Connection, stored: str, shown: Any
) -> None:
    log.execute(f"INSERT INTO status_log VALUES (1, 1, 'x', {stored})")  # noqa: S608
    for found in (status_log.page(log, None, 9, MANY), status_log.after(log, 0, 9, MANY)):
        assert [msgspec.json.decode(row.metadata) for row in found] == [shown]


@pytest.mark.parametrize(
    ("word", "shown"), [("x'6e6f'", "no"), ("CAST(x'ff' AS TEXT)", "\ufffd"), ("7", "7")]
)
def test_a_status_by_a_foreign_hand_is_shown_as_text(
    log: apsw.Connection, word: str, shown: str
) -> None:
    log.execute(f"INSERT INTO status_log VALUES (1, 'late', {word}, NULL)")  # noqa: S608
    (row,) = status_log.page(log, None, 9, MANY)
    assert (row.new_status, row.occurred_at) == (shown, 0)


def test_a_page_that_stops_early_holds_no_lock(tmp_path: Path) -> None:
    with opened(tmp_path / "jackin.db") as log:
        status_log.append(log, [(1, "busy", '"x"')] * 100)
        assert len(status_log.page(log, None, 100, 1)) == 1
        assert not log.in_transaction
        ((busy, _, _),) = log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert busy == 0

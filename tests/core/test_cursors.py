"""Cursors: a place in one database, refused everywhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.core.cursors import Epoch, is_cursor, make_cursor, place_in, read_cursor
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.support.proves import proves

EPOCH = Epoch("00112233445566ff")
epochs = st.text("0123456789abcdef", min_size=16, max_size=16).map(Epoch)
row_ids = st.integers(0, 2**63 - 1)


@given(epochs, row_ids)
def test_a_cursor_comes_back_as_the_row_it_was_made_of(epoch: Epoch, row_id: int) -> None:
    cursor = make_cursor(epoch, row_id)
    assert is_cursor(cursor)
    assert place_in(cursor, epoch, head=row_id) == row_id
    assert read_cursor(cursor, epoch, row_id, field="before") == row_id


@proves("store-epoch")
@given(epochs, epochs, row_ids)
def test_a_cursor_of_another_database_is_no_place_in_this_one(
    made: Epoch, asked: Epoch, row_id: int
) -> None:
    found = place_in(make_cursor(made, row_id), asked, head=2**63 - 1)
    assert found == (row_id if made == asked else None)


@given(row_ids, row_ids)
def test_a_cursor_ahead_of_the_newest_row_is_no_place(row_id: int, head: int) -> None:
    found = place_in(make_cursor(EPOCH, row_id), EPOCH, head)
    assert found == (row_id if row_id <= head else None)


def test_the_place_before_the_first_row_stands_in_an_empty_table() -> None:
    assert place_in(make_cursor(EPOCH, 0), EPOCH, head=0) == 0


@pytest.mark.parametrize(
    "junk",
    ["", ".", "5", EPOCH, f"{EPOCH}.", f".{EPOCH}", f"{EPOCH}.-1", f"{EPOCH}.05", f"{EPOCH}.1 ",
     f"{EPOCH}.1\n", f"{EPOCH}.+1", f"{EPOCH}.1_0", f"{EPOCH}.٣", f"{EPOCH}.1e3", f"{EPOCH}.0x1",
     f"{EPOCH.upper()}.1", f"{EPOCH}0.1", f"{EPOCH[1:]}.1", f"{EPOCH}." + "9" * 20,
     f"{EPOCH}." + "9" * 5000],
)  # fmt: skip
def test_junk_is_no_cursor(junk: str) -> None:
    assert not is_cursor(junk)
    assert place_in(junk, EPOCH, head=2**63 - 1) is None


@given(st.text() | st.from_regex(r"[0-9a-f]{14,18}\.[0-9]{1,20}", fullmatch=True))
def test_any_text_is_a_place_that_writes_itself_the_same_way_or_none(text: str) -> None:
    place = place_in(text, Epoch(text[:16]), head=2**63 - 1)
    assert place is None or make_cursor(Epoch(text[:16]), place) == text


@pytest.mark.parametrize(
    "cursor",
    ["junk", make_cursor(Epoch("f" * 16), 1), make_cursor(EPOCH, 11)],
    ids=["junk", "another database", "ahead of the newest row"],
)
def test_a_call_that_needs_the_place_is_refused_by_field(cursor: str) -> None:
    with pytest.raises(MemdError) as refused:
        read_cursor(cursor, EPOCH, 10, field="before")
    assert (refused.value.code, refused.value.field) == (ErrorCode.CURSOR_INVALID, "before")
    assert "without a cursor" in (refused.value.hint or "")
    assert cursor not in str(refused.value)

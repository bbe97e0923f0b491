"""Rolling windows: the newest rows stay, whatever the sizes of the appends."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackin_memd.core.rolling import STATUS_LOG, Window
from tests.support.proves import proves


class Table:
    """Ids that a table would hold, trimmed as the window says."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.ids: list[int] = []
        self.trims = 0

    def append(self, count: int) -> None:
        last = self.ids[-1] if self.ids else 0
        self.ids += range(last + 1, last + count + 1)
        keep_from = self.window.trim_below(last + 1, last + count)
        if keep_from is not None:
            self.trims += 1
            self.ids = [id_ for id_ in self.ids if id_ >= keep_from]


@proves("status-trim")
@given(st.integers(1, 1200), st.lists(st.integers(1, 400), max_size=60))
@example(rows=100, sizes=[1] * 300)
@example(rows=1, sizes=[1, 2, 1])
@example(rows=1000, sizes=[999, 1, 1, 9, 1, 5000, 1])
def test_the_newest_rows_stay_with_at_most_one_percent_more(rows: int, sizes: list[int]) -> None:
    table = Table(Window(rows))
    total = 0
    for size in sizes:
        table.append(size)
        total += size
        assert table.ids == list(range(total - len(table.ids) + 1, total + 1))
        assert len(table.ids) >= min(total, rows)
        assert (len(table.ids) - rows) * 100 <= rows


def test_trimming_waits_for_the_interval_so_that_most_appends_cost_nothing() -> None:
    table = Table(Window(10_000))
    for _ in range(30_000):
        table.append(1)
    assert table.trims == 200  # every 100th of the 20,000 beyond the window


def test_nothing_is_let_go_before_the_window_is_full() -> None:
    window = Window(1000)
    assert all(window.trim_below(id_, id_) is None for id_ in range(1, 1001))
    assert window.trim_below(1010, 1010) == 11


def test_one_append_over_the_whole_window_keeps_its_newest() -> None:
    assert Window(100).trim_below(1, 250) == 151


@pytest.mark.parametrize(("rows", "interval"), [(1, 1), (99, 1), (100, 1), (1000, 10)])
def test_the_interval_is_one_percent_of_the_window_and_at_least_one(
    rows: int, interval: int
) -> None:
    assert Window(rows).interval == interval


def test_the_status_log_keeps_the_seeds_ten_thousand() -> None:
    assert STATUS_LOG.rows == 10_000

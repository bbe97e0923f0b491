"""Rolling windows: when an append is due to trim, and what it lets go.

Trimming rides on inserts, never on a timer. The interval keeps the overshoot
at 1 % of the window.
"""

from __future__ import annotations

import msgspec


class Window(msgspec.Struct, frozen=True):
    """A table keeps its newest `rows`; every `interval`-th insert trims."""

    rows: int

    @property
    def interval(self) -> int:
        return max(1, self.rows // 100)

    def trim_below(self, first_id: int, last_id: int) -> int | None:
        """After ids `first_id..last_id` were appended: let go every id below
        this one; None where no trimming is due.

        Ids are consecutive (rows leave at the old end only), so that counting
        ids is counting rows.
        """
        if (first_id - 1) // self.interval == last_id // self.interval:
            return None
        keep_from = last_id - self.rows + 1
        return keep_from if keep_from > 1 else None


STATUS_LOG = Window(10_000)

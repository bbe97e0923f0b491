"""Text for people is safe to print, aligned, and right about time."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_mem import render

HOSTILE = [
    ("\x1b[2J\x1b[31mred", r"\x1b[2J\x1b[31mred"),
    ("title\x1b]0;pwned\x07", r"title\x1b]0;pwned\x07"),
    ("\x9b31m", r"\x9b31m"),
    ("line\nfeed\rreturn\ttab", r"line\nfeed\rreturn\ttab"),
    ("back\x08space\x7f", r"back\x08space\x7f"),
    ("left\u202eright\u2066x\u2069", r"left\u202eright\u2066x\u2069"),
    ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
    ("tag\U000e0041", r"tag\U000e0041"),
    ("lone\ud800", r"lone\ud800"),
    ("para\u2029graph", r"para\u2029graph"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_what_a_terminal_would_obey_is_shown_instead(text: str, shown: str) -> None:
    assert render.printable(text) == shown


@pytest.mark.parametrize("text", ["working", "grün 測試 ✓", "👩‍💻", "שלום", "e\u0301"])
def test_writing_is_left_alone(text: str) -> None:
    assert render.printable(text) == text
    assert render.safe_json(text) == text


@given(st.text())
def test_no_text_gets_control_of_the_terminal(text: str) -> None:
    shown = render.printable(text)
    # Unicode's own classes: controls, surrogates, line and paragraph separators.
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    bidirectional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not [c for c in shown if unicodedata.bidirectional(c) in bidirectional]
    shown.encode()
    assert render.printable(shown) == shown


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_safe_json_means_the_same(value: object) -> None:
    for indent in (None, 2):
        plain = json.dumps(value, ensure_ascii=False, indent=indent)
        safe = render.safe_json(plain)
        assert json.loads(safe) == value
        assert render.printable(safe.replace("\n", "")) == safe.replace("\n", "")


# -- layout -------------------------------------------------------------------


def test_a_table_is_aligned_by_what_is_seen() -> None:
    text = render.table(("NAME", "STATE"), [("測試", "idle"), ("a\x1bb", "working"), ("é", "-")])
    assert text.splitlines() == [
        "NAME    STATE",
        "測試    idle",
        r"a\x1bb  working",
        "é       -",
    ]


def test_a_table_without_rows_is_its_headers() -> None:
    assert render.table(("A", "B"), []) == "A  B"


def test_fields_are_aligned_and_safe() -> None:
    assert render.fields([("a", "x\ny"), ("long", "z")]) == "a     x\\ny\nlong  z"


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("測試中", 5, "測試…"),
        ("測試", 4, "測試"),
        ("", 0, ""),
    ],
)
def test_what_is_cut_says_so(text: str, columns: int, cut: str) -> None:
    assert render.fit(text, columns) == cut


@given(st.text(), st.integers(1, 20))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    assert render.width(render.fit(text, columns)) <= columns


# -- times --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "just now"),
        (1, "1 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (86399, "23 h ago"),
        (86400, "1 d ago"),
        (86400 * 400, "400 d ago"),
        (-90, "in 1 min"),
        (-86400, "in 1 d"),
    ],
)
def test_relative_times(seconds: int, told: str) -> None:
    assert render.relative(1_000_000_000 - seconds, 1_000_000_000.9) == told


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_times_are_local() -> None:
    assert render.local_time(1_000_000_000) == "2001-09-09 02:46:40"
    assert render.local_day(1_000_000_000) == "2001-09-09"
    assert render.local_clock(1_000_000_000) == "02:46:40"
    assert render.since(1_000_000_000, 1_000_000_060) == "2001-09-09 02:46:40 (1 min ago)"


def test_a_time_that_no_calendar_holds_is_its_number() -> None:
    assert render.local_time(2**63 - 1) == str(2**63 - 1)


# -- words --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "short"),
    [
        ("jk-k7p9m2xq-shop-builder", ("k7p9m2xq", "shop-builder")),
        ("jk-k7p9m2xq", ("", "jk-k7p9m2xq")),
        ("jk-k7p9m2xq-", ("", "jk-k7p9m2xq-")),
        ("other", ("", "other")),
        ("x-k7p9m2xq-shop", ("", "x-k7p9m2xq-shop")),
    ],
)
def test_short_names(container: str, short: tuple[str, str]) -> None:
    assert render.short_name(container) == short


def test_counted_things() -> None:
    assert render.counted(1, "row") == "1 row"
    assert render.counted(0, "row") == "0 rows"
    assert render.counted(12345, "row") == "12,345 rows"

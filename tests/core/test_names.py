"""Container names: none that is accepted can lead out of its folder."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackin_memd.core.names import RESERVED, is_short_id, parse_container, short_id
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container
from tests.support.proves import proves

INNER = string.ascii_lowercase + string.digits + "-"
EDGE = string.ascii_lowercase + string.digits

labels = st.builds(
    lambda first, inner, last: first + inner + last,
    st.sampled_from(EDGE),
    st.text(INNER, max_size=61),
    st.sampled_from(EDGE),
)
anything = (
    st.text()
    | st.text(INNER, max_size=70)
    | st.text("ab9-./\\\0AZ_ \n\ré\u0131\uff41", max_size=66)
)


def accepted(name: str) -> bool:
    try:
        parse_container(name)
    except MemdError as error:
        assert error.code is ErrorCode.INSTANCE_NAME_INVALID
        assert error.field == "container"
        return False
    return True


@proves("instance-names")
@given(anything)
@example(".")
@example("..")
@example("shop\n")
@example("ſhop")  # a letter that lower-cases to s
@example("a" * 64)
@example("-shop")
@example("shop-")
def test_no_accepted_name_can_lead_out_of_its_folder(name: str) -> None:
    if not accepted(name):
        return
    assert set(name) <= set(INNER)
    assert 1 <= len(name.encode()) <= 63
    assert name not in RESERVED
    data = Path("/home/data")
    assert (data / name).parent == data
    assert (data / name).name == name


@given(labels)
def test_every_dns_label_of_lower_case_is_accepted_as_it_is(name: str) -> None:
    assert parse_container(name) == name


@pytest.mark.parametrize("length", [1, 63])
def test_the_shortest_and_the_longest_label_are_accepted(length: int) -> None:
    assert accepted("a" * length)


@proves("instance-names")
@pytest.mark.parametrize(
    "name", ["daemon", "workspaces", "usage-menu-bar", "usage-broker", "usage-shared", "deja-vu",
             "universe-pending"],
)  # fmt: skip
def test_a_folder_of_jackins_own_is_no_instance(name: str) -> None:
    assert not accepted(name)


def test_a_refusal_names_the_field_and_says_what_would_be_right() -> None:
    with pytest.raises(MemdError) as refused:
        parse_container("Shop", field="instance")
    assert refused.value.field == "instance"
    assert "1 to 63 characters" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("jk-k7p9m2xq-shop-builder", "k7p9m2xq"),
        ("jk-k7p9m2xq-builder", "k7p9m2xq"),
        ("jk-k7p9m2xq", None),  # no dash behind it
        ("jk-k7p9m2x-builder", None),
        ("jk-k7p9m2xqq-builder", None),
        ("jk-k7p9m2xi-builder", None),  # i, l, o and u are not in the alphabet
        ("jk-k7p9m2xl-builder", None),
        ("jk-k7p9m2xo-builder", None),
        ("jk-k7p9m2xu-builder", None),
        ("xx-k7p9m2xq-builder", None),
        ("k7p9m2xq-builder", None),
        ("jk", None),
    ],
)
def test_the_short_id_is_what_stands_between_jk_and_the_next_dash(
    container: str, expected: str | None
) -> None:
    assert short_id(Container(container)) == expected


@given(st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=8, max_size=8))
def test_every_short_id_is_read_out_of_its_container_name(id_: str) -> None:
    assert is_short_id(id_)
    assert short_id(parse_container(f"jk-{id_}-shop")) == id_


@pytest.mark.parametrize("text", ["", "k7p9m2xq\n", "K7P9M2XQ", "k7p9m2x", "k7p9m2xqa", "../../.."])
def test_what_is_not_eight_of_the_alphabet_is_no_short_id(text: str) -> None:
    assert not is_short_id(text)

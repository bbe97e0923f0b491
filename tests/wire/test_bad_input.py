"""Bad parameters are refused for every method, and the refusal names the field."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Raw

from jackin_memd.wire.codec import decode_params
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.methods import METHODS, Effect, Method, Reach
from jackin_memd.wire.vocab import ONE_LINE, ONE_LINE_OR_NONE, Channel
from tests.support.proves import proves
from tests.wire.bad_input import BadParams, bad_params, good_params


def decoder(method: Method) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(method.params)


@pytest.mark.parametrize("name", METHODS)
def test_the_good_params_that_the_bad_ones_differ_from_are_good(name: str) -> None:
    method = METHODS[name]
    assert decode_params(Raw(good_params(method)), decoder(method)) is not None


@proves("wire-precise-errors")
@pytest.mark.parametrize("name", METHODS)
def test_bad_params_are_refused_with_the_field_that_is_wrong(name: str) -> None:
    method = METHODS[name]
    decode = decoder(method)
    wrong = []
    for bad in bad_params(method):
        try:
            got: object = decode_params(Raw(bad.raw), decode)
        except MemdError as error:
            got = (error.code, error.field)
        if got != (bad.code, bad.field):
            wrong.append((bad.label, bad.field, got))
    assert wrong == []


@proves("wire-precise-errors")
@pytest.mark.parametrize("name", METHODS)
def test_a_refusal_is_short_however_long_the_bad_value_is(name: str) -> None:
    method = METHODS[name]
    for bad in bad_params(method):
        with pytest.raises(MemdError) as caught:
            decode_params(Raw(bad.raw), decoder(method))
        assert len(caught.value.message) <= 400


@proves("wire-hello-every-version")
@pytest.mark.parametrize("name", [m.name for m in METHODS.values() if m.any_version])
def test_a_method_for_any_version_ignores_what_it_does_not_know(name: str) -> None:
    method = METHODS[name]
    newer = good_params(method).replace(b"{", b'{"of_a_later_version":[1],', 1).replace(b",}", b"}")
    assert decode_params(Raw(newer), decoder(method)) is not None


@pytest.mark.parametrize("name", [m.name for m in METHODS.values() if not m.any_version])
def test_every_other_method_is_tried_with_unknown_fields(name: str) -> None:
    labels = [bad.label for bad in bad_params(METHODS[name])]
    assert "unknown no_such_field" in labels


#: Text parameters that take any characters: each is only compared, never stored.
FREE_TEXT = {
    "hello build", "status.list before", "status.subscribe after[]",
    "subscription.cancel subscription",
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_every_text_parameter_refuses_control_characters_or_is_known_to_be_free(name: str) -> None:
    labels = {bad.label for bad in bad_params(METHODS[name])}
    texts = {
        label.removesuffix(": invalid UTF-8")
        for label in labels
        if label.endswith(": invalid UTF-8") and f"{label.split(':')[0]}: '\\n'" not in labels
    }
    lax = {path for path in texts if f"{path}: 'a\\x00b'" not in labels}
    lax = {path for path in lax if not path.endswith("metadata")}  # any JSON, not a text
    assert {f"{name} {path}" for path in lax} <= FREE_TEXT


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    word: Annotated[str, Meta(min_length=1, max_length=3, pattern=ONE_LINE)]


class Everything(msgspec.Struct, forbid_unknown_fields=True):
    flag: bool
    inners: Annotated[list[Inner], Meta(min_length=1, max_length=2)]
    kind: Channel | None = None
    level: Annotated[int, Meta(ge=1, le=9)] = 1
    by_name: dict[str, Inner] = {}
    ratio: float = 0.0
    choice: Literal["a", "b"] = "a"
    anything: Any = None


EVERYTHING = Method(
    "x", Everything, None, Effect.READ, Reach.HOST, frozenset(Channel), "Of every kind of field."
)


def test_what_is_tried_covers_every_kind_of_field() -> None:
    """A generator that yields nothing would make the tests above pass for nothing."""
    labels = {bad.label for bad in bad_params(EVERYTHING)}
    assert labels >= {
        "params of type array", "flag missing", "flag of type int", "flag: NaN", "flag twice",
        "inners too short", "inners too long", "inners[1] of type str", "inners[1].word missing",
        "inners[1].word too long", "inners[1].word: '\\x00'", "unknown inners[1].no_such_field",
        "kind: 'no such word'", "kind of type int", "level: 0", "level: 10",
        "level: 9223372036854775808", "by_name[] of type int", "by_name[].word of type null",
        "ratio of type bool", "choice: 'no such word'", "anything: NaN", "anything: 1e999",
    }  # fmt: skip


@pytest.mark.parametrize("bad", list(bad_params(EVERYTHING)), ids=lambda bad: bad.label)
def test_every_kind_of_field_refuses_what_is_bad_for_it(bad: BadParams) -> None:
    with pytest.raises(MemdError) as caught:
        decode_params(Raw(bad.raw), decoder(EVERYTHING))
    assert caught.value.code is bad.code
    assert caught.value.field == bad.field


def test_a_line_with_control_characters_is_refused_in_words_not_with_a_pattern() -> None:
    with pytest.raises(MemdError) as caught:
        decode_params(Raw(b'{"instance":"a\\u0000b"}'), decoder(METHODS["status.latest"]))
    assert caught.value.message == (
        "Expected one line of text without control characters at instance"
    )


@pytest.mark.parametrize("name", METHODS)
def test_the_words_for_a_refused_pattern_are_true_of_every_pattern(name: str) -> None:
    schema = msgspec.json.encode(msgspec.json.schema(METHODS[name].params)).decode()
    patterns = set(re.findall(r'"pattern":("(?:[^"\\]|\\.)*")', schema))
    assert {json.loads(pattern) for pattern in patterns} <= {ONE_LINE, ONE_LINE_OR_NONE}

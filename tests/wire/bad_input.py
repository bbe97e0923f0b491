"""Bad parameters for any method, made from its type.

    for bad in bad_params(METHODS["status.record"]):
        bad.raw, bad.field, bad.code, bad.label

Each `raw` differs from good params in one thing, and `field` and `code` are
what the refusal must say. Where the JSON itself is bad (PARSE_ERROR) the
whole frame can't be read, so a daemon may answer with a null id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import msgspec
from msgspec import inspect

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.methods import Method

#: One JSON text of each kind.
_KINDS = {
    "null": b"null",
    "bool": b"true",
    "int": b"1",
    "float": b"1.5",
    "str": b'"text"',
    "array": b"[]",
    "object": b"{}",
}

#: What is not JSON in UTF-8, as a whole or as a text.
_NOT_JSON = {"NaN": b"NaN", "Infinity": b"-Infinity", "nothing": b""}
_NOT_TEXT = {
    "invalid UTF-8": b'"\xff"',
    "a lone surrogate": b'"\\ud800"',
    "a bare control character": b'"\n"',
}

_CONTROLS = ("\0", "a\0b", "a\nb", "a\n", "\x1b[31m", "\x7f", "\u2028")


class BadParams(msgspec.Struct, frozen=True):
    label: str
    raw: bytes
    field: str | None
    """What `data.field` must be."""
    code: ErrorCode = ErrorCode.INVALID_PARAMS


def good_params(method: Method) -> bytes:
    """The least that the method's decoder accepts."""
    return _good(inspect.type_info(method.params))


def bad_params(method: Method) -> Iterator[BadParams]:
    """Every kind of bad params that the method's type has room for."""
    info = inspect.type_info(method.params)
    assert isinstance(info, inspect.StructType)
    for kind, text in _KINDS.items():
        if kind != "object":
            yield BadParams(f"params of type {kind}", text, None)
    for label, raw, path, code in _bad_struct(info, ""):
        yield BadParams(label, raw, path or None, code)


_Bad = tuple[str, bytes, str, ErrorCode]


# -- what is good ---------------------------------------------------------------


@singledispatch
def _good(info: Any) -> bytes:
    raise NotImplementedError(f"no good value is known for {info}")


@_good.register
def _(info: inspect.StructType) -> bytes:
    return _object({f.encode_name: _good(f.type) for f in info.fields if f.required})


@_good.register
def _(info: inspect.Metadata) -> bytes:
    return _good(info.type)


@_good.register(inspect.NoneType)
@_good.register(inspect.AnyType)
@_good.register(inspect.RawType)
def _(info: Any) -> bytes:
    return b"null"


@_good.register
def _(info: inspect.UnionType) -> bytes:
    return _good(next(t for t in info.types if not isinstance(t, inspect.NoneType)))


@_good.register
def _(info: inspect.BoolType) -> bytes:
    return b"true"


@_good.register(inspect.IntType)
@_good.register(inspect.FloatType)
def _(info: inspect.IntType | inspect.FloatType) -> bytes:
    least = info.ge if info.ge is not None else 1
    return str(max(int(least), 1) if info.gt is None else int(info.gt) + 1).encode()


@_good.register
def _(info: inspect.StrType) -> bytes:
    return json.dumps("x" * max(info.min_length or 1, 1)).encode()


@_good.register
def _(info: inspect.EnumType) -> bytes:
    return msgspec.json.encode(next(iter(info.cls)))


@_good.register
def _(info: inspect.LiteralType) -> bytes:
    return msgspec.json.encode(info.values[0])


@_good.register
def _(info: inspect.ListType) -> bytes:
    return b"[" + b",".join([_good(info.item_type)] * max(info.min_length or 1, 1)) + b"]"


@_good.register
def _(info: inspect.DictType) -> bytes:
    return _object({json.loads(_good(info.key_type)): _good(info.value_type)})


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(_member(*member) for member in members.items()) + b"}"


def _member(name: str, value: bytes) -> bytes:
    return json.dumps(name).encode() + b":" + value


# -- what is bad ----------------------------------------------------------------


def _bad_struct(info: inspect.StructType, at: str) -> Iterator[_Bad]:
    """Bad objects, `at` being where the object stands."""
    required = {f.encode_name: _good(f.type) for f in info.fields if f.required}
    prefix = f"{at}." if at else ""
    if info.forbid_unknown_fields:
        for name in ("no_such_field", "", "Ünknown", "a`b"):
            yield _invalid(f"unknown {prefix}{name}", _object(required | {name: b"1"}),
                           prefix + name)  # fmt: skip
    for name in required:
        rest = {other: value for other, value in required.items() if other != name}
        yield _invalid(f"{prefix}{name} missing", _object(rest), prefix + name)
    for field in info.fields:
        name, path = field.encode_name, prefix + field.encode_name
        good = _good(field.type)
        twice = _object(required | {name: good})[:-1] + b"," + _member(name, good) + b"}"
        yield _invalid(f"{path} twice", twice, name)
        for label, value, where, code in _bad_value(field.type, path):
            yield label, _object(required | {name: value}), where, code
        # Where no free text may stand, its kind or word may be refused before its bytes.
        for label, value in (_NOT_JSON | (_NOT_TEXT if _takes_text(field.type) else {})).items():
            raw = _object(required | {name: value})
            yield f"{path}: {label}", raw, "", ErrorCode.PARSE_ERROR


def _bad_value(info: Any, path: str) -> Iterator[_Bad]:
    """Bad values of one field: wrong kinds first, then what its type refuses inside."""
    kinds = _accepted(info)
    for kind, value in _KINDS.items():
        if kind not in kinds:
            yield _invalid(f"{path} of type {kind}", value, path)
    yield _invalid(f"{path}: 1e999", b"1e999", path)
    yield _invalid(f"{path}: a number of 5000 digits", b"9" * 5000, path)
    yield from _bad_inside(info, path)


@singledispatch
def _accepted(info: Any) -> frozenset[str]:
    """The kinds of JSON that the type takes."""
    raise NotImplementedError(f"the JSON of {info} is not known")


def _accepts(kind: type[Any], *kinds: str) -> None:
    accepted = frozenset(kinds)
    _accepted.register(kind, lambda _: accepted)


_accepts(inspect.NoneType, "null")
_accepts(inspect.BoolType, "bool")
_accepts(inspect.IntType, "int")
_accepts(inspect.FloatType, "int", "float")
_accepts(inspect.StrType, "str")
_accepts(inspect.ListType, "array")
_accepts(inspect.DictType, "object")
_accepts(inspect.StructType, "object")
_accepts(inspect.AnyType, *_KINDS)
_accepts(inspect.RawType, *_KINDS)


@_accepted.register
def _(info: inspect.EnumType) -> frozenset[str]:
    return frozenset({"int" if isinstance(next(iter(info.cls)).value, int) else "str"})


@_accepted.register
def _(info: inspect.LiteralType) -> frozenset[str]:
    return frozenset({"int" if isinstance(value, int) else "str" for value in info.values})


@_accepted.register
def _(info: inspect.UnionType) -> frozenset[str]:
    return frozenset().union(*map(_accepted, info.types))


@_accepted.register
def _(info: inspect.Metadata) -> frozenset[str]:
    return _accepted(info.type)


def _takes_text(info: Any) -> bool:
    if isinstance(info, inspect.UnionType):
        return any(map(_takes_text, info.types))
    if isinstance(info, inspect.Metadata):
        return _takes_text(info.type)
    return isinstance(info, inspect.StrType | inspect.AnyType | inspect.RawType)


@singledispatch
def _bad_inside(info: Any, path: str) -> Iterator[_Bad]:
    """Values of the right kind that the type must refuse."""
    return iter(())


@_bad_inside.register
def _(info: inspect.Metadata, path: str) -> Iterator[_Bad]:
    yield from _bad_inside(info.type, path)


@_bad_inside.register
def _(info: inspect.UnionType, path: str) -> Iterator[_Bad]:
    for one in info.types:
        yield from _bad_inside(one, path)


@_bad_inside.register
def _(info: inspect.IntType, path: str) -> Iterator[_Bad]:
    # Every integer must end within 64 bits, so these hold without a bound too.
    least = -(2**63) if info.ge is None else info.ge
    most = 2**63 - 1 if info.le is None else info.le
    for number in (least - 1, most + 1, 2**63, -(2**63) - 1, 2**64, 2**70):
        yield _invalid(f"{path}: {number}", str(number).encode(), path)


@_bad_inside.register
def _(info: inspect.StrType, path: str) -> Iterator[_Bad]:
    if info.min_length:
        yield _invalid(f"{path} too short", _text("x" * (info.min_length - 1)), path)
    if info.max_length is not None:
        yield _invalid(f"{path} too long", _text("x" * (info.max_length + 1)), path)
    for text in _CONTROLS:
        if info.pattern is not None and re.search(info.pattern, text) is None:
            yield _invalid(f"{path}: {text!r}", _text(text), path)


@_bad_inside.register(inspect.EnumType)
@_bad_inside.register(inspect.LiteralType)
def _(info: Any, path: str) -> Iterator[_Bad]:
    for text in ("no such word", "", "Object contains unknown field `x`", "x" * 100_000):
        yield _invalid(f"{path}: {text[:20]!r}", _text(text), path)


@_bad_inside.register
def _(info: inspect.ListType, path: str) -> Iterator[_Bad]:
    good = _good(info.item_type)
    if info.min_length:
        yield _invalid(f"{path} too short", _array([good] * (info.min_length - 1)), path)
    if info.max_length is not None:
        yield _invalid(f"{path} too long", _array([good] * (info.max_length + 1)), path)
    yield from _bad_elements(info.item_type, path)


def _bad_elements(item: Any, path: str) -> Iterator[_Bad]:
    """Bad elements, each after a good one, so that the place is told."""
    good, place = _good(item), f"{path}[1]"
    for label, value, where, code in _bad_value(item, place):
        yield label, _array([good, value]), where, code
    if isinstance(item, inspect.StructType):
        for label, value, where, code in _bad_struct(item, place):
            yield label, _array([good, value]), where, code


@_bad_inside.register
def _(info: inspect.DictType, path: str) -> Iterator[_Bad]:
    for label, value, where, code in _bad_value(info.value_type, f"{path}[]"):
        yield label, _object({"key": value}), where, code


@_bad_inside.register
def _(info: inspect.StructType, path: str) -> Iterator[_Bad]:
    yield from _bad_struct(info, path)


def _invalid(label: str, raw: bytes, path: str) -> _Bad:
    return label, raw, path, ErrorCode.INVALID_PARAMS


def _text(text: str) -> bytes:
    return json.dumps(text).encode()


def _array(values: list[bytes]) -> bytes:
    return b"[" + b",".join(values) + b"]"

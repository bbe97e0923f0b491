"""Keep the generated parts of docs/protocol.md the same as the code.

    python -m jackin_memd.wire.docs            # rewrite what is stale
    python -m jackin_memd.wire.docs --check    # exit 1 where something is

Each part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from jackin_memd.wire.discovery import openrpc, travelling
from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.methods import METHODS, Method

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"

_PART = re.compile(
    r"(?P<begin><!-- begin (?P<name>[a-z]+) -->\n).*?(?P<end><!-- end (?P=name) -->)", re.DOTALL
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m jackin_memd.wire.docs")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when stale")
    parser.add_argument("page", nargs="?", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    text = options.page.read_text(encoding="utf-8")
    current = rendered(text)
    if current == text:
        return 0
    if options.check:
        sys.stderr.write(f"{options.page} is stale: run python -m jackin_memd.wire.docs\n")
        return 1
    options.page.write_text(current, encoding="utf-8")
    return 0


def rendered(page: str) -> str:
    """The page with every generated part made anew. Raises ValueError where one is missing."""
    found = [match["name"] for match in _PART.finditer(page)]
    if sorted(found) != sorted(_PARTS):
        raise ValueError(f"the page has the parts {found}, it should have {sorted(_PARTS)}")
    return _PART.sub(
        lambda match: f"{match['begin']}\n{_PARTS[match['name']]()}\n\n{match['end']}", page
    )


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    columns = head.split(" | ")
    lines = [head, " | ".join("---" for _ in columns)]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _errors() -> str:
    local = set(ErrorCode) - set(travelling())
    return _table(
        "word | number | exit status | meaning",
        (
            (
                f"`{code.word}`",
                f"{code.number}{' (local)' if code in local else ''}",
                str(code.exit_status),
                code.meaning,
            )
            for code in ErrorCode
        ),
    )


@cache
def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = openrpc("")["components"]["schemas"]
    return schemas


@cache
def _described() -> dict[str, Any]:
    return {method["name"]: method for method in openrpc("")["methods"]}


def _methods() -> str:
    described = _described()
    return _table(
        "method | effect | channels | what it does | params | result",
        (
            (
                f"`{name}`",
                method.effect.value,
                ", ".join(described[name]["x-channels"]),
                method.summary + (" Any version." if method.any_version else ""),
                ", ".join(_param(param) for param in described[name]["params"]) or "none",
                _type(described[name]["result"]["schema"]),
            )
            for name, method in METHODS.items()
        ),
    )


def _param(param: dict[str, Any]) -> str:
    return f"`{param['name']}{'' if param['required'] else '?'}`"


def _types() -> str:
    """Every type of the table with its fields and what the source says of them."""
    params = {method.params: name for name, method in METHODS.items()}
    sections = []
    for type_ in _types_of(METHODS.values()):
        if type_ in params:
            described = _described()[params[type_]]["params"]
            fields = {param["name"]: param["schema"] for param in described}
        else:
            fields = _schemas()[type_.__name__]["properties"]
        if fields:
            sections.append(_type_section(type_, fields))
    return "\n\n".join(sections)


def _type_section(type_: type[Any], fields: dict[str, Any]) -> str:
    notes = _attribute_notes(type_)
    required = {field.encode_name for field in msgspec.structs.fields(type_) if field.required}
    rows = (
        (
            f"`{name}{'' if name in required else '?'}`",
            _type(schema) + _default(schema),
            notes.get(name) or _said(schema),
        )
        for name, schema in fields.items()
    )
    return f"#### {type_.__name__}\n\n{_table('field | type | meaning', rows)}"


def _default(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "") else f"; `{default}` by default"


def _said(schema: dict[str, Any]) -> str:
    """A field's description in the schema, its own or that of an alternative."""
    inner = (alternative.get("description", "") for alternative in schema.get("anyOf", ()))
    return schema.get("description") or next((text for text in inner if text), "")


def _types_of(methods: Iterable[Method]) -> list[type[Any]]:
    """All structs of the table, each after the first that mentions it."""
    found: dict[type[Any], None] = {}

    def visit(type_: Any) -> None:
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            if type_ in found:
                return
            found[type_] = None
            for field in msgspec.structs.fields(type_):
                visit(field.type)
        for inner in getattr(type_, "__args__", ()):
            visit(inner)

    for method in methods:
        for type_ in (method.params, method.result, *(t for _, t in method.notifications)):
            visit(type_)
    return list(found)


def _attribute_notes(type_: type[Any]) -> dict[str, str]:
    """The texts below a struct's fields, which do not exist at run time."""
    (definition,) = ast.parse(inspect.getsource(type_)).body
    assert isinstance(definition, ast.ClassDef)
    notes = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            notes[field.target.id] = " ".join(str(below.value.value).split())
    return notes


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words: `array of StatusEntry (1 to 5000)`."""
    if "$ref" in schema:
        name = str(schema["$ref"].rsplit("/", 1)[1])
        return _type(_schemas()[name]) if "enum" in _schemas()[name] else name
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(inner) for inner in schema["anyOf"])
    words = _kind(schema)
    bounds = _bounds(schema)
    return f"{words} ({bounds})" if bounds else words


def _kind(schema: dict[str, Any]) -> str:
    kind = str(schema.get("type", "any JSON"))
    if isinstance(schema.get("items"), dict) and schema["items"]:
        return f"array of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return kind


def _bounds(schema: dict[str, Any]) -> str:
    for low, high in (
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ):
        if low in schema or high in schema:
            least, most = schema.get(low), schema.get(high)
            if (least, most) == (-(2**63), 2**63 - 1):
                return "64 bits"
            if most is None or most == 2**63 - 1:
                return f"at least {least}"
            return f"at most {most}" if least is None else f"{least} to {most}"
    return ""


_PARTS: dict[str, Callable[[], str]] = {"errors": _errors, "methods": _methods, "types": _types}

if __name__ == "__main__":
    sys.exit(main())

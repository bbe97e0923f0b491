"""The OpenRPC document of the method table, as `rpc.discover` answers it.

Made from METHODS and the types alone, so it can't say anything that dispatch
does not do. The same build gives the same document.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.methods import METHODS, Effect, Method, Reach
from jackin_memd.wire.vocab import PROTOCOL_VERSION

OPENRPC_VERSION = "1.3.2"

Schema = dict[str, Any]

#: Numbers of errors that only clients and commands raise.
_LOCAL_NUMBERS = range(120, 140)

_ANY_CALL = (
    ErrorCode.PARSE_ERROR,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_PARAMS,
    ErrorCode.INTERNAL_ERROR,
    ErrorCode.REPLY_TOO_LARGE,
    ErrorCode.DAEMON_STOPPING,
)


def openrpc(build: str) -> dict[str, Any]:
    """The document; `build` is the name and version of the daemon that gives it."""
    schemas = _Schemas(METHODS.values())
    methods = [_method(method, schemas) for method in METHODS.values()]
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {
            "title": "jackin-memd",
            "version": build,
            "description": "JSON-RPC 2.0 over Unix sockets, each message behind its length "
            "in bytes as 4 bytes, big-endian.",
            "license": {"name": "Apache-2.0"},
        },
        "methods": methods,
        "components": {
            "schemas": schemas.components(),
            "errors": {code.word: _error(code) for code in travelling()},
        },
        "x-protocol-version": PROTOCOL_VERSION,
        "x-error-codes": [
            {
                "word": code.word,
                "number": code.number,
                "exit_status": code.exit_status,
                "meaning": code.meaning,
                "travels": code.number not in _LOCAL_NUMBERS,
            }
            for code in ErrorCode
        ],
    }


def travelling() -> Iterable[ErrorCode]:
    """The errors that a daemon sends."""
    return (code for code in ErrorCode if code.number not in _LOCAL_NUMBERS)


class _Schemas:
    """The JSON schemas of all types in the table, by stable names."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._params: set[str] = set()
        types: list[Any] = []
        for method in methods:
            types += [method.params, method.result, *(type_ for _, type_ in method.notifications)]
            self._params.add(method.params.__name__)
        unique = list(dict.fromkeys(types))
        found, self._named = msgspec.json.schema_components(
            unique, ref_template="#/components/schemas/{name}"
        )
        self._of = dict(zip(unique, map(_portable, found), strict=True))

    def of(self, type_: Any) -> Schema:
        schema: Schema = self._of[type_]
        return schema

    def fields(self, params: type[Any]) -> list[tuple[str, Schema, bool]]:
        """Name, schema and whether it is required, of each field of a params type."""
        schema = self._named[params.__name__]
        required = set(schema["required"])
        return [
            (name, _portable(field), name in required)
            for name, field in schema["properties"].items()
        ]

    def components(self) -> dict[str, Schema]:
        """All named schemas, less the params types: methods spell those out."""
        return {
            name: _portable(schema)
            for name, schema in sorted(self._named.items())
            if name not in self._params
        }


def _portable(schema: Any) -> Any:
    """The schema with patterns as ECMA-262 writes them, which has no `\\Z`."""
    if isinstance(schema, dict):
        return {
            name: inner.replace(r"\Z", "$") if name == "pattern" and isinstance(inner, str)
            else _portable(inner)
            for name, inner in schema.items()
        }  # fmt: skip
    return [_portable(inner) for inner in schema] if isinstance(schema, list) else schema


def _method(method: Method, schemas: _Schemas) -> dict[str, Any]:
    result_name = getattr(method.result, "__name__", "object")
    described: dict[str, Any] = {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [_param(*field) for field in schemas.fields(method.params)],
        "result": {
            "name": result_name if result_name != "dict" else "object",
            "schema": schemas.of(method.result),
        },
        "errors": [{"$ref": f"#/components/errors/{code.word}"} for code in errors_of(method)],
        "x-effect": method.effect.value,
        "x-reach": method.reach.value,
        "x-channels": sorted(channel.value for channel in method.channels),
        "x-any-version": method.any_version,
    }
    if method.notifications:
        described["x-notifications"] = [
            {"name": name, "params": schemas.of(type_)} for name, type_ in method.notifications
        ]
    return described


def _param(name: str, schema: Schema, required: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"name": name, "required": required, "schema": schema}
    description = _description(schema)
    if description:
        described["description"] = description
    return described


def _description(schema: Schema) -> str | None:
    """The schema's own description, or that of the one alternative that is not null."""
    found: str | None = schema.get("description")
    if found is None:
        alternatives = [inner.get("description") for inner in schema.get("anyOf", ())]
        found = next((text for text in alternatives if text), None)
    return found


def errors_of(method: Method) -> list[ErrorCode]:
    """What the call can end with, in the table's order.

    A method that touches an instance can meet any state of it and its files.
    """
    found = set(_ANY_CALL)
    if not method.any_version:
        found.add(ErrorCode.HELLO_REQUIRED)
    if method.name == "hello":
        found.add(ErrorCode.PROTOCOL_MISMATCH)
    else:
        found.add(ErrorCode.PERMISSION_DENIED)
    if method.effect is Effect.WRITE:
        found.add(ErrorCode.IDEMPOTENCY_CONFLICT)
    if method.effect is Effect.STREAM:
        found.add(ErrorCode.SUBSCRIPTION_NOT_FOUND)
    if method.notifications:
        found |= {ErrorCode.TOO_MANY_SUBSCRIPTIONS, ErrorCode.CURSOR_INVALID}
    if {"before", "after"} & set(method.params.__struct_fields__):
        found.add(ErrorCode.CURSOR_INVALID)
    if method.reach is not Reach.HOST or method.name.startswith("instance."):
        found |= {code for code in ErrorCode if 400 <= code.number < 500 or code.number >= 900}
    return [code for code in ErrorCode if code in found]


def _error(code: ErrorCode) -> dict[str, Any]:
    return {"code": code.number, "message": code.meaning, "data": {"code": code.word}}

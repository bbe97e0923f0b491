"""The OpenRPC document: well-formed, complete, and the same as the method table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from jackin_memd.wire.codec import encode
from jackin_memd.wire.discovery import openrpc
from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.framing import DEFAULT_MAX_FRAME_BYTES
from jackin_memd.wire.methods import METHODS, Effect
from jackin_memd.wire.vocab import PROTOCOL_VERSION
from tests.support.proves import proves

#: Members of each OpenRPC object, `!` where the specification requires them.
#: Others must be extensions (`x-`).
OPENRPC = {
    "document": "openrpc! info! methods! servers components externalDocs",
    "info": "title! version! description termsOfService contact license",
    "license": "name! url",
    "method": "name! params! result summary description tags externalDocs deprecated servers "
    "errors links paramStructure examples",
    "descriptor": "name! schema! summary description required deprecated",
    "error": "code! message! data",
    "components": "contentDescriptors schemas examples links errors examplePairingObjects tags",
}

#: The JSON Schema words in use, and the type of each one's value.
SCHEMA_WORDS: dict[str, type | tuple[type, ...]] = {
    "title": str, "description": str, "type": str, "properties": dict, "required": list,
    "additionalProperties": (bool, dict), "items": dict, "anyOf": list, "enum": list,
    "const": object, "default": object, "minimum": int, "maximum": int, "minLength": int,
    "maxLength": int, "minItems": int, "maxItems": int, "maxProperties": int, "pattern": str,
    "$ref": str,
    "exclusiveMinimum": int, "exclusiveMaximum": int, "propertyNames": dict,
}  # fmt: skip


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    # Through bytes, as a client gets it.
    found: dict[str, Any] = json.loads(encode(openrpc("jackin-memd 1.2.3")))
    return found


@pytest.fixture(scope="module")
def methods(document: dict[str, Any]) -> dict[str, Any]:
    return {method["name"]: method for method in document["methods"]}


def check(kind: str, found: dict[str, Any]) -> None:
    allowed = OPENRPC[kind].split()
    for member in allowed:
        if member.endswith("!"):
            assert member[:-1] in found, (kind, member)
    known = {member.rstrip("!") for member in allowed}
    for member in found:
        assert member in known or member.startswith("x-"), (kind, member)


def check_schema(schema: Any) -> None:
    assert isinstance(schema, dict)
    for word, value in schema.items():
        assert isinstance(value, SCHEMA_WORDS[word]), (word, value)
    for inner in inner_schemas(schema):
        check_schema(inner)
    for name in schema.get("required", ()):
        assert name in schema["properties"]
    if "pattern" in schema:
        re.compile(schema["pattern"])


def inner_schemas(schema: dict[str, Any]) -> Iterator[Any]:
    yield from schema.get("properties", {}).values()
    yield from schema.get("anyOf", ())
    for word in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(word), dict):
            yield schema[word]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from references(inner)


@proves("wire-discover")
def test_every_object_has_the_members_that_openrpc_requires(document: dict[str, Any]) -> None:
    check("document", document)
    assert re.fullmatch(r"1\.3\.\d+", document["openrpc"])
    check("info", document["info"])
    check("license", document["info"]["license"])
    check("components", document["components"])
    for method in document["methods"]:
        check("method", method)
        assert method["paramStructure"] in {"by-name", "by-position", "either"}
        for descriptor in [*method["params"], method["result"]]:
            check("descriptor", descriptor)
            check_schema(descriptor["schema"])
    for schema in document["components"]["schemas"].values():
        check_schema(schema)
    for error in document["components"]["errors"].values():
        check("error", error)
        assert isinstance(error["code"], int)


@proves("wire-discover")
def test_every_reference_leads_to_a_component_and_none_is_unused(
    document: dict[str, Any],
) -> None:
    used = set(references(document))
    components = document["components"]
    offered = {f"#/components/{kind}/{name}" for kind in components for name in components[kind]}
    assert used <= offered
    assert {ref for ref in offered if "/schemas/" in ref} <= used


@proves("wire-discover")
def test_it_lists_the_methods_of_the_table_in_its_order(document: dict[str, Any]) -> None:
    assert [method["name"] for method in document["methods"]] == list(METHODS)


@proves("wire-discover")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_described_as_the_table_has_it(name: str, methods: dict[str, Any]) -> None:
    method, described = METHODS[name], methods[name]
    assert set(described["x-channels"]) == {channel.value for channel in method.channels}
    assert described["x-effect"] == method.effect.value
    assert described["x-reach"] == method.reach.value
    assert described["x-any-version"] is method.any_version
    assert described["summary"] == method.summary
    assert [n["name"] for n in described.get("x-notifications", [])] == [
        name for name, _ in method.notifications
    ]


@pytest.mark.parametrize("name", METHODS)
def test_its_params_are_the_fields_of_its_type(name: str, methods: dict[str, Any]) -> None:
    fields = msgspec.structs.fields(METHODS[name].params)
    assert [(p["name"], p["required"]) for p in methods[name]["params"]] == [
        (field.encode_name, field.required) for field in fields
    ]


def test_a_parameter_carries_the_bounds_and_the_description_of_its_type(
    methods: dict[str, Any],
) -> None:
    limit = next(p for p in methods["status.list"]["params"] if p["name"] == "limit")
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    key = next(p for p in methods["status.record"]["params"] if p["name"] == "idempotency_key")
    assert "same key" in key["description"]


def test_patterns_are_written_as_other_languages_read_them(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    assert '"pattern"' in text
    assert r"\\Z" not in text


def test_the_error_table_is_the_whole_vocabulary(document: dict[str, Any]) -> None:
    table = {row["word"]: row for row in document["x-error-codes"]}
    assert list(table) == [code.word for code in ErrorCode]
    for code in ErrorCode:
        row = table[code.word]
        assert (row["number"], row["exit_status"], row["meaning"]) == (
            code.number, code.exit_status, code.meaning,
        )  # fmt: skip
        assert row["travels"] is (code.word in document["components"]["errors"])
    assert table["DAEMON_UNREACHABLE"]["travels"] is False
    assert table["DISK_FULL"]["travels"] is True


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_with_which_errors_it_may_end(name: str, methods: dict[str, Any]) -> None:
    words = {ref["$ref"].rsplit("/", 1)[1] for ref in methods[name]["errors"]}
    assert words >= {"INVALID_PARAMS", "INTERNAL_ERROR", "REPLY_TOO_LARGE"}
    assert ("HELLO_REQUIRED" in words) is not METHODS[name].any_version
    assert ("IDEMPOTENCY_CONFLICT" in words) is (METHODS[name].effect is Effect.WRITE)
    assert ("DATABASE_CORRUPT" in words) is name.startswith(("instance.", "status."))


def test_the_same_build_gives_the_same_bytes_and_another_only_its_name() -> None:
    assert encode(openrpc("a")) == encode(openrpc("a"))
    other = openrpc("b")
    assert other["info"].pop("version") == "b"
    first = openrpc("a")
    first["info"].pop("version")
    assert other == first


def test_it_names_the_protocol_version_and_fits_a_frame(document: dict[str, Any]) -> None:
    assert document["x-protocol-version"] == PROTOCOL_VERSION
    assert len(encode(document)) < DEFAULT_MAX_FRAME_BYTES / 10

"""JSON-RPC 2.0 envelopes and parameters: bytes to types and back.

msgspec leaves three holes that matter with hostile input, closed here: deep
nesting raises RecursionError, integers of any size pass, and the last of
duplicate keys wins without a word.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from jackin_memd.wire.errors import ErrorCode, MemdError

T = TypeVar("T")

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

#: An id or a method name is a label, never a payload.
MAX_LABEL_LENGTH = 128

Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
RequestId = int | str

_encoder = msgspec.json.Encoder()


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: dict[str, Any] | None = None


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Any JSON-RPC message; which one is decided by the members it has."""

    jsonrpc: Literal["2.0"]
    id: (
        Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
        | Annotated[str, Meta(max_length=MAX_LABEL_LENGTH)]
        | UnsetType
        | None
    ) = UNSET
    method: Annotated[str, Meta(max_length=MAX_LABEL_LENGTH)] | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class OutgoingRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request, or a notification where `id` is unset."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType
    method: str
    params: Any


class OutgoingResult(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    id: RequestId | None
    result: Any


class OutgoingError(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    id: RequestId | None
    error: ErrorObject


class _IdOnly(msgspec.Struct, frozen=True):
    """What a refused envelope is asked for, so that the refusal can name its id."""

    id: Any = None


_envelope_decoder = msgspec.json.Decoder(Envelope)
_batch_decoder = msgspec.json.Decoder(list[Raw])
_raw_decoder = msgspec.json.Decoder(Raw)
_id_decoder = msgspec.json.Decoder(_IdOnly)


def encode(value: Any) -> bytes:
    """Compact JSON. Struct fields keep their order: this is the canonical form."""
    return _encoder.encode(value)


def error_object(error: MemdError) -> ErrorObject:
    return ErrorObject(error.code.number, error.message, error.data())


def is_batch(payload: bytes) -> bool:
    """Whether the first byte that is not JSON white space opens an array."""
    return payload[:1] == b"[" or payload.lstrip(b" \t\r\n")[:1] == b"["


def decode_batch(payload: bytes) -> list[Raw]:
    """The entries of a batch. Raises MemdError (PARSE_ERROR)."""
    try:
        return _batch_decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _parse_error(error) from None


def decode_envelope(payload: bytes | Raw) -> Envelope:
    """One message. Raises MemdError (PARSE_ERROR, INVALID_REQUEST)."""
    try:
        envelope = _envelope_decoder.decode(payload)
    except msgspec.ValidationError as error:
        message, _ = _explain(error)
        raise MemdError(
            ErrorCode.INVALID_REQUEST,
            f"not a JSON-RPC 2.0 message: {message}",
            hint='send {"jsonrpc": "2.0", "id": …, "method": …, "params": {…}}',
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _parse_error(error) from None
    if _encoder.encode(envelope) != bytes(payload):
        # `params` and `result` are still bytes: whoever decodes them looks inside.
        if isinstance(envelope.error, UnsetType):
            outline, strict = _skeleton(payload, envelope), _outermost
        else:
            outline, strict = bytes(payload), _everywhere
        _refuse_duplicate_keys(outline, strict, ErrorCode.INVALID_REQUEST)
    return envelope


#: Below this, looking through a value costs less than cutting it out.
_LONG = 1024


def _skeleton(payload: bytes | Raw, envelope: Envelope) -> bytes:
    """The message with its long values cut out, where that leaves valid JSON.

    The strict look at the outermost keys takes 90 ns a byte; a frame of 4 MiB
    would hold the event loop for a third of a second.

    Only objects and arrays are cut. The text of a string may stand a second
    time, from the end of one key to the start of another, and hide both; an
    object's can't, for no key of a message begins like what follows its quotes.
    """
    whole = cut = bytes(payload)
    for value in (envelope.params, envelope.result):
        text = b"" if isinstance(value, UnsetType) else bytes(value)
        if len(text) > _LONG and text[:1] in {b"{", b"["}:
            cut = cut.replace(text, b"null")
    return cut if _is_json(cut) else whole


def _is_json(payload: bytes) -> bool:
    try:
        _raw_decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def readable_id(payload: bytes | Raw) -> RequestId | None:
    """The id of a message that was refused, or None where it has none to quote."""
    try:
        found = _id_decoder.decode(payload).id
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(found, str) and len(found) <= MAX_LABEL_LENGTH:
        return found
    if type(found) is int and INT64_MIN <= found <= INT64_MAX:
        return found
    return None


def decode_params(raw: Raw | UnsetType, decoder: msgspec.json.Decoder[T]) -> T:
    """The parameters of one call. Raises MemdError (INVALID_PARAMS, PARSE_ERROR).

    Absent parameters read as an empty object.
    """
    payload = b"{}" if isinstance(raw, UnsetType) else bytes(raw)
    try:
        params = decoder.decode(payload)
    except msgspec.ValidationError as error:
        message, field = _explain(error)
        raise MemdError(ErrorCode.INVALID_PARAMS, message, field=field) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _parse_error(error) from None
    if _encoder.encode(params) != payload:
        _refuse_duplicate_keys(payload, _everywhere, ErrorCode.INVALID_PARAMS)
    return params


def _parse_error(error: Exception) -> MemdError:
    if isinstance(error, RecursionError):
        return MemdError(
            ErrorCode.PARSE_ERROR,
            "the JSON is nested too deep",
            hint="nest arrays and objects less than 500 deep",
        )
    return MemdError(ErrorCode.PARSE_ERROR, f"the frame is not valid JSON: {error}")


_AT = " - at `"
_NAMING = ("Object contains unknown field `", "Object missing required field `")

_PATTERN = "matching regex"

#: msgspec quotes the unknown field's name; a name is echoed only this far.
_MAX_QUOTED = 100


def _explain(error: msgspec.ValidationError) -> tuple[str, str | None]:
    """msgspec's message, shortened, and the field it is about (`entries[0].new_status`).

    The text may hold a key of 4 MiB that the peer chose, so it is cut by
    searches that pass over it once.
    """
    text = str(error)
    what, at, path = text.rpartition(_AT)
    if not at or not path.startswith("$"):
        what, path = text, "$`"
    field = path.removesuffix("`").removeprefix("$").removeprefix(".").replace("[...]", "[]")
    named = next((prefix for prefix in _NAMING if what.startswith(prefix)), None)
    if named:
        name = what[len(named) :].removesuffix("`")[:_MAX_QUOTED]
        field = f"{field}.{name}" if field else name
    if _PATTERN in what:  # every pattern of the table says the same; a test holds it to that
        what = "Expected one line of text without control characters"
    if len(what) > _MAX_QUOTED * 2:
        what = what[: _MAX_QUOTED * 2] + "…"
    return (f"{what} at {field}" if field and not named else what), field[:_MAX_QUOTED] or None


class _DuplicateKeyError(Exception):
    pass


def _duplicate(pairs: list[tuple[str, Any]]) -> str | None:
    """The first key that stands twice; one pass, whatever the number of keys."""
    if len(dict(pairs)) == len(pairs):
        return None
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def _raise_duplicate(pairs: list[tuple[str, Any]]) -> None:
    name = _duplicate(pairs)
    if name is not None:
        raise _DuplicateKeyError(name)


# Numbers are of no interest here, and `int` would refuse one of 5,000 digits.
_everywhere = json.JSONDecoder(object_pairs_hook=_raise_duplicate, parse_int=len, parse_float=len)
_outermost = json.JSONDecoder(object_pairs_hook=_duplicate, parse_int=len, parse_float=len)


def _refuse_duplicate_keys(payload: bytes, strict: json.JSONDecoder, code: ErrorCode) -> None:
    """The slow path, for bytes that are not in canonical form.

    What re-encodes to the same bytes has no key twice, and that test costs
    0.1 µs where this one costs 3 µs for a small message (a benchmark has both).
    """
    try:
        name = strict.decode(payload.decode())
    except _DuplicateKeyError as error:
        name = str(error)
    except RecursionError as error:
        raise _parse_error(error) from None
    except ValueError as error:  # covers JSONDecodeError and UnicodeDecodeError
        raise _parse_error(error) from None
    if name is not None:
        name = name[:_MAX_QUOTED]
        raise MemdError(code, f"the key `{name}` stands twice in one object", field=name)

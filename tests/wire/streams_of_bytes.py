"""What the wire tests share: frames, their splits, and events by what they mean."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from jackin_memd.wire.framing import PREFIX_BYTES, frame
from jackin_memd.wire.peer import Answer, Broken, Call, Event, Peer, Refusal

#: What JSON-RPC text can hold, with numbers in every width that JSON allows.
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

ids: st.SearchStrategy[int | str] = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=128)

#: Whole messages and things that nearly are.
messages: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
        "id": ids | json_values,
        "method": st.text(max_size=130) | json_values,
        "params": json_values,
        "result": json_values,
        "error": json_values
        | st.fixed_dictionaries(
            {"code": st.integers(), "message": st.text()},
            optional={"data": st.dictionaries(st.text(), json_values, max_size=3)},
        ),
        "surplus": json_values,
    },
)

payloads: st.SearchStrategy[bytes] = st.one_of(
    st.binary(min_size=1, max_size=60),
    json_values.map(lambda value: json.dumps(value).encode()),
    messages.map(lambda value: json.dumps(value).encode()),
    messages.map(msgspec.json.encode),
    st.lists(messages | json_values, max_size=5).map(msgspec.json.encode),
)

frames: st.SearchStrategy[bytes] = st.lists(payloads, max_size=6).map(
    lambda some: b"".join(frame(payload) for payload in some)
)

#: Streams that begin well and may end in a bad prefix, a cut frame or noise.
streams: st.SearchStrategy[bytes] = st.tuples(
    frames, st.sampled_from([b"", b"\0", b"\0\0\0\0", b"\xff\xff\xff\xff"]), st.binary(max_size=20)
).map(b"".join)


def split_at(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """The data in pieces, some of them perhaps empty."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    yield from (data[a:b] for a, b in itertools.pairwise(edges))


def bytewise(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def received(peer: Peer, pieces: Iterable[bytes]) -> list[Event]:
    """All events of a stream; nothing is fed after the stream has broken."""
    events: list[Event] = []
    for piece in pieces:
        events += peer.receive_data(piece)
        if events and isinstance(events[-1], Broken):
            break
    return events


def meanings(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Events as plain values; calls of one batch carry the same number."""
    batches: dict[int, int] = {}

    def meaning(event: Event) -> tuple[Any, ...]:
        match event:
            case Call(called, method, params, batch):
                number = None if batch is None else batches.setdefault(id(batch), len(batches))
                return ("call", called, method, raw(params), number)
            case Answer(answered, result, error):
                return ("answer", answered, raw(result), error and (error.code, str(error)))
            case Refusal(sent, error) | Broken(sent, error):
                return (type(event).__name__, sent, error.code, error.field, str(error))

    return [meaning(event) for event in events]


def raw(value: object) -> object:
    return bytes(value) if isinstance(value, msgspec.Raw) else value


def payloads_of(data: bytes) -> list[bytes]:
    """The payloads of whole frames, read without the code under test."""
    found = []
    while data:
        size = int.from_bytes(data[:PREFIX_BYTES], "big")
        found.append(data[PREFIX_BYTES : PREFIX_BYTES + size])
        data = data[PREFIX_BYTES + size :]
    return found


def replies(sent: bytes | None) -> Any:
    """What one frame says, as plain JSON; a batch is a list."""
    assert sent is not None
    (payload,) = payloads_of(sent)
    return json.loads(payload)


def codes(sent: bytes | None) -> list[str]:
    """The error words of a reply or of each reply of a batch; `ok` for a result."""
    said = replies(sent)
    said = said if isinstance(said, list) else [said]
    return [reply["error"]["data"]["code"] if "error" in reply else "ok" for reply in said]


def request(
    *, call_id: bytes = b"1", method: bytes = b'"ping"', params: bytes | None = None
) -> bytes:
    """The canonical bytes of a request, its parts given as JSON text."""
    tail = b"" if params is None else b',"params":' + params
    return b'{"jsonrpc":"2.0","id":' + call_id + b',"method":' + method + tail + b"}"

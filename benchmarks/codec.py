"""What it costs to trust no JSON: duplicate keys, and a peer's whole receive.

msgspec keeps the last of two equal keys without a word. Bytes that encode back
to themselves have no key twice, so the slow look is for other bytes only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from benchmarks.measure import Settings, mean_us, median
from benchmarks.report import Table
from jackin_memd.wire import codec
from jackin_memd.wire.framing import frame
from jackin_memd.wire.peer import Call, Peer
from jackin_memd.wire.status import StatusEntry, StatusRecordParams


def run(settings: Settings) -> Iterator[Table]:
    yield _table(settings, "status.record with one row", 1, 20_000)
    yield _table(settings, "status.record with 1,000 rows", 1000, 50)


def _params(rows: int) -> StatusRecordParams:
    entry = StatusEntry(new_status="working", occurred_at=1_796_000_000)
    return StatusRecordParams(entries=[entry] * rows, instance="jk-k7p9m2xq-shop-builder")


def _table(settings: Settings, what: str, rows: int, times: int) -> Table:
    canonical = codec.encode(codec.OutgoingRequest("2.0", 1, "status.record", _params(rows)))
    # As Python's own encoder writes it: a space after each comma and colon.
    spaced = json.dumps(json.loads(canonical)).encode()
    decoder = msgspec.json.Decoder(StatusRecordParams)
    envelope = msgspec.json.Decoder(codec.Envelope)

    def bare() -> None:
        params = envelope.decode(canonical).params
        assert isinstance(params, msgspec.Raw)
        decoder.decode(params)

    def checked(payload: bytes) -> Callable[[], object]:
        return lambda: codec.decode_params(codec.decode_envelope(payload).params, decoder)

    def strict() -> None:
        json.loads(canonical, object_pairs_hook=_refuse_twice)

    peer = Peer(answers=False)
    framed = frame(canonical)

    def received() -> None:
        (event,) = peer.receive_data(framed)
        assert isinstance(event, Call)
        codec.decode_params(event.params, decoder)

    actions: dict[str, Callable[[], object]] = {
        "msgspec alone, duplicate keys unseen": bare,
        "`codec`, bytes in canonical form": checked(canonical),
        "`codec`, other bytes (spaces after commas)": checked(spaced),
        "`json.loads` with `object_pairs_hook`": strict,
        "`Peer.receive_data` and parameters": received,
    }
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in settings.turns():
        for name, action in actions.items():
            taken[name].append(mean_us(action, settings.times(times)))
    return Table(
        title=f"{what}: {len(canonical):,} bytes",
        header=["way", "µs a message"],
        rows=[[name, f"{median(values):.1f}"] for name, values in taken.items()],
    )


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice")
    return members

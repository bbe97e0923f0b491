"""status.record, status.list, status.latest."""

from __future__ import annotations

import msgspec

from jackin_memd.core.cursors import make_cursor, read_cursor
from jackin_memd.engine.feed import TablePage
from jackin_memd.engine.pending import Pending
from jackin_memd.services.context import Clock, Session, request_key
from jackin_memd.services.instance_table import Entry, InstanceTable
from jackin_memd.services.streams import Stream
from jackin_memd.storage import status_log
from jackin_memd.storage.request_keys import Keyed, Repeated
from jackin_memd.storage.status_log import Append, NewRow
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import (
    StatusLatestParams,
    StatusLatestResult,
    StatusListParams,
    StatusListResult,
    StatusRecordParams,
    StatusRecordResult,
    StatusRow,
)

MAX_METADATA_BYTES = 64 * 1024

#: A page of a reply; far below the smallest sensible frame limit of 4 MiB.
PAGE_BYTES = 1024 * 1024


class StatusService:
    def __init__(self, table: InstanceTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self.stream = Stream("status", table, _fetch_after)

    def record(self, params: StatusRecordParams, session: Session) -> Pending[StatusRecordResult]:
        """status.record"""
        entry = self._table.serving(params.instance, session.principal)
        now = self._clock()
        rows = _new_rows(params, now)
        write = Append(rows)
        named = msgspec.structs.replace(params, instance=entry.container)  # however it was named
        key = request_key("status.record", named, params.idempotency_key, session.principal, now)
        pending = entry.database.write(write if key is None else Keyed(key, write.apply, len(rows)))

        def durable(outcome: int | Repeated) -> StatusRecordResult:
            if isinstance(outcome, Repeated):
                return _recorded(entry, msgspec.json.decode(outcome.answer, type=int), len(rows))
            self.stream.of(entry).publish(outcome, lambda: _as_json(outcome, rows), len(rows))
            return _recorded(entry, outcome, len(rows))

        return self._table.watch_failure(entry, pending).map(durable)

    async def list(self, params: StatusListParams, session: Session) -> StatusListResult:
        """status.list"""
        entry = self._table.serving(params.instance, session.principal)
        with self._table.watched(entry):
            epoch = await entry.database.epoch_known()
            before = (
                read_cursor(params.before, epoch, 2**63 - 1, field="before")
                if params.before
                else None
            )
            (oldest, newest), rows = await entry.database.read(
                lambda connection: (
                    status_log.span(connection),
                    status_log.page(connection, before, params.limit, PAGE_BYTES),
                )
            )
        self.stream.of(entry).saw_head(newest)
        last = rows[-1].id if rows else oldest
        return StatusListResult(
            rows=rows,
            next=make_cursor(epoch, last) if last > oldest and rows else None,
            dropped=oldest - 1,
        )

    async def latest(self, params: StatusLatestParams, session: Session) -> StatusLatestResult:
        """status.latest"""
        entry = self._table.serving(params.instance, session.principal)
        with self._table.watched(entry):
            epoch = await entry.database.epoch_known()
            rows = await entry.database.read(
                lambda connection: status_log.page(connection, None, 1, PAGE_BYTES)
            )
        row = rows[0] if rows else None
        return StatusLatestResult(row=row, cursor=make_cursor(epoch, row.id if row else 0))


def _new_rows(params: StatusRecordParams, now: int) -> list[NewRow]:
    rows: list[NewRow] = []
    for index, entry in enumerate(params.entries):
        metadata = None
        if entry.metadata is not None:
            as_json = encode(entry.metadata)
            if len(as_json) > MAX_METADATA_BYTES:
                raise MemdError(
                    ErrorCode.INVALID_PARAMS,
                    f"the metadata has {len(as_json)} bytes as JSON, over {MAX_METADATA_BYTES}",
                    hint="keep what is large elsewhere, and its name here",
                    field=f"entries[{index}].metadata",
                )
            metadata = as_json.decode()
        occurred_at = now if entry.occurred_at is None else entry.occurred_at
        rows.append((occurred_at, entry.new_status, metadata))
    return rows


def _recorded(entry: Entry, first_id: int, count: int) -> StatusRecordResult:
    epoch = entry.database.epoch
    assert epoch is not None
    last_id = first_id + count - 1
    return StatusRecordResult(
        first_id=first_id, last_id=last_id, cursor=make_cursor(epoch, last_id)
    )


def _as_json(first_id: int, rows: list[NewRow]) -> list[msgspec.Raw]:
    return [
        msgspec.Raw(
            encode(
                StatusRow(
                    id=id_,
                    occurred_at=occurred_at,
                    new_status=new_status,
                    metadata=msgspec.Raw(b"null" if metadata is None else metadata.encode()),
                )
            )
        )
        for id_, (occurred_at, new_status, metadata) in enumerate(rows, first_id)
    ]


async def _fetch_after(entry: Entry, place: int, limit: int, max_bytes: int) -> TablePage:
    (oldest, newest), rows = await entry.database.read(
        lambda connection: (
            status_log.span(connection),
            status_log.after(connection, place, limit, max_bytes),
        )
    )
    return TablePage(
        oldest_id=oldest,
        newest_id=newest,
        rows=[(row.id, msgspec.Raw(encode(row))) for row in rows],
    )

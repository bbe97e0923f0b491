"""jackin-mem status: what instances are doing, and did."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import msgspec

from jackin_mem.blocking import Client
from jackin_mem.commands.instance import all_instances
from jackin_mem.options import (
    add_command,
    make_client,
    parse_json,
    positive,
    print_json,
    wants_json,
)
from jackin_mem.render import counted, fit, printable, since, table
from jackin_memd.wire.errors import MemdError
from jackin_memd.wire.instances import Instance, InstanceGetParams, InstanceState, Problem
from jackin_memd.wire.status import (
    StatusEntry,
    StatusLatestParams,
    StatusListParams,
    StatusListResult,
    StatusRecordParams,
    StatusRecordResult,
    StatusRow,
)
from jackin_memd.wire.vocab import Channel

#: What one call of status.list gives at most.
_PAGE_ROWS = 1000

#: Metadata is cut for people here, visibly; JSON has it whole.
_METADATA_COLUMNS = 60


def configure(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_show)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    show = add_command(commands, "show", "the newest status of each loaded instance (the default)")
    show.set_defaults(run=_show)
    listing = add_command(commands, "list", "the transitions of one instance, newest first")
    listing.add_argument(
        "instance", nargs="?", metavar="INSTANCE", help="may be left out in a container"
    )
    listing.add_argument("--limit", type=positive, default=20, metavar="N", help="rows (20)")
    listing.add_argument("--before", metavar="CURSOR", help="go on from an earlier list")
    listing.set_defaults(run=_list)
    _configure_record(add_command(commands, "record", "write one transition"))


def _configure_record(record: argparse.ArgumentParser) -> None:
    record.add_argument(
        "instance", nargs="?", metavar="INSTANCE", help="may be left out in a container"
    )
    record.add_argument("word", metavar="WORD", help="working, blocked, done, idle, …")
    record.add_argument("--metadata", metavar="JSON", help="any JSON value to keep with it")
    record.add_argument("--key", metavar="KEY", help="repeating the call with it is safe")
    record.set_defaults(run=_record)


# -- show ---------------------------------------------------------------------


class _Newest(msgspec.Struct, frozen=True):
    container: str
    state: InstanceState
    row: StatusRow | None
    problem: Problem | None


def _show(options: argparse.Namespace) -> None:
    with make_client(options) as client:
        newest = _newest_of(client, _visible(client))
    if wants_json(options):
        print_json({"instances": newest})
    elif newest:
        now = time.time()
        print(table(("CONTAINER", "STATUS", "SINCE"), [_show_row(each, now) for each in newest]))
    else:
        print("no instance is loaded; load one with: jackin-mem instance load CONTAINER")


def _visible(client: Client) -> list[Instance]:
    """The instances that should be served; inside a container, its own."""
    if client.hello is not None and client.hello.channel is Channel.CAPSULE:
        return [client.call("instance.get", InstanceGetParams())]
    return [each for each in all_instances(client) if each.state is not InstanceState.UNLOADED]


def _newest_of(client: Client, instances: list[Instance]) -> list[_Newest]:
    served = [each.container for each in instances if each.state is InstanceState.LOADED]
    answers = client.pipeline(
        ("status.latest", StatusLatestParams(instance=container)) for container in served
    )
    rows = dict(zip(served, answers, strict=True))
    return [_newest(each, rows.get(each.container)) for each in instances]


def _newest(instance: Instance, answer: Any) -> _Newest:
    problem, row = instance.problem, None
    if isinstance(answer, MemdError):  # it failed or was unloaded since it was listed
        problem = Problem(code=answer.code.word, message=answer.message, hint=answer.hint)
    elif answer is not None:
        row = answer.row
    return _Newest(instance.container, instance.state, row, problem)


def _show_row(newest: _Newest, now: float) -> tuple[str, str, str]:
    if newest.row is not None:
        return newest.container, newest.row.new_status, since(newest.row.occurred_at, now)
    if newest.problem is not None:
        return newest.container, f"! {newest.problem.code}", newest.problem.message
    return newest.container, "-", "nothing recorded yet"


# -- list ---------------------------------------------------------------------


def _list(options: argparse.Namespace) -> None:
    with make_client(options) as client:
        page = _read_list(client, options.instance, options.before, options.limit)
    if wants_json(options):
        print_json(page)
        return
    now = time.time()
    headers = ("ID", "STATUS", "SINCE", "METADATA")
    print(table(headers, [_list_row(row, now) for row in page.rows]) if page.rows else "no rows")
    if page.next is not None:
        print(f"\nolder rows: --before {page.next}")
    elif page.dropped:
        print(f"\n{counted(page.dropped, 'older row')} left the rolling window")


def _read_list(
    client: Client, instance: str | None, before: str | None, limit: int
) -> StatusListResult:
    """As many pages as the limit takes, as one."""
    rows: list[StatusRow] = []
    while True:
        size = min(limit - len(rows), _PAGE_ROWS)
        params = StatusListParams(instance=instance, before=before, limit=size)
        page: StatusListResult = client.call("status.list", params, retry=True)
        rows += page.rows
        before = page.next
        if before is None or len(rows) >= limit:
            return StatusListResult(rows=rows, next=before, dropped=page.dropped)


def _list_row(row: StatusRow, now: float) -> tuple[str, str, str, str]:
    metadata = fit(metadata_text(row), _METADATA_COLUMNS)
    return str(row.id), row.new_status, since(row.occurred_at, now), metadata


def metadata_text(row: StatusRow) -> str:
    """Metadata as JSON on one line, safe to print; nothing for null."""
    text = bytes(row.metadata).decode()
    return "" if text == "null" else printable(text)


# -- record -------------------------------------------------------------------


def _record(options: argparse.Namespace) -> None:
    entry = StatusEntry(new_status=options.word, metadata=_metadata(options.metadata))
    params = StatusRecordParams(
        entries=[entry], instance=options.instance, idempotency_key=options.key
    )
    with make_client(options) as client:
        recorded: StatusRecordResult = client.call("status.record", params, retry=True)
    if wants_json(options):
        print_json(recorded)
    else:
        print(f"recorded as row {recorded.first_id}")


def _metadata(text: str | None) -> Any:
    if text is None:
        return None
    hint = """quote it for the shell: '{"prompt": "…"}', or '"text"' for a text"""
    return parse_json(os.fsencode(text), "--metadata", hint)

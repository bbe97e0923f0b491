"""Every command, by hand, against the real daemon; the wrong things too."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from jackin_memd.wire.errors import ErrorCode
from tests.clients.command import Command, Ran
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.proves import proves


class Mem:
    """Commands on one daemon's socket."""

    def __init__(self, command: Command, socket: Path) -> None:
        self._command = command
        self.socket = socket

    def __call__(self, *arguments: str) -> Ran:
        return self._command(*arguments, "--socket", self.socket)

    def said(self, *arguments: str) -> str:
        """What a command that must succeed prints."""
        ran = self(*arguments)
        assert (ran.status, ran.err) == (0, "")
        return ran.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.said(*arguments, "--format", "json"))

    def refused(self, *arguments: str) -> ErrorCode:
        """The code of a command that must fail."""
        ran = self(*arguments, "--format", "json")
        code = ErrorCode[json.loads(ran.err)["code"]]
        assert ran.status == code.exit_status
        assert ran.out == ""
        return code


@pytest.fixture
def op(mem: Command, daemon: Daemon) -> Mem:
    """The operator's commands."""
    return Mem(mem, daemon.socket)


@pytest.fixture
def capsule(mem: Command, daemon: Daemon) -> Mem:
    """The same, inside the container of a loaded instance."""
    daemon.load()
    return Mem(mem, daemon.instance_socket())


def test_ping(op: Mem) -> None:
    assert op.said("ping").startswith("answered in ")
    assert op.json("ping")["round_trip_ms"] > 0


def test_the_home_names_the_daemon(mem: Command, daemon: Daemon) -> None:
    assert mem("--home", daemon.home, "ping").status == 0
    assert mem("--home", daemon.home / "elsewhere", "ping").status == 20


# -- status -----------------------------------------------------------------------


def test_status_of_nothing_says_what_to_do(op: Mem) -> None:
    assert "jackin-mem instance load" in op.said("status")
    assert op.json("status") == {"instances": []}


def test_status_shows_the_newest_of_each_instance(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    daemon.load(OTHER)
    with daemon.client() as client:
        record(client, "working", "blocked", instance=CONTAINER)
    header, other, container = op.said("status").splitlines()
    assert header.split() == ["CONTAINER", "STATUS", "SINCE"]
    assert other.split(maxsplit=2) == [OTHER, "-", "nothing recorded yet"]
    assert container.split()[:2] == [CONTAINER, "blocked"]
    assert container.endswith(("(just now)", "s ago)"))
    assert op.said("status", "show").splitlines()[0] == header
    first, second = op.json("status")["instances"]
    assert (first["container"], first["row"]) == (OTHER, None)
    assert second["row"]["new_status"] == "blocked"


def test_status_shows_a_failed_instance_and_the_others(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    daemon.load(OTHER)
    daemon.terminate()
    (daemon.home / "data" / OTHER / "jackin.db").write_bytes(b"not a database" * 100)
    daemon.start()
    with daemon.client() as client:
        record(client, "idle", instance=CONTAINER)
    _, failed, served = op.said("status").splitlines()
    assert failed.split()[:3] == [OTHER, "!", "DATABASE_CORRUPT"]
    assert served.split()[:2] == [CONTAINER, "idle"]


def test_status_inside_a_container_is_its_own(capsule: Mem, daemon: Daemon) -> None:
    daemon.load(OTHER)
    assert capsule.said("status", "record", "done") == "recorded as row 1\n"
    lines = capsule.said("status").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [[CONTAINER, "done"]]
    assert "done" in capsule.said("status", "list")


def test_record_and_list(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    assert op.json("status", "record", "k7p9m2xq", "working")["first_id"] == 1
    op.said("status", "record", CONTAINER, "question", "--metadata", '{"prompt": "Go?"}')
    lines = op.said("status", "list", "k7p9m2xq").splitlines()
    assert lines[0].split() == ["ID", "STATUS", "SINCE", "METADATA"]
    assert lines[1].startswith("2   question")
    assert lines[1].endswith('{"prompt":"Go?"}')
    assert lines[2].startswith("1   working")
    listed = op.json("status", "list", "k7p9m2xq")
    assert [row["id"] for row in listed["rows"]] == [2, 1]
    assert listed["rows"][0]["metadata"] == {"prompt": "Go?"}


def test_a_key_makes_a_repeated_record_one(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    for _ in range(2):
        assert op.said("status", "record", CONTAINER, "idle", "--key", "k") == "recorded as row 1\n"
    assert daemon.rows("SELECT count(*) FROM status_log") == [(1,)]


def test_a_list_goes_on_where_the_page_before_ended(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    assert op.said("status", "list", CONTAINER) == "no rows\n"
    with daemon.client() as client:
        record(client, *(f"w{number}" for number in range(2500)), instance=CONTAINER)
    assert len(op.json("status", "list", CONTAINER)["rows"]) == 20
    listed = op.json("status", "list", CONTAINER, "--limit", "2400")  # of three calls
    assert [row["id"] for row in listed["rows"]] == list(range(2500, 100, -1))
    rest = op.said("status", "list", CONTAINER, "--limit", "101", "--before", listed["next"])
    assert rest.splitlines()[1].startswith("100 ")
    assert rest.splitlines()[-1].startswith("1 ")
    more = op.said("status", "list", CONTAINER, "--limit", "1")
    assert more.splitlines()[-1].startswith("older rows: --before ")


def test_a_list_says_what_left_the_window(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    with daemon.client() as client:
        for _ in range(3):
            record(client, *["w"] * 4000, instance=CONTAINER)
    dropped = op.json("status", "list", CONTAINER)["dropped"]
    assert dropped > 1900
    text = op.said("status", "list", CONTAINER, "--limit", "20000")
    assert text.splitlines()[-1] == f"{dropped:,} older rows left the rolling window"


def test_stored_values_can_not_control_the_terminal(op: Mem, daemon: Daemon) -> None:
    daemon.load()
    op.said("status", "record", CONTAINER, "w\u202e\x9b1m", "--metadata", '"\\u001b[2J\\u0007"')
    for text in (
        op.said("status"),
        op.said("status", "list", CONTAINER),
        op.said("status", "--format", "json"),
        op.said("raw", "status.latest", json.dumps({"instance": CONTAINER})),
    ):
        assert not set(text) & {"\u202e", "\x9b", "\x1b", "\x07"}
        assert "u202e" in text


@proves("client-commands")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("status list nope", ErrorCode.INSTANCE_NOT_FOUND),
        ("status list", ErrorCode.INVALID_PARAMS),
        ("status record nope idle", ErrorCode.INSTANCE_NOT_FOUND),
        ("status record idle", ErrorCode.INVALID_PARAMS),
        (f"status record {CONTAINER} idle --metadata {{bad", ErrorCode.PARSE_ERROR),
        (f"status list {CONTAINER} --before garbage", ErrorCode.CURSOR_INVALID),
    ],
)
def test_wrong_status_commands(op: Mem, daemon: Daemon, line: str, code: ErrorCode) -> None:
    daemon.load()
    assert op.refused(*line.split()) is code


# -- instance -----------------------------------------------------------------------


def test_an_instances_life(op: Mem, daemon: Daemon) -> None:
    assert op.said("instance", "list") == "no instances\n"
    loaded = op.said(
        *("instance", "load", CONTAINER, "--workspace", "shop", "--role", "builder"),
        *("--agent", "claude"),
    )
    assert dict(line.split(maxsplit=1) for line in loaded.splitlines()) | {"loaded": ""} == {
        "container": CONTAINER,
        "state": "loaded",
        "workspace": "shop",
        "role": "builder",
        "agent": "claude",
        "identity": "from the operator",
        "loaded": "",
        "socket": str(daemon.instance_socket()),
    }
    assert op.json("instance", "get", "k7p9m2xq")["state"] == "loaded"
    header, row = op.said("instance", "list").splitlines()
    assert header.split() == ["CONTAINER", "STATE", "WORKSPACE", "ROLE", "AGENT", "LOADED"]
    assert row.split()[:5] == [CONTAINER, "loaded", "shop", "builder", "claude"]
    assert "unloaded" in op.said("instance", "unload", "k7p9m2xq")
    assert op.json("instance", "list", "--state", "loaded") == {"instances": []}
    assert len(op.json("instance", "list", "--state", "unloaded")["instances"]) == 1
    purged = op.said("instance", "purge", "k7p9m2xq", "--yes")
    assert purged.splitlines()[0] == f"purged {CONTAINER}"
    assert f"  deleted data/{CONTAINER}/jackin.db" in purged.splitlines()
    assert not daemon.instance_db().exists()


def test_get_inside_a_container(capsule: Mem) -> None:
    assert capsule.json("instance", "get")["container"] == CONTAINER


def test_a_load_without_identity_names_the_options(op: Mem) -> None:
    ran = op("instance", "load", CONTAINER)
    assert ran.status == ErrorCode.INSTANCE_IDENTITY_MISSING.exit_status
    assert "--role" in ran.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("instance get", ErrorCode.INVALID_PARAMS),
        ("instance get nope", ErrorCode.INSTANCE_NOT_FOUND),
        ("instance load ../etc --role r", ErrorCode.INSTANCE_NAME_INVALID),
        ("instance unload nope", ErrorCode.INSTANCE_NOT_FOUND),
        ("instance purge nope --yes", ErrorCode.INSTANCE_NOT_FOUND),
    ],
)
def test_wrong_instance_commands(op: Mem, line: str, code: ErrorCode) -> None:
    assert op.refused(*line.split()) is code


def test_instances_are_not_for_containers(capsule: Mem) -> None:
    assert capsule.refused("instance", "list") is ErrorCode.PERMISSION_DENIED


def test_a_purge_is_not_done_unasked(
    op: Mem, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.load()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ran = op("instance", "purge", CONTAINER)
    assert ran.status == 2
    assert ran.err.splitlines()[1] == "  hint: give --yes to do it unasked"
    assert daemon.instance_db().exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("n\n", 1), ("\n", 1), ("", 1), ("y\n", 0)])
def test_a_purge_asks_on_a_terminal(
    op: Mem, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    daemon.load()
    asked = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", asked)
    ran = op("instance", "purge", "k7p9m2xq")
    assert ran.status == status
    assert CONTAINER in asked.getvalue()
    assert daemon.instance_db().exists() == (status == 1)


# -- raw ----------------------------------------------------------------------------


def test_raw_prints_the_result(op: Mem) -> None:
    assert json.loads(op.said("raw", "status"))["state"] == "serving"
    assert op.said("raw", "ping", "{}") == "{}\n"


def test_raw_reads_stdin(op: Mem, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.load()
    reading, writing = os.pipe()
    os.write(writing, json.dumps({"instance": CONTAINER}).encode())
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert json.loads(op.said("raw", "status.latest", "-"))["row"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (("status.latst",), ErrorCode.METHOD_NOT_FOUND, None),
        (("status.latest", '{"instance": 1}'), ErrorCode.INVALID_PARAMS, "instance"),
        (("status.latest", '{"x": 1}'), ErrorCode.INVALID_PARAMS, "x"),
        (("status.latest", "[]"), ErrorCode.INVALID_PARAMS, None),
    ],
)
def test_raw_prints_the_error(
    op: Mem, arguments: tuple[str, ...], code: ErrorCode, field: str | None
) -> None:
    ran = op("raw", *arguments)
    told = json.loads(ran.err)
    assert (ran.status, told["code"], told.get("field")) == (code.exit_status, code.word, field)

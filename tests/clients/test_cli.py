"""The command line: where options stand, how errors are told, what the exit status is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from jackin_mem.cli import COMMANDS, make_parser
from jackin_mem.options import UsageError, socket_path
from jackin_memd.wire.address import find_socket
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import PingResult
from tests.clients.command import Command
from tests.clients.scripted import Caller, ScriptedDaemon
from tests.support.proves import proves

# -- options --------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "--socket /s --timeout 3 --format json ping",
        "ping --socket /s --timeout 3 --format json",
        "--timeout 3 ping --socket /s --format json",
        "--timeout 99 --format human --socket /x ping --socket /s --timeout 3 --format json",
        "--format json status --timeout 3 list --socket /s",
        "status show --socket /s --timeout 3 --format json",
        "instance --socket /s list --timeout 3 --format json",
        "watch a b --socket /s --timeout 3 --format json",
        "raw ping {} --socket /s --timeout 3 --format json",
    ],
)
def test_global_options_stand_before_or_after_the_command(line: str) -> None:
    options = make_parser().parse_args(line.split())
    assert (options.socket, options.timeout, options.format) == (Path("/s"), 3.0, "json")


def test_defaults_hold_where_nothing_is_given() -> None:
    options = make_parser().parse_args(["status", "list", "x"])
    assert (options.socket, options.home, options.timeout, options.format) == (
        None,
        None,
        10.0,
        "human",
    )
    assert (options.instance, options.limit) == ("x", 20)


@pytest.mark.parametrize(
    ("line", "instance", "word"),
    [
        ("status record working", None, "working"),
        ("status record k7p9m2xq working", "k7p9m2xq", "working"),
        ("status record --key k k7p9m2xq working", "k7p9m2xq", "working"),
        ("status record list show", "list", "show"),
    ],
)
def test_a_record_may_leave_the_instance_out(line: str, instance: str | None, word: str) -> None:
    options = make_parser().parse_args(line.split())
    assert (options.instance, options.word) == (instance, word)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "bogus",
        "status bogus",
        "status record",
        "status list --limit 0",
        "status list --limit x",
        "instance",
        "instance load",
        "instance list --state gone",
        "watch --from yesterday",
        "ping --timeout 0",
        "ping --timeout nan",
        "ping --timeout inf",
        "ping --timeout soon",
        "ping --format yaml",
        "ping --sock /s",
        "ping extra",
    ],
)
def test_a_wrong_line_is_refused_with_the_usage(mem: Command, line: str) -> None:
    ran = mem(*line.split())
    assert ran.status == 2
    assert ran.err.startswith("usage: jackin-mem")
    assert ran.out == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(mem: Command, command: str) -> None:
    ran = mem(command, "--help")
    assert ran.status == 0
    assert ran.out.startswith(f"usage: jackin-mem {command}")
    assert "--socket PATH" in ran.out


def test_the_version_is_told(mem: Command) -> None:
    from jackin_memd import __version__

    assert mem("--version").out == f"jackin-mem {__version__}\n"


def test_which_socket_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def chosen(*arguments: str) -> Path:
        return socket_path(make_parser().parse_args([*arguments, "ping"]))

    monkeypatch.setenv("JACKIN_MEMD_SOCKET", "/env.sock")
    assert chosen() == find_socket() == Path("/env.sock")
    assert chosen("--home", str(tmp_path)) == tmp_path / "run" / "memd.sock"
    assert chosen("--socket", "/s") == Path("/s")
    with pytest.raises(UsageError):
        chosen("--socket", "/s", "--home", "/h")


# -- errors ---------------------------------------------------------------------


def test_an_error_is_a_line_with_its_hint_below(mem: Command, path: Path) -> None:
    ran = mem("ping", "--socket", path)
    assert ran.status == ErrorCode.DAEMON_UNREACHABLE.exit_status == 20
    assert ran.out == ""
    message, hint = ran.err.splitlines()
    assert message == f"jackin-mem: the daemon is not running: there is no socket {path}"
    assert hint.startswith("  hint: start it with: jackin-memd start")


@proves("client-commands")
def test_an_error_as_json_is_one_object(mem: Command, path: Path) -> None:
    ran = mem("ping", "--socket", path, "--format", "json")
    assert ran.status == 20
    told = json.loads(ran.err)
    assert told["code"] == "DAEMON_UNREACHABLE"
    assert str(path) in told["message"]
    assert "jackin-memd start" in told["hint"]
    assert told["socket"] == str(path)


@pytest.mark.parametrize("form", ["human", "json"])
def test_what_the_daemon_says_can_not_control_the_terminal(
    mem: Command, path: Path, form: str
) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        error = MemdError(ErrorCode.INTERNAL_ERROR, "bad \x1b[31m\u202e", hint="also \x07")
        caller.refuse(caller.call("ping"), error)
        caller.until_closed()

    with ScriptedDaemon(path, script):
        ran = mem("ping", "--socket", path, "--format", form)
    assert ran.status == ErrorCode.INTERNAL_ERROR.exit_status
    assert not set(ran.err) & {"\x1b", "\u202e", "\x07"}
    assert "u202e" in ran.err


def test_two_places_at_once_are_refused(mem: Command) -> None:
    ran = mem("--socket", "/s", "--home", "/h", "ping")
    assert ran.status == 2
    assert ran.err.splitlines()[1] == "  hint: give one of them"
    ran = mem("--socket", "/s", "--home", "/h", "--format", "json", "ping")
    assert json.loads(ran.err) == {
        "code": "USAGE",
        "message": "--socket and --home name two places",
        "hint": "give one of them",
    }


def test_the_timeout_reaches_the_call(mem: Command, path: Path) -> None:
    with ScriptedDaemon(path, Caller.until_closed):
        ran = mem("ping", "--socket", path, "--timeout", "0.1")
    assert ran.status == ErrorCode.REQUEST_TIMEOUT.exit_status
    assert "0.1 s" in ran.err


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_is_quiet(mem: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackin_mem.commands.ping.run", interrupted)
    ran = mem("ping")
    assert (ran.status, ran.out, ran.err) == (130, "", "")


def test_output_that_can_not_be_written_is_told(
    mem: Command, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with ScriptedDaemon(path, script), full.open("w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        ran = mem("ping", "--socket", path)
    assert ran.status == 1
    assert "can't be written" in ran.err


def test_a_closed_stdout_is_no_failure(
    mem: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    monkeypatch.setattr(sys, "stdout", None)
    with ScriptedDaemon(path, script):
        ran = mem("ping", "--socket", path)
    assert (ran.status, ran.err) == (0, "")


def test_a_reader_that_went_away_is_quiet(
    mem: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        caller.answer(caller.call("ping"), PingResult())
        caller.until_closed()

    reading, writing = os.pipe()
    os.close(reading)
    with ScriptedDaemon(path, script), os.fdopen(writing, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        ran = mem("ping", "--socket", path)
    assert (ran.status, ran.err) == (141, "")


# -- raw ------------------------------------------------------------------------


def test_raw_lists_the_methods(mem: Command) -> None:
    lines = mem("raw", "--list").out.splitlines()
    assert lines[0].split() == ["METHOD", "WHAT"]
    assert any(line.startswith("status.record ") for line in lines)
    listed = json.loads(mem("raw", "--list", "--format", "json").out)
    assert {"name": "ping", "summary": "Answer at once."} in listed


def test_raw_without_a_method_is_a_wrong_line(mem: Command) -> None:
    ran = mem("raw")
    assert ran.status == 2
    assert "raw --list" in ran.err


@pytest.mark.parametrize("text", ["{bad", "", "[" * 100_000, '{"a": "\udcff"}', "{} {}"])
def test_raw_refuses_what_is_not_json_before_it_calls(mem: Command, text: str) -> None:
    ran = mem("raw", "ping", text, "--socket", "/nowhere/memd.sock")
    assert ran.status == ErrorCode.PARSE_ERROR.exit_status
    told = json.loads(ran.err)
    assert told["code"] == "PARSE_ERROR"
    assert told["message"].startswith("the argument is not JSON")


def test_raw_asks_the_daemon_before_it_names_near_methods(mem: Command, path: Path) -> None:
    def script(caller: Caller) -> None:
        caller.greet()
        call = caller.call("status.latst")
        caller.refuse(call, MemdError(ErrorCode.METHOD_NOT_FOUND, "no method status.latst"))
        caller.until_closed()

    with ScriptedDaemon(path, script):
        ran = mem("raw", "status.latst", "--socket", path)
    assert ran.status == ErrorCode.METHOD_NOT_FOUND.exit_status
    assert "did you mean status.latest" in json.loads(ran.err)["hint"]

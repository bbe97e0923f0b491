"""`jackin-mem watch`: what it shows, and that it outlives the daemon."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import msgspec
import pytest
from rich.console import Console

from jackin_mem.commands.watch import JsonPrinter, PlainPrinter, Printer, show
from jackin_mem.commands.watch_terminal import TerminalPrinter
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import StatusRow
from jackin_memd.wire.streams import EndEvent, GapEvent, RowsEvent
from tests.support.daemon import CONTAINER, PATIENCE_S, Daemon, record

NOON = 1_000_000_000
"""2001-09-09 01:46:40 UTC."""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def row(word: str = "working", metadata: str = "null", at: int = NOON) -> StatusRow:
    return StatusRow(id=7, occurred_at=at, new_status=word, metadata=msgspec.Raw(metadata.encode()))


GAP = GapEvent(subscription="s", instance=CONTAINER, missed=12, cursor="e.9", reason="trimmed")
END = EndEvent(subscription="s", instance=CONTAINER, code="PURGED", message="it was purged")

HOSTILE = row("w\x1b[2J\u202e", '{"a":"\u202e\x9b1m"}')


class Recorder:
    """A printer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def row(self, instance: str, row: StatusRow) -> None:
        self.told.append((instance, row.new_status))

    def gap(self, gap: GapEvent) -> None:
        self.told.append(("gap", gap.missed))

    def end(self, end: EndEvent) -> None:
        self.told.append(("end", end.instance))

    def note(self, text: str) -> None:
        self.told.append(("note", text))


def test_every_event_is_shown() -> None:
    recorder = Recorder()
    rows = [msgspec.Raw(msgspec.json.encode(row(word))) for word in ("working", "idle")]
    show(recorder, RowsEvent(subscription="s", instance=CONTAINER, cursor="e.2", rows=rows))
    show(recorder, GAP)
    show(recorder, END)
    assert recorder.told == [
        (CONTAINER, "working"),
        (CONTAINER, "idle"),
        ("gap", 12),
        ("end", CONTAINER),
    ]


def test_the_end_of_everything_is_an_error() -> None:
    ended = EndEvent(subscription="s", instance=None, code="PERMISSION_DENIED", message="m")
    with pytest.raises(MemdError) as raised:
        show(Recorder(), ended)
    assert (raised.value.code, raised.value.message) == (ErrorCode.PERMISSION_DENIED, "m")


# -- for pipes --------------------------------------------------------------------


def printed(capsys: pytest.CaptureFixture[str], printer: Printer) -> list[str]:
    printer.row(CONTAINER, row("blocked", '{"prompt":"Go on?"}'))
    printer.row(CONTAINER, row())
    printer.row(CONTAINER, HOSTILE)
    printer.gap(GAP)
    printer.gap(msgspec.structs.replace(GAP, missed=None))
    printer.end(END)
    printer.note("connected again")
    out, err = capsys.readouterr()
    assert err == "jackin-mem: connected again\n"
    assert not set(out) & {"\x1b", "\u202e", "\x9b"}
    return str(out).splitlines()


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, PlainPrinter()) == [
        f'2001-09-09 01:46:40  {CONTAINER}  blocked  {{"prompt":"Go on?"}}',
        f"2001-09-09 01:46:40  {CONTAINER}  working",
        rf'2001-09-09 01:46:40  {CONTAINER}  w\x1b[2J\u202e  {{"a":"\u202e\x9b1m"}}',
        f"{CONTAINER}  gap: 12 rows missed: trimmed",
        f"{CONTAINER}  gap: trimmed",
        f"{CONTAINER}  end: it was purged",
    ]


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in printed(capsys, JsonPrinter())]
    assert lines[0] == {
        "event": "row",
        "instance": CONTAINER,
        "id": 7,
        "occurred_at": NOON,
        "new_status": "blocked",
        "metadata": {"prompt": "Go on?"},
    }
    assert lines[2]["new_status"] == HOSTILE.new_status
    assert lines[2]["metadata"] == {"a": "\u202e\x9b1m"}
    assert lines[3] == {
        "event": "gap",
        "instance": CONTAINER,
        "missed": 12,
        "reason": "trimmed",
    }
    assert lines[5] == {
        "event": "end",
        "instance": CONTAINER,
        "code": "PURGED",
        "message": "it was purged",
    }


# -- for a terminal -----------------------------------------------------------------


def on_terminal(print_: Callable[[TerminalPrinter], None], *, color: bool = True) -> str:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=True, color_system="standard", width=60, no_color=not color
    )
    print_(TerminalPrinter(console))
    return file.getvalue()


@pytest.mark.parametrize(
    ("word", "style"),
    [
        ("working", "\x1b[36m"),
        ("busy", "\x1b[36m"),
        ("blocked", "\x1b[1;33m"),
        ("question", "\x1b[1;33m"),
        ("done", "\x1b[32m"),
        ("idle", "\x1b[2m"),
        ("of-its-own", "\x1b[1m"),
    ],
)
def test_words_have_their_colour(word: str, style: str) -> None:
    text = on_terminal(lambda printer: printer.row(CONTAINER, row(word)))
    assert f"{style}{word}" in text


def test_without_colour_there_is_none() -> None:
    text = on_terminal(lambda printer: printer.row(CONTAINER, row("blocked")), color=False)
    assert "\x1b[1mblocked" in text  # bold is no colour
    assert "33m" not in text


def test_a_line_has_local_time_and_the_short_name() -> None:
    def print_(printer: TerminalPrinter) -> None:
        printer.row(CONTAINER, row())
        printer.row(CONTAINER, row("idle"))

    lines = plain(on_terminal(print_)).splitlines()
    assert lines[0] == "2001-09-09"  # not today, so the day is told, once
    assert [line.split() for line in lines[1:]] == [
        ["01:46:40", "shop-builder", "k7p9m2xq", "working"],
        ["01:46:40", "shop-builder", "k7p9m2xq", "idle"],
    ]


def test_values_are_neither_markup_nor_escapes() -> None:
    def print_(printer: TerminalPrinter) -> None:
        printer.row(CONTAINER, row("[red]x[/red]"))
        printer.row(CONTAINER, HOSTILE)
        printer.end(msgspec.structs.replace(END, message="\x1b]0;t\x07"))

    text = on_terminal(print_)
    assert "[red]x[/red]" in text
    assert r"w\x1b[2J\u202e" in text
    assert not set(text) & {"\u202e", "\x9b", "\x07"}
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text


def test_a_long_line_is_cut_at_the_edge_visibly() -> None:
    long = json.dumps("x" * 500)
    lines = plain(on_terminal(lambda printer: printer.row(CONTAINER, row("idle", long))))
    line = lines.splitlines()[-1]
    assert len(line) == 60
    assert line.endswith("…")


def plain(text: str) -> str:
    """Without the styles."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# -- the command itself -----------------------------------------------------------------


@contextmanager
def watching(
    daemon: Daemon, *arguments: str, stdout: int = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A running `watch` that has subscribed."""
    command = [sys.executable, "-m", "jackin_mem", "watch", "--socket", str(daemon.socket)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def next_line(stream: IO[str] | None) -> str:
    assert stream is not None
    readable, _, _ = select.select([stream], [], [], PATIENCE_S)
    assert readable, "nothing came"
    return stream.readline()


def write(daemon: Daemon, *words: str) -> None:
    with daemon.client() as client:
        record(client, *words, instance=CONTAINER)


def test_it_outlives_the_daemon_and_ctrl_c_ends_it_quietly(daemon: Daemon) -> None:
    daemon.load()
    with watching(daemon, "--format", "json") as watch:
        assert "watching" in next_line(watch.stderr)
        write(daemon, "before")
        assert json.loads(next_line(watch.stdout))["new_status"] == "before"
        daemon.kill()
        assert "gone" in next_line(watch.stderr)
        daemon.start()
        write(daemon, "after")
        assert json.loads(next_line(watch.stdout))["new_status"] == "after"
        assert "connected again" in next_line(watch.stderr)
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=PATIENCE_S)
    assert (watch.returncode, out, err) == (0, "", "")


def test_from_oldest_shows_what_was(daemon: Daemon) -> None:
    daemon.load()
    write(daemon, "first", "second")
    with watching(daemon, "--from", "oldest", "k7p9m2xq") as watch:
        assert next_line(watch.stdout).endswith(f"{CONTAINER}  first\n")


def test_from_now_shows_what_comes(daemon: Daemon) -> None:
    daemon.load()
    write(daemon, "old")
    with watching(daemon) as watch:
        next_line(watch.stderr)
        write(daemon, "new")
        assert next_line(watch.stdout).endswith(f"{CONTAINER}  new\n")


def test_a_reader_that_goes_away_ends_it_quietly(daemon: Daemon) -> None:
    daemon.load()
    reading, writing = os.pipe()
    with watching(daemon, stdout=writing) as watch:
        os.close(writing)
        next_line(watch.stderr)
        os.close(reading)
        write(daemon, "unread")
        assert watch.wait(PATIENCE_S) == 141
        assert watch.stderr is not None
        assert watch.stderr.read() == ""


def test_an_unknown_instance_is_refused(daemon: Daemon) -> None:
    with watching(daemon, "nope") as watch:
        _, err = watch.communicate(timeout=PATIENCE_S)
    assert watch.returncode == ErrorCode.INSTANCE_NOT_FOUND.exit_status
    assert err.startswith("jackin-mem: no such instance")


@pytest.mark.parametrize(
    ("environment", "styled"),
    [
        ({"TERM": "xterm-256color"}, "\x1b[1;33mblocked"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "\x1b[1mblocked"),
        ({"TERM": "dumb"}, f"{CONTAINER}  blocked"),
    ],
)
def test_a_terminal_gets_colours_where_it_wants_them(
    daemon: Daemon, environment: dict[str, str], styled: str
) -> None:
    daemon.load()
    write(daemon, "blocked")
    ours, theirs = pty.openpty()
    with (
        closing(os.fdopen(ours, "rb", buffering=0)) as screen,
        watching(daemon, "--from", "oldest", stdout=theirs, **environment),
    ):
        os.close(theirs)
        shown = b""
        while b"blocked" not in shown:
            assert select.select([screen], [], [], PATIENCE_S)[0], "nothing came"
            shown += screen.read(65536)
    assert styled in shown.decode()


def test_there_is_no_way_to_watch_a_home_without_a_daemon(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "jackin_mem", "--home", str(tmp_path), "watch"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == ErrorCode.DAEMON_UNREACHABLE.exit_status
    assert "jackin-memd start" in ran.stderr

"""The log's lines: one for each event, for people or as JSON, without an error's text."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from jackin_memd.host.logs import LogFormat, configure
from tests.support.proves import proves

STORED = "hunter2"

log = logging.getLogger("jackin_memd.somewhere")


@pytest.fixture(autouse=True)
def root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def fail() -> None:
    raise ValueError(f"could not store {STORED}")


def test_a_line_for_people_has_time_level_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", LogFormat.HUMAN)
    log.warning("%s is full", "the disk")
    (line,) = lines(capsys)
    time, level, *message = line.split()
    assert time.endswith("Z")
    assert (level, " ".join(message)) == ("warning", "the disk is full")


def test_a_line_as_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", LogFormat.JSON)
    log.info("two\nlines")
    (line,) = lines(capsys)
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {"level": "info", "logger": log.name, "message": "two\nlines"}


@pytest.mark.parametrize(("level", "seen"), [("debug", 3), ("info", 2), ("error", 0)])
def test_what_is_below_the_level_is_left_out(
    capsys: pytest.CaptureFixture[str], level: str, seen: int
) -> None:
    configure(level, LogFormat.HUMAN)
    log.debug("d")
    log.info("i")
    log.warning("w")
    assert len(lines(capsys)) == seen


@proves("daemon-secrets-not-logged")
@pytest.mark.parametrize("log_format", LogFormat)
def test_a_traceback_says_where_and_what_kind_but_not_the_errors_text(
    capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    configure("info", log_format)
    try:
        fail()
    except ValueError:
        log.exception("a call failed")
    said = "\n".join(lines(capsys))
    for part in ("a call failed", "in fail", "builtins.ValueError"):
        assert part in said
    assert STORED not in said

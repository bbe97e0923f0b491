"""jackin-mem: the command of operators and agents.

A command's module is imported when that command was given, so a short command
pays for itself alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from jackin_mem.options import UsageError, add_global_options, pretty, wants_json
from jackin_mem.render import printable
from jackin_memd import __version__
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import MemdError

#: Each a module in `commands` with `configure(parser)`.
COMMANDS = {
    "status": "what the instances are doing: show, list, record",
    "watch": "every status transition, live",
    "instance": "load, unload, purge, list, get",
    "ping": "is the daemon there, and how fast",
    "raw": "call any method with JSON",
    "tour": "see the main job done: no acknowledged row is lost to a kill",
}

FAILED, USAGE = 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 and the signal's number, as shells say it


class _LazyParser(argparse.ArgumentParser):
    """A command's parser; the command's module completes it when it is used."""

    module: str | None = None

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is not None:
            module, self.module = self.module, None
            import_module(f"jackin_mem.commands.{module}").configure(self)
        return super().parse_known_args(*args, **kwargs)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jackin-mem",
        description="What this operator's agents do, from the daemon that remembers it.",
        epilog="The daemon itself is run by jackin-memd.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"jackin-mem {__version__}")
    add_global_options(parser)
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", parser_class=_LazyParser
    )
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, allow_abbrev=False)
        command.description = text[:1].upper() + text[1:] + "."
        command.module = name
        add_global_options(command, repeated=True)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    _never_fail_to_print()
    try:
        options = make_parser().parse_args(arguments)
        status = run(options)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        _silence()
        status = BROKEN_PIPE
    sys.exit(status)


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit status, after its failure was told on stderr."""
    try:
        status = options.run(options) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except MemdError as error:
        _complain(options, error.message, error.hint, error.data())
        return error.code.exit_status
    except UsageError as error:
        _complain(options, error.message, error.hint, {"code": "USAGE"})
        return USAGE
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk behind `>`; sockets fail as MemdError
        _silence()
        _complain(options, f"the output can't be written: {error}", None, {"code": "OUTPUT"})
        return FAILED
    return int(status)


def _complain(
    options: argparse.Namespace, message: str, hint: str | None, data: dict[str, Any]
) -> None:
    if wants_json(options):
        told = {"code": data["code"], "message": message, **data}
        if hint:
            told["hint"] = hint
        print(pretty(encode(told)), file=sys.stderr)
        return
    print(f"jackin-mem: {printable(message)}", file=sys.stderr)
    if hint:
        print(f"  hint: {printable(hint)}", file=sys.stderr)


def _never_fail_to_print() -> None:
    """A terminal that is not UTF-8 gets escapes, not an exception."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _silence() -> None:
    """The reader has gone; Python would complain when it flushes at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

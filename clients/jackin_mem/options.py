"""What all commands share: the global options and what follows from them."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import msgspec

from jackin_mem.blocking import Client
from jackin_mem.render import safe_json
from jackin_mem.session import DEFAULT_TIMEOUT_S
from jackin_memd.wire.address import HOME_VARIABLE, find_socket
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Role


class UsageError(Exception):
    """The command can't be done as given; nothing was sent. Exit status 2."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def add_global_options(parser: argparse.ArgumentParser, *, repeated: bool = False) -> None:
    """On the main parser with their defaults; `repeated` on every other, where a
    default would undo what stood before the command."""

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if repeated else value

    group = parser.add_argument_group("global options")
    group.add_argument(
        "--socket", type=Path, metavar="PATH", default=default(None), help="the daemon's socket"
    )
    group.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        default=default(None),
        help=f"the jackin home (${HOME_VARIABLE}, ~/.jackin)",
    )
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        default=default(DEFAULT_TIMEOUT_S),
        help=f"seconds for each call ({DEFAULT_TIMEOUT_S:g})",
    )
    group.add_argument(
        "--format", choices=("human", "json"), default=default("human"), help="of output and errors"
    )


def add_command(commands: Any, name: str, text: str, **options: Any) -> argparse.ArgumentParser:
    """A sub-command of a command, with the global options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[:1].upper() + text[1:] + ".",
        allow_abbrev=False,
        **options,
    )
    add_global_options(parser, repeated=True)
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def positive(text: str) -> int:
    """An argparse type: a whole number above 0."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def socket_path(options: argparse.Namespace) -> Path:
    """`--socket`, else the one of `--home`, else what the environment says."""
    if options.socket is not None and options.home is not None:
        raise UsageError("--socket and --home name two places", "give one of them")
    if options.socket is not None:
        return Path(options.socket)
    if options.home is not None:
        return find_socket({HOME_VARIABLE: str(options.home)})
    return find_socket()


def make_client(options: argparse.Namespace, role: Role = Role.OPERATOR) -> Client:
    """A client that connects when it is entered or first called."""
    return Client(socket_path(options), timeout_s=options.timeout, role=role)


def wants_json(options: argparse.Namespace) -> bool:
    return bool(options.format == "json")


def parse_json(payload: bytes, what: str, hint: str) -> Any:
    """The value of JSON that the user gave as `what`. Raises MemdError (PARSE_ERROR)."""
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise MemdError(ErrorCode.PARSE_ERROR, f"{what} is not JSON: {error}", hint=hint) from None


def print_json(value: Any) -> None:
    print(pretty(encode(value)))


def pretty(json: bytes) -> str:
    """JSON laid out for reading, safe for a terminal."""
    return safe_json(msgspec.json.format(json, indent=2).decode())


def note(text: str) -> None:
    """Something beside the output."""
    print(f"jackin-mem: {text}", file=sys.stderr, flush=True)

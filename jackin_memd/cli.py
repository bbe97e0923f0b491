"""jackin-memd: serve, start, stop, restart, status, ping."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from jackin_memd import __version__
from jackin_memd.wire.errors import ErrorCode, MemdError


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except MemdError as error:
        _complain(error, as_json=getattr(options, "json", False))
        sys.exit(error.code.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jackin-memd", description="The daemon that owns this operator's agent state."
    )
    parser.add_argument("--version", action="version", version=f"jackin-memd {__version__}")
    parser.add_argument("--home", type=Path, help="the jackin home (default: $JACKIN_HOME_DIR)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run in the foreground")
    serve.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    serve.set_defaults(run=_serve)
    return parser


def _complain(error: MemdError, *, as_json: bool) -> None:
    print(f"jackin-memd: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def _serve(options: argparse.Namespace) -> None:
    from jackin_memd import app
    from jackin_memd.host.config import config_dir, read_settings
    from jackin_memd.host.paths import open_home
    from jackin_memd.host.process import make_private
    from jackin_memd.wire.address import home_dir

    make_private()
    home = open_home(options.home or home_dir())
    app.run(home, read_settings(config_dir()), lambda: _say_ready(options.ready_fd))


def _say_ready(descriptor: int | None) -> None:
    if descriptor is not None:
        os.write(descriptor, b"ready\n")
        os.close(descriptor)


__all__ = ["ErrorCode", "main"]

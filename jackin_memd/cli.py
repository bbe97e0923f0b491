"""jackin-memd: serve, start, stop, restart, status, ping.

Imports wait for the command that needs them: `serve` alone loads the daemon.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jackin_memd import __version__
from jackin_memd.wire.errors import ErrorCode, MemdError

if TYPE_CHECKING:
    from jackin_memd.host.paths import Home
    from jackin_memd.wire.session import DaemonStatus

LEVELS = ("debug", "info", "warning", "error")


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except MemdError as error:
        _complain(error)
        sys.exit(error.code.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away; say nothing more, also not when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jackin-memd",
        description="The daemon that owns this operator's agent state.",
        epilog="The commands for people and agents are in jackin-mem.",
    )
    parser.add_argument("--version", action="version", version=f"jackin-memd {__version__}")
    parser.add_argument(
        "--home", type=Path, metavar="DIR", help="the jackin home ($JACKIN_HOME_DIR, ~/.jackin)"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run in the foreground until a signal or `stop`")
    serve.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    serve.set_defaults(run=_serve)
    start = commands.add_parser("start", help="run in the background; fine if it runs already")
    start.set_defaults(run=_start)
    restart = commands.add_parser("restart", help="stop, whatever its version, and start")
    restart.set_defaults(run=_restart)
    for command in (serve, start, restart):
        _add_log_options(command)
    commands.add_parser("stop", help="finish what was accepted and exit").set_defaults(run=_stop)
    status = commands.add_parser("status", help="what the daemon is, holds and has done")
    status.add_argument("--json", action="store_true", help="as one JSON object")
    status.set_defaults(run=_status)
    commands.add_parser("ping", help="is it there, and how fast").set_defaults(run=_ping)
    return parser


def _add_log_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--log-level", choices=LEVELS, default=os.environ.get("JACKIN_MEMD_LOG_LEVEL", "info")
    )
    command.add_argument(
        "--log-format",
        choices=("human", "json"),
        default=os.environ.get("JACKIN_MEMD_LOG_FORMAT", "human"),
    )


def _complain(error: MemdError) -> None:
    print(f"jackin-memd: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def _home(options: argparse.Namespace) -> Home:
    from jackin_memd.host.paths import open_home
    from jackin_memd.host.process import make_private
    from jackin_memd.wire.address import home_dir

    make_private()
    return open_home(options.home or home_dir())


def _serve(options: argparse.Namespace) -> None:
    from jackin_memd import app
    from jackin_memd.host import logs
    from jackin_memd.host.config import config_dir, read_settings

    logs.configure(options.log_level, logs.LogFormat(options.log_format))
    try:
        settings = read_settings(config_dir())
        app.run(_home(options), settings, lambda: _tell_starter(options, b"ready\n"))
    except MemdError as error:
        _tell_starter(options, _as_line(error))
        raise
    except Exception as error:
        what = f"it ended by a fault of its own ({type(error).__name__})"
        fault = MemdError(ErrorCode.INTERNAL_ERROR, what, hint="its log has the traceback")
        _tell_starter(options, _as_line(fault))
        raise


def _tell_starter(options: argparse.Namespace, word: bytes) -> None:
    if options.ready_fd is not None:
        try:
            os.write(options.ready_fd, word)
        except OSError:  # the starter has gone; nobody waits for the word
            pass
        else:
            os.close(options.ready_fd)
        options.ready_fd = None


def _as_line(error: MemdError) -> bytes:
    from jackin_memd.control import StartFailure
    from jackin_memd.wire.codec import encode

    return encode(StartFailure(error.code.word, error.message, error.hint)) + b"\n"


def _log_arguments(options: argparse.Namespace) -> list[str]:
    return ["--log-level", options.log_level, "--log-format", options.log_format]


def _start(options: argparse.Namespace) -> None:
    from jackin_memd import control

    status, started = control.start(_home(options), _log_arguments(options))
    word = "started" if started else "was running already"
    print(f"jackin-memd {word}: pid {status.pid}, socket {status.socket}")


def _restart(options: argparse.Namespace) -> None:
    from jackin_memd import control

    control.stop(_home(options))
    _start(options)


def _stop(options: argparse.Namespace) -> None:
    from jackin_memd import control

    socket = _operator_socket(options)
    never_used = socket.is_absolute() and not socket.parent.exists()  # and stays so
    pid = None if never_used else control.stop(_home(options))
    print("no daemon was running" if pid is None else f"jackin-memd stopped: pid {pid}")


def _operator_socket(options: argparse.Namespace) -> Path:
    """For commands that only ask: they create no home where there is none."""
    from jackin_memd.wire.address import check_length, home_dir, operator_socket

    socket = operator_socket(options.home or home_dir())
    check_length(socket)
    return socket


def _status(options: argparse.Namespace) -> None:
    from jackin_mem.blocking import Client
    from jackin_memd.wire.codec import encode
    from jackin_memd.wire.session import DaemonStatusParams

    with Client(_operator_socket(options)) as client:
        status = client.call("status", DaemonStatusParams())
    print(encode(status).decode() if options.json else _as_text(status))


def _as_text(status: DaemonStatus) -> str:
    latency = status.acknowledgement
    connections = ", ".join(f"{count} {name}" for name, count in status.connections.items())
    rows = [
        ("state", f"{status.state}, pid {status.pid}, up {status.uptime_s:.0f} s"),
        ("build", f"{status.build}, protocol {status.protocol_version}"),
        ("sqlite", status.sqlite_version),
        ("socket", status.socket),
        ("instances", f"{status.instances_loaded} loaded, {status.instances_failed} failed"),
        ("databases", f"{status.databases_open} open"),
        ("connections", f"{connections}; {status.subscriptions} subscriptions"),
        ("memory", f"{status.rss_bytes / 2**20:.1f} MiB, {status.threads} threads"),
        ("in flight", f"{status.requests_in_flight} requests, {status.write_queue_depth} writes"),
        (
            "commits",
            f"{status.commits}, {status.rows} rows, {status.rows_per_commit or 0} a commit",
        ),
        ("acknowledged", f"p50 {latency.p50_ms or 0} ms, p99 {latency.p99_ms or 0} ms"),
    ]
    return "\n".join(f"{name:13} {value}" for name, value in rows)


def _ping(options: argparse.Namespace) -> None:
    from time import perf_counter

    from jackin_mem.blocking import Client
    from jackin_memd.wire.session import PingParams

    with Client(_operator_socket(options)) as client:
        began = perf_counter()
        client.call("ping", PingParams())
        print(f"answered in {(perf_counter() - began) * 1000:.2f} ms")

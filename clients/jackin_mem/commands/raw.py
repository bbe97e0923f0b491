"""jackin-mem raw: any method, JSON in and JSON out."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

from jackin_mem.options import UsageError, make_client, parse_json, pretty, print_json, wants_json
from jackin_mem.render import table
from jackin_mem.session import unknown_method
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.methods import METHODS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", nargs="?", metavar="METHOD", help="such as status.latest")
    parser.add_argument(
        "params", nargs="?", metavar="PARAMS", help="a JSON object; - reads it from stdin"
    )
    parser.add_argument("--list", action="store_true", help="list the methods")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.list:
        _list(options)
    elif options.method is None:
        raise UsageError("raw needs a METHOD", "jackin-mem raw --list shows all methods")
    else:
        options.format = "json"  # an error too is for a program to read
        _call(options)


def _call(options: argparse.Namespace) -> None:
    params = read_json("{}" if options.params is None else options.params)
    with make_client(options) as client:
        try:
            print(pretty(bytes(client.call_raw(options.method, params))))
        except MemdError as error:
            # The daemon may be newer than our table, so it is asked first.
            if error.code is ErrorCode.METHOD_NOT_FOUND:
                raise unknown_method(options.method) from None
            raise


def read_json(text: str) -> msgspec.Raw:
    """JSON from the argument, or from stdin for `-`. Raises MemdError (PARSE_ERROR)."""
    from_stdin = text == "-"
    payload = sys.stdin.buffer.read() if from_stdin else os.fsencode(text)
    hint = """quote it for the shell: '{"instance": "jk-…"}'"""
    parse_json(payload, "stdin" if from_stdin else "the argument", hint)
    return msgspec.Raw(payload)


def _list(options: argparse.Namespace) -> None:
    methods = METHODS.values()
    if wants_json(options):
        print_json([{"name": method.name, "summary": method.summary} for method in methods])
    else:
        print(table(("METHOD", "WHAT"), [(method.name, method.summary) for method in methods]))

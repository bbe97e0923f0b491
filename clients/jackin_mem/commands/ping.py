"""jackin-mem ping: one round trip to the daemon."""

from __future__ import annotations

import argparse
from time import perf_counter

from jackin_mem.options import make_client, print_json, wants_json
from jackin_memd.wire.session import PingParams


def configure(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    with make_client(options) as client:
        began = perf_counter()
        client.call("ping", PingParams())
        round_trip_ms = round((perf_counter() - began) * 1000, 3)
    if wants_json(options):
        print_json({"round_trip_ms": round_trip_ms})
    else:
        print(f"answered in {round_trip_ms:.2f} ms")

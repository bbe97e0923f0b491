"""jackin-mem tour: the main job, run for real in a throw-away home."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "It starts a daemon of its own in a temporary folder, kills it in the middle of its "
        "work, and counts. Your own home and daemon are not touched."
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from jackin_mem.tour import take

    return take(options.timeout)

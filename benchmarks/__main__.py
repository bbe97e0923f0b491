"""`python -m benchmarks`: run groups, print their tables."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import msgspec

from benchmarks.measure import Settings, machine
from benchmarks.report import Table

#: Name of the module, and what it is about.
GROUPS = {
    "sqlite_binding": "which SQLite: APSW, pyturso, the standard library (ADR 1)",
    "memory_home": "whether two databases can commit together (ADR 2)",
    "writer_model": "how a write gets from the event loop to the disk (ADR 3)",
    "codec": "what checking hostile JSON costs",
    "daemon": "the daemon against bare echo, bare commits and direct writers",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure; each group prints Markdown tables.",
        epilog="\n".join(f"{name:16} {about}" for name, about in GROUPS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="groups to run; all when none is named")
    parser.add_argument("--quick", action="store_true", help="short rounds, to try it out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the tables there")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.name) - set(GROUPS))
    if unknown:
        parser.error(f"no group named {', '.join(unknown)}; there are {', '.join(GROUPS)}")

    settings = Settings(quick=arguments.quick)
    where = machine()
    print(f"Measured on {where}.{' Quick run: do not quote.' if arguments.quick else ''}\n")
    results: dict[str, list[Table]] = {}
    for name in arguments.name or GROUPS:
        print(f"## {name}: {GROUPS[name]}\n", flush=True)
        results[name] = _run(name, settings)
    if arguments.json:
        document = {"machine": where, "quick": arguments.quick, "groups": results}
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    figures = [f for tables in results.values() for table in tables for f in table.figures]
    missed = [figure.name for figure in figures if figure.met is False]
    if missed:
        print("Not met: " + "; ".join(missed))
    if settings.disturbed:
        began = f"{settings.disturbed} of {settings.started} measurements"
        print(f"{began} began while other programs kept the machine busy.")
    return 0


def _run(name: str, settings: Settings) -> list[Table]:
    try:
        group = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        print(f"skipped: {error}; install the project with its `dev` extra\n")
        return []
    tables: list[Table] = []
    for table in group.run(settings):
        print(table.markdown(), flush=True)
        tables.append(table)
    return tables


if __name__ == "__main__":
    sys.exit(main())

"""Many processes that write one row a call, through the daemon and directly."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.daemon_process import (
    container_name,
    echo_server,
    running_daemon,
    start_helper,
    wait_ready,
)
from benchmarks.group_commits import CREATE
from benchmarks.measure import Settings, median, percentile, us
from benchmarks.report import Figure, Table, at_least, at_most, figures_table
from benchmarks.thread_costs import spent_by

PROCESSES = (8, 32)
WANTED_RATIO = {8: 3.0, 32: 8.0}
WANTED_WAIT = 0.1


class Outcome(msgspec.Struct, frozen=True):
    rows_per_s: float
    p50_us: float
    p99_us: float
    worst_us: float
    refused: int
    spent: str = ""

    def numbers(self) -> dict[str, float]:
        return {
            name: getattr(self, name) for name in ("rows_per_s", "p50_us", "p99_us", "worst_us")
        }

    def sentence(self) -> str:
        text = (
            f"{self.rows_per_s:,.0f} rows/s, p50 {us(self.p50_us)}, p99 {us(self.p99_us)}, "
            f"worst {us(self.worst_us)}"
        )
        return text + (f", {self.refused} refused as busy" if self.refused else "")


#: What the load processes do, and how the tables call it.
NAMES = {
    "direct": "direct sqlite3, WAL, FULL, busy_timeout 5 s",
    "echo": "bare echo of the same frames, no commit",
    "client": "daemon, `jackin_mem` client",
    "slim": "daemon, slim client",
}

DAEMON = ("client", "slim")


def run(settings: Settings, folder: Path, slow: Mapping[str, str] | None) -> Iterator[Table]:
    """One table for each number of processes; `slow` is the environment of the shim."""
    suffix = ", each sync 2 ms slower" if slow else ""
    for processes in PROCESSES:
        rounds: dict[str, list[Outcome]] = {kind: [] for kind in NAMES}
        for turn in range(2 if settings.quick else 3):
            place = folder / f"{'slow' if slow else 'plain'}-{processes}-{turn}"
            place.mkdir()
            kinds = list(NAMES)[turn % 4 :] + list(NAMES)[: turn % 4]
            for kind in kinds:
                settings.wait_for_calm()
                rounds[kind].append(_measure(settings, kind, place / kind, processes, slow))
        yield _table(f"{processes} processes, one row a call{suffix}", processes, rounds)


def _measure(
    settings: Settings, kind: str, place: Path, processes: int, slow: Mapping[str, str] | None
) -> Outcome:
    """Each load on a server or a file of its own, so that none meets a table that is full."""
    seconds = settings.load_s
    if kind == "direct":
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(CREATE)
        return _outcome(*_load(kind, str(place), processes, seconds, slow), seconds)
    if kind == "echo":
        with echo_server(place) as socket:
            return _outcome(*_load(kind, str(socket), processes, seconds, None), seconds)
    with running_daemon(place, extra=slow) as daemon:
        before = spent_by(daemon.pid)
        taken, refused = _load(kind, str(daemon.socket), processes, seconds, None)
        spent = spent_by(daemon.pid).since(before, len(taken))
    return _outcome(taken, refused, seconds, spent)


def _load(
    kind: str, target: str, processes: int, seconds: float, extra: Mapping[str, str] | None
) -> tuple[list[float], int]:
    arguments = ("load_process", kind, target, container_name(0), str(seconds))
    running = [start_helper(*arguments, extra=extra) for _ in range(processes)]
    try:
        for process in running:
            wait_ready(process)
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        reports = [json.loads(process.communicate()[0]) for process in running]
    except BaseException:
        for process in running:
            process.kill()
        raise
    taken = [each for report in reports for each in report["taken_us"]]
    return taken, sum(report["refused"] for report in reports)


def _outcome(taken_us: list[float], refused: int, seconds: float, spent: str = "") -> Outcome:
    return Outcome(
        rows_per_s=(len(taken_us) - refused) / seconds,
        p50_us=percentile(taken_us, 0.5),
        p99_us=percentile(taken_us, 0.99),
        worst_us=max(taken_us),
        refused=refused,
        spent=spent,
    )


def _middle(outcomes: list[Outcome]) -> Outcome:
    """The median of each number, over the rounds."""
    return Outcome(
        rows_per_s=median([o.rows_per_s for o in outcomes]),
        p50_us=median([o.p50_us for o in outcomes]),
        p99_us=median([o.p99_us for o in outcomes]),
        worst_us=median([o.worst_us for o in outcomes]),
        refused=sum(o.refused for o in outcomes),
        spent=outcomes[-1].spent,
    )


def _table(title: str, processes: int, rounds: dict[str, list[Outcome]]) -> Table:
    middle = {kind: _middle(outcomes) for kind, outcomes in rounds.items()}
    direct = middle["direct"]
    figures: list[Figure] = []
    notes = []
    wanted = WANTED_RATIO[processes]
    for kind, name in NAMES.items():
        ours = middle[kind]
        figures.append(Figure(name=name, measured=ours.sentence(), values=ours.numbers()))
        if kind in DAEMON:
            more, longer = ours.rows_per_s / direct.rows_per_s, ours.worst_us / direct.worst_us
            least, most = f"≥ {wanted:.0f}×", f"≤ {WANTED_WAIT}×"
            figures += [
                at_least(f"{name}: rows/s", f"{more:.1f}×", more, wanted, least),
                at_most(f"{name}: worst wait", f"{longer:.3f}×", longer, WANTED_WAIT, most),
            ]
            notes += [f"{name}: {ours.spent}."] if ours.spent else []
    return figures_table(title, figures, notes)

"""One client: a round trip, and an acknowledged row, against bare ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.daemon_process import Daemon, container_name, echo_server, running_daemon
from benchmarks.group_commits import INSERT, open_database
from benchmarks.measure import Settings, each_us, median, percentile, us
from benchmarks.report import Figure, Table, at_most, figures_table
from benchmarks.slim_client import SlimClient
from benchmarks.thread_costs import spent_by
from jackin_memd.wire.session import PingParams
from jackin_memd.wire.status import StatusEntry, StatusRecordParams

PING_RATIO = 1.5
RECORD_RATIO = 2.0

_RECORD = StatusRecordParams(
    entries=[StatusEntry(new_status="working", occurred_at=1_796_000_000)],
    instance=container_name(0),
)


def run(settings: Settings, folder: Path) -> Table:
    with running_daemon(folder / "d") as daemon, echo_server(folder / "echo.sock") as echo:
        measured, spent = _measure(settings, daemon, echo, folder / "commit.db")
    notes = [_NOTE, *([f"status.record: {spent}."] if spent else [])]
    return figures_table("One client, round trips", _figures(measured), notes)


_NOTE = (
    "The slim client sends a frame and reads one; the echo server gets the daemon's own "
    "frames. The commit is one APSW insert with the daemon's pragmas on a connection of its own."
)


def _measure(
    settings: Settings, daemon: Daemon, echo: Path, database: Path
) -> tuple[dict[str, float], str]:
    slim, bare = SlimClient(daemon.socket), SlimClient(echo)
    slim.hello()
    ping, record = slim.frame("ping", PingParams()), slim.frame("status.record", _RECORD)
    connection = open_database(database, "FULL")
    connection.execute("PRAGMA cache_size=-256")
    row = (1_796_000_000, "working", None)
    client = daemon.client()
    actions: dict[str, tuple[Callable[[], object], int]] = {
        "echo of a ping": (lambda: bare.exchange(ping), 2000),
        "ping": (lambda: slim.exchange(ping), 2000),
        "ping, real client": (lambda: client.call("ping", PingParams()), 1000),
        "echo of a record": (lambda: bare.exchange(record), 1000),
        "commit": (lambda: connection.execute(INSERT, row), 500),
        "record": (lambda: slim.exchange(record), 500),
        "record, real client": (lambda: client.call("status.record", _RECORD), 500),
    }
    rounds: dict[str, list[float]] = {name: [] for name in actions}
    tails: dict[str, list[float]] = {name: [] for name in actions}
    spent = ""
    for _ in settings.turns():
        for name, (action, times) in actions.items():
            action()
            before = spent_by(daemon.pid)
            taken = each_us(action, settings.times(times))
            if name == "record":
                spent = spent_by(daemon.pid).since(before, len(taken))
            rounds[name].append(median(taken))
            tails[name].append(percentile(taken, 0.99))
    client.close()
    slim.close()
    bare.close()
    connection.close()
    p50s = {name: median(values) for name, values in rounds.items()}
    p99s = {f"{name} p99": median(values) for name, values in tails.items()}
    return p50s | p99s, spent


def _figures(p50s: dict[str, float]) -> list[Figure]:
    def plain(name: str, key: str) -> Figure:
        return Figure(name=name, measured=f"p50 {us(p50s[key])}, p99 {us(p50s[f'{key} p99'])}")

    ping = p50s["ping"] / p50s["echo of a ping"]
    bare = p50s["echo of a record"] + p50s["commit"]
    record = p50s["record"] / bare
    return [
        plain("bare trio echo of the ping frame", "echo of a ping"),
        plain("ping, slim client", "ping"),
        at_most("ping against the echo", f"{ping:.2f}×", ping, PING_RATIO, f"≤ {PING_RATIO}×"),
        plain("ping, `jackin_mem` client", "ping, real client"),
        plain("bare trio echo of the record frame", "echo of a record"),
        plain("one APSW commit", "commit"),
        plain("status.record, durable, slim client", "record"),
        at_most(
            f"status.record against echo and commit ({us(bare)})",
            f"{record:.2f}×", record, RECORD_RATIO, f"≤ {RECORD_RATIO:.0f}×",
        ),
        plain("status.record, durable, `jackin_mem` client", "record, real client"),
    ]  # fmt: skip

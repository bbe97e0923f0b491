"""`jackin-mem tour` finds what it looks for, ends by itself and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from jackin_mem import tour, tour_stage
from jackin_mem.blocking import Client
from jackin_mem.tour import Story, judge, read_disk, read_ledger
from jackin_mem.tour_cast import Progress
from jackin_mem.tour_stage import Clock, stage
from jackin_mem.tour_writer import Receipt, note, record
from jackin_memd.wire.peer import Call
from jackin_memd.wire.status import StatusRecordParams, StatusRecordResult
from tests.clients.command import Command
from tests.clients.scripted import Caller, ScriptedDaemon
from tests.support.daemon import PATIENCE_S

RECEIPTS = [Receipt(1, "a", 1), Receipt(2, "b", 3)]
ROWS = [(1, "a"), (2, "b")]


def test_accounts_that_agree_hold() -> None:
    verdict = judge(RECEIPTS, ROWS, ROWS)
    assert verdict.holds
    assert (verdict.acknowledged, verdict.repeated, verdict.on_disk, verdict.seen) == (2, 1, 2, 2)


@pytest.mark.parametrize(
    ("disk", "seen", "fault", "markers"),
    [
        ([(1, "a")], [(1, "a")], "missing", ["b"]),
        ([(1, "a"), (3, "b")], [(1, "a"), (3, "b")], "missing", ["b"]),
        ([*ROWS, (3, "b")], [*ROWS, (3, "b")], "doubled", ["b"]),
        (ROWS, [(1, "a")], "unseen", ["b"]),
        (ROWS, [*ROWS, (2, "b")], "seen_twice", ["b"]),
        (ROWS, [*ROWS, (3, "c")], "invented", ["c"]),
    ],
)
def test_every_difference_is_a_fault(
    disk: list[tuple[int, str]], seen: list[tuple[int, str]], fault: str, markers: list[str]
) -> None:
    verdict = judge(RECEIPTS, disk, seen)
    assert not verdict.holds
    assert getattr(verdict, fault) == markers


def test_a_fault_is_told_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    Story().verdict(judge(RECEIPTS, ROWS, [(1, "a")]), 1.0)
    out = capsys.readouterr().out
    assert "The accounts differ" in out
    assert re.search(r"unseen +b\n", out)
    assert "\x1b" not in out


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with path.open("w", encoding="utf-8") as book:
        for receipt in RECEIPTS:
            note(book, receipt)
    assert read_ledger(path) == RECEIPTS


def test_the_agent_repeats_a_lost_call_with_its_key(path: Path) -> None:
    keys: list[str | None] = []

    def take_call(caller: Caller) -> Call:
        caller.greet()
        call, params = caller.params("status.record", StatusRecordParams)
        keys.append(params.idempotency_key)
        return call

    def lost(caller: Caller) -> None:
        take_call(caller)

    def answered(caller: Caller) -> None:
        result = StatusRecordResult(first_id=5, last_id=5, cursor="e.5")
        caller.answer(take_call(caller), result)
        caller.until_closed()

    with ScriptedDaemon(path, lost, answered), closing(Client(path)) as client:
        assert record(client, "step-1", "idle") == Receipt(5, "step-1", 2)
    assert keys == ["step-1", "step-1"]


def test_the_disk_is_read_without_writing(tmp_path: Path) -> None:
    path = tmp_path / "jackin.db"
    with pytest.raises(sqlite3.OperationalError):
        read_disk(path)  # mode=ro makes no file
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE status_log (id INTEGER PRIMARY KEY, metadata TEXT)")
        database.execute("""INSERT INTO status_log VALUES (1, '{"marker": "a"}')""")
        database.commit()
    assert read_disk(path) == [(1, "a")]


def test_a_count_that_can_not_be_reached_is_not_waited_for() -> None:
    progress = Progress()
    progress.add(2)
    clock = Clock(PATIENCE_S)
    assert progress.reached(2, clock)
    progress.end()
    assert not progress.reached(3, clock)
    assert clock.left() > PATIENCE_S / 2
    assert not Progress().reached(1, Clock(0))


def test_the_stage_is_gone_whatever_happens() -> None:
    with pytest.raises(KeyError), stage() as place:
        place.create_instance()
        assert place.folder.stat().st_mode & 0o777 == 0o700
        raise KeyError
    assert not place.folder.exists()


# -- the tour itself ------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "jackin_mem", "tour"]


def start(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def processes(story: str) -> list[int]:
    """The pids that the tour told of."""
    return [int(pid) for pid in re.findall(r"(?:pid|process) (\d+)", story)]


def home(story: str) -> Path:
    found = re.search(r"home (\S+)", story)
    assert found
    return Path(found[1])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nothing_is_lost_and_nothing_is_left(tmp_path: Path) -> None:
    own = tmp_path / "own"  # the operator's, which it must not touch
    with start(JACKIN_HOME_DIR=str(own), JACKIN_MEMD_SOCKET=str(own / "s")) as run:
        out, err = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, err) == (0, "")
    assert "Every acknowledged row is on disk once, and was seen once." in out
    count = re.search(r"acknowledged +(\d+)", out)
    assert count
    assert int(count[1]) >= tour.ROWS_BEFORE + tour.ROWS_AFTER
    assert re.search(rf"on disk +{count[1]} +0 missing, 0 doubled", out)
    assert re.search(rf"seen by the subscriber +{count[1]} +0 lost, 0 doubled", out)
    assert "\x1b" not in out
    pids = processes(out)
    assert len(pids) == 3
    assert not any(alive(pid) for pid in pids)
    assert not home(out).parent.exists()
    assert not own.exists()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_stopped_half_way_it_leaves_nothing(number: signal.Signals, status: int) -> None:
    with start() as run:
        assert run.stdout is not None
        story = ""
        while "an agent reports" not in story:
            line = run.stdout.readline()
            assert line, "it ended early"
            story += line
        run.send_signal(number)
        rest, err = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, err) == (status, "")
    assert not any(alive(pid) for pid in processes(story + rest))
    assert not home(story).parent.exists()


@pytest.mark.parametrize(
    ("word", "status", "told"),
    [
        ({"code": "DISK_FULL", "message": "no space", "hint": "make some"}, 65, "no space"),
        (None, 23, "the daemon did not come up"),
    ],
)
def test_a_daemon_that_does_not_come_up_is_told(
    mem: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    word: dict[str, str] | None,
    status: int,
    told: str,
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import os, sys\n"
        f"os.write(int(sys.argv[-1]), {json.dumps(word).encode() if word else b''!r})\n"
        "os.close(int(sys.argv[-1]))\n"
        "print('the log says so')\n"
        "sys.exit(1)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(tour_stage, "SERVE", (sys.executable, str(broken)))
    ran = mem("tour")
    assert ran.status == status
    assert ran.err.splitlines()[:2] == ["the log says so", f"jackin-mem: {told}"]

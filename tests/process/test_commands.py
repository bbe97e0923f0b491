"""jackin-memd from the outside: start, stop, restart, status, ping."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.session import ShutdownParams
from tests.support.daemon import CONTAINER, Daemon, Finished, record
from tests.support.processes import left
from tests.support.proves import proves

UNREACHABLE = ErrorCode.DAEMON_UNREACHABLE.exit_status


@pytest.fixture
def idle(stopped: Daemon) -> Iterator[Daemon]:
    """A home in which the commands start daemons; none is left at the end."""
    yield stopped
    stopped.command("stop")
    assert left(stopped.home) == []


def lone_pid(daemon: Daemon) -> int:
    pid = daemon.status().pid
    assert left(daemon.home, but=pid) == []
    return pid


def succeeded(finished: Finished) -> str:
    assert finished.status == 0, finished
    assert finished.err == ""
    return finished.out


@proves("daemon-singleton", "client-commands")
def test_start_brings_one_up_and_is_content_with_one_that_runs(idle: Daemon) -> None:
    out = succeeded(idle.command("start"))
    pid = lone_pid(idle)
    assert f"started: pid {pid}" in out
    assert str(idle.socket) in out
    assert f"was running already: pid {pid}" in succeeded(idle.command("start"))
    assert lone_pid(idle) == pid


@proves("daemon-stops-cleanly")
def test_stop_ends_it_and_is_content_with_none(idle: Daemon) -> None:
    assert "no daemon was running" in succeeded(idle.command("stop"))
    idle.command("start")
    idle.load()
    pid = lone_pid(idle)
    assert f"stopped: pid {pid}" in succeeded(idle.command("stop"))
    assert left(idle.home) == []
    assert not idle.socket.exists()
    assert not idle.instance_socket().exists()
    assert {path.name for path in idle.instance_db().parent.iterdir()} == {"jackin.db"}
    assert "no daemon was running" in succeeded(idle.command("stop"))


def test_a_stop_where_no_daemon_ever_was_creates_nothing(stopped: Daemon) -> None:
    assert "no daemon was running" in succeeded(stopped.command("stop"))
    assert not stopped.home.exists()


def test_restart_replaces_one_and_starts_where_there_is_none(idle: Daemon) -> None:
    succeeded(idle.command("restart"))
    first = lone_pid(idle)
    idle.load()
    out = succeeded(idle.command("restart"))
    second = lone_pid(idle)
    assert second != first
    assert f"started: pid {second}" in out
    with idle.capsule() as capsule:  # its instances are served again
        assert record(capsule, "working").first_id == 1


@proves("daemon-parallel-starts", "daemon-singleton")
def test_20_starts_at_once_leave_one_daemon_and_20_contented_callers(idle: Daemon) -> None:
    starts = [idle.spawn_command("start") for _ in range(20)]
    finished = [(*start.communicate(timeout=40), start.returncode) for start in starts]
    assert [status for _, _, status in finished] == [0] * 20, finished
    pid = lone_pid(idle)
    assert all(f"pid {pid}," in out for out, _, _ in finished)
    assert sum("was running already" in out for out, _, _ in finished) == 19


@proves("daemon-parallel-starts")
def test_starts_and_stops_at_once_all_come_to_an_end(idle: Daemon) -> None:
    commands = [idle.spawn_command("start" if n % 2 else "stop") for n in range(10)]
    finished = [(*command.communicate(timeout=40), command.returncode) for command in commands]
    assert all("Traceback" not in err for _, err, _ in finished), finished
    succeeded(idle.command("restart"))
    lone_pid(idle)


@proves("client-no-second-way", "client-commands")
@pytest.mark.parametrize("command", ["status", "ping"])
def test_a_command_that_asks_says_that_none_runs_and_creates_nothing(
    stopped: Daemon, command: str
) -> None:
    finished = stopped.command(command)
    assert finished.status == UNREACHABLE
    assert "not running" in finished.err
    assert "jackin-memd start" in finished.err
    assert finished.out == ""
    assert not stopped.home.exists()


@proves("daemon-status", "client-commands")
def test_status_says_what_the_daemon_is_holds_and_has_done(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        for number in range(10):
            record(capsule, f"s{number}", f"t{number}")
        found = json.loads(succeeded(daemon.command("status", "--json")))
    assert found["state"] == "serving"
    assert found["pid"] == daemon.pid
    assert (found["home"], found["socket"]) == (str(daemon.home), str(daemon.socket))
    assert (found["instances_loaded"], found["instances_failed"]) == (1, 0)
    assert found["databases_open"] == 2
    assert found["connections"] == {"operator": 1, "observer": 0, "capsule": 1}
    assert found["rss_bytes"] > 10_000_000
    assert found["uptime_s"] >= 0
    assert found["rows"] >= 20
    assert 0 < found["commits"] <= found["rows"]
    assert found["rows_per_commit"] == round(found["rows"] / found["commits"], 2)
    latency = found["acknowledgement"]
    assert latency["samples"] >= 10
    assert 0 < latency["p50_ms"] <= latency["p99_ms"]
    assert found["write_queue_depth"] == found["read_queue_depth"] == 0


def test_status_for_a_person_has_a_line_for_each_thing(daemon: Daemon) -> None:
    out = succeeded(daemon.command("status"))
    assert f"pid {daemon.pid}" in out
    assert str(daemon.socket) in out
    assert all(name in out for name in ("instances", "databases", "memory", "commits"))


def test_ping_tells_the_time_it_took(daemon: Daemon) -> None:
    assert "ms" in succeeded(daemon.command("ping"))


def test_home_is_chosen_by_the_option_before_the_environment(daemon: Daemon) -> None:
    nowhere = str(daemon.home.parent / "nowhere")
    chosen = daemon.command("--home", str(daemon.home), "ping", JACKIN_HOME_DIR=nowhere)
    assert chosen.status == 0
    assert daemon.command("--home", nowhere, "ping").status == UNREACHABLE


@proves("daemon-drain")
def test_shutdown_is_answered_before_the_daemon_goes(daemon: Daemon) -> None:
    with daemon.client() as client:
        answer = client.call("shutdown", ShutdownParams())
    assert (answer.accepted, answer.pid) == (True, daemon.pid)
    assert daemon.wait() == 0
    assert not daemon.socket.exists()


@proves("daemon-bad-config", "ops-strict-config")
@pytest.mark.parametrize(
    ("text", "named"),
    [("[limits]\nframe_byte = 4096\n", "frame_byte"), ("[timeouts]\nhello_s = 0\n", "hello_s"),
     ("[durability]\nruntime = 'safe'\n", "runtime"), ("limits = 5\n", "limits"),
     ("[limits\n", "memd.toml"), ("[nonsense]\n", "nonsense")],
)  # fmt: skip
@pytest.mark.parametrize("command", ["serve", "start"])
def test_a_configuration_that_cannot_be_used_stops_the_start_by_name(
    stopped: Daemon, command: str, text: str, named: str
) -> None:
    (stopped.config / "memd.toml").write_text(text, encoding="utf-8")
    finished = stopped.command(command)
    assert finished.status == ErrorCode.CONFIG_INVALID.exit_status, finished
    assert named in finished.err
    assert "memd.toml" in finished.err
    assert "Traceback" not in finished.err
    assert left(stopped.home) == []


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["status", "--jsn"], ["--home"]])
def test_a_wrong_command_line_is_told_how_it_goes(stopped: Daemon, arguments: list[str]) -> None:
    finished = stopped.command(*arguments)
    assert finished.status == 2
    assert "usage: jackin-memd" in finished.err


@proves("daemon-permissions")
def test_the_log_of_a_daemon_in_the_background_is_private(idle: Daemon) -> None:
    idle.command("start")
    (log,) = Path(idle.environment()["HOME"]).rglob("memd.log")
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700
    assert f"serving {idle.socket}" in log.read_text(encoding="utf-8")
    assert CONTAINER not in log.read_text(encoding="utf-8")

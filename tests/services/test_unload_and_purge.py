"""Taking an instance out of service, and taking its files away: that instance's alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from jackin_memd.wire.status import StatusListParams
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import get, load, purge, unload, write_manifest
from tests.support.proves import proves
from tests.support.raw import Raw, code_of, greeted


@pytest.fixture
def two(daemon: Daemon) -> Daemon:
    """A daemon that serves CONTAINER with some rows, and OTHER."""
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    with daemon.capsule() as capsule:
        record(capsule, "working", "blocked", "idle")
    return daemon


@pytest.fixture
def capsule(two: Daemon) -> Iterator[Raw]:
    with greeted(two.instance_socket()) as connection:
        yield connection


@pytest.fixture
def follower(two: Daemon) -> Iterator[Raw]:
    """A subscriber of both instances that has joined."""
    with greeted(two.socket) as connection:
        connection.call("status.subscribe", instances=[CONTAINER, OTHER])
        assert {connection.read()["params"]["instance"] for _ in range(2)} == {CONTAINER, OTHER}
        yield connection


def files_of(daemon: Daemon, container: str = CONTAINER) -> set[str]:
    """What there is below the home for an instance."""
    return {
        str(path.relative_to(daemon.home))
        for folder in ("data", "sockets")
        for path in (daemon.home / folder / container).rglob("*")
    }


def refused(daemon: Daemon, method: str, instance: str = CONTAINER) -> str:
    with greeted(daemon.socket) as operator:
        params = {"entries": [{"new_status": "x"}]} if method == "status.record" else {}
        return str(operator.refused(method, instance=instance, **params)["data"]["code"])


@proves("instance-unload", "stream-end")
def test_unloading_closes_socket_connections_and_streams_and_keeps_the_files(
    two: Daemon, capsule: Raw, follower: Raw
) -> None:
    unloaded = unload(two)
    assert (unloaded.state, unloaded.problem) == (InstanceState.UNLOADED, None)
    assert capsule.read_to_end() == []
    end = follower.read()
    assert end["method"] == "stream.end"
    assert (end["params"]["instance"], end["params"]["code"]) == (CONTAINER, "UNLOADED")
    assert files_of(two) == {f"data/{CONTAINER}/jackin.db"}  # checkpointed and closed
    assert two.rows("SELECT new_status FROM status_log ORDER BY id") == [
        ("working",), ("blocked",), ("idle",),
    ]  # fmt: skip


@proves("instance-unload")
def test_an_unloaded_instance_is_known_and_not_served(two: Daemon) -> None:
    unload(two)
    assert get(two).state is InstanceState.UNLOADED
    for method in ("status.record", "status.list", "status.latest"):
        assert refused(two, method) == "INSTANCE_NOT_LOADED"
    with greeted(two.socket) as operator:
        error = operator.refused("status.subscribe", instances=[CONTAINER])
    assert error["data"]["code"] == "INSTANCE_NOT_LOADED"
    assert "instance load" in error["data"]["hint"]


@proves("instance-unload", "instance-kept")
def test_an_unloaded_instance_stays_so_over_a_restart_and_can_be_loaded_again(
    two: Daemon,
) -> None:
    unload(two)
    two.kill()
    two.start()
    assert get(two).state is InstanceState.UNLOADED
    assert not two.instance_socket().exists()
    load(two)
    with two.capsule() as capsule:
        page = capsule.call("status.list", StatusListParams())
        assert [row.new_status for row in page.rows] == ["idle", "blocked", "working"]
        assert record(capsule, "on").first_id == 4


def test_unloading_twice_is_no_error(two: Daemon) -> None:
    first = unload(two)
    assert unload(two) == first


@proves("instance-purge", "stream-end")
def test_a_purge_takes_the_database_and_the_socket_and_tells_the_subscribers(
    two: Daemon, capsule: Raw, follower: Raw
) -> None:
    purged = purge(two)
    assert purged.container == CONTAINER
    assert set(purged.removed) >= {f"data/{CONTAINER}/jackin.db", f"data/{CONTAINER}"}
    assert all(not (two.home / name).exists() for name in purged.removed)
    assert files_of(two) == set()
    assert not (two.home / "sockets" / CONTAINER).exists()
    assert capsule.read_to_end() == []
    end = follower.read()
    assert (end["method"], end["params"]["code"]) == ("stream.end", "PURGED")
    with pytest.raises(MemdError) as caught:
        get(two)
    assert caught.value.code is ErrorCode.INSTANCE_NOT_FOUND


@proves("instance-purge")
def test_a_purge_leaves_what_is_not_the_daemons(two: Daemon) -> None:
    data, sockets = two.instance_db().parent, two.instance_socket().parent
    foreign = [write_manifest(two), data / "state" / "usage.db", data / "jackin.db.bak",
               sockets / "jackin.sock", data / "jackin.db-journal.txt"]  # fmt: skip
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(path.read_bytes() if path.exists() else b"jackin's")
    purge(two)
    assert all(path.exists() for path in foreign)
    assert not two.instance_db().exists()


@proves("instance-purge")
def test_a_purge_of_a_planted_symlink_removes_the_symlink_alone(two: Daemon) -> None:
    target = two.home.parent / "target"
    target.write_bytes(b"not the daemon's")
    unload(two)
    two.instance_db().unlink()
    two.instance_db().symlink_to(target)
    purge(two)
    assert target.read_bytes() == b"not the daemon's"
    assert not two.instance_db().is_symlink()


def test_other_instances_go_on_while_one_goes(two: Daemon, follower: Raw) -> None:
    with two.capsule(OTHER) as other:
        for word in ("before", "after"):
            if word == "after":
                purge(two)
                assert follower.read()["method"] == "stream.end"
            record(other, word)
            event = follower.read()["params"]
            assert (event["instance"], event["rows"][0]["new_status"]) == (OTHER, word)


@proves("instance-purge")
def test_a_purged_instance_stays_gone_over_a_restart(two: Daemon) -> None:
    purge(two)
    two.kill()
    two.start()
    assert refused(two, "status.latest") == "INSTANCE_NOT_FOUND"
    assert files_of(two) == set()


@proves("store-epoch", "stream-gap-new-database")
def test_an_instance_loaded_after_a_purge_is_another_database(two: Daemon, follower: Raw) -> None:
    with two.capsule() as capsule:
        cursor = record(capsule, "old").cursor
    assert follower.read()["params"]["cursor"] == cursor
    purge(two)
    assert follower.read()["method"] == "stream.end"
    two.load()
    with greeted(two.instance_socket()) as capsule:
        for word in ("new 1", "new 2"):
            capsule.call("status.record", entries=[{"new_status": word}])
        error = capsule.refused("status.list", before=cursor)
        assert (error["data"]["code"], error["data"]["field"]) == ("CURSOR_INVALID", "before")

        resumed = capsule.call("status.subscribe", after={CONTAINER: cursor})
        assert resumed["cursors"][CONTAINER].split(".")[0] != cursor.split(".")[0]
        events = [*capsule.notifications, capsule.read(), capsule.read()][:2]
    for seen in (events, [follower.read(), follower.read()]):
        gap, rows = seen[0], seen[1]
        assert (gap["method"], gap["params"]["missed"]) == ("stream.gap", None)
        assert rows["params"]["rows"][0]["new_status"] == "new 1"


def test_an_unloaded_instance_can_be_purged(two: Daemon) -> None:
    unload(two)
    assert f"data/{CONTAINER}/jackin.db" in purge(two).removed
    assert files_of(two) == set()


@proves("wire-idempotency", "wire-idempotency-conflict")
def test_a_repeated_purge_or_unload_gives_the_first_answer_again(two: Daemon) -> None:
    unloaded = unload(two, idempotency_key="u")
    load(two)
    assert unload(two, idempotency_key="u") == unloaded
    assert get(two).state is InstanceState.LOADED  # it was not done once more
    purged = purge(two, idempotency_key="p")
    load(two, role_key="builder")
    assert purge(two, idempotency_key="p") == purged
    assert get(two).state is InstanceState.LOADED
    with pytest.raises(MemdError) as caught:
        purge(two, container=OTHER, idempotency_key="p")
    assert caught.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert get(two, OTHER).state is InstanceState.LOADED


@proves("wire-idempotency-restart")
def test_a_repeated_purge_after_a_restart_gives_the_first_answer_again(two: Daemon) -> None:
    purged = purge(two, idempotency_key="p")
    two.kill()
    two.start()
    assert purge(two, idempotency_key="p") == purged


@pytest.mark.parametrize("method", ["instance.unload", "instance.purge", "instance.get"])
def test_an_instance_that_does_not_exist_is_not_found(two: Daemon, method: str) -> None:
    for name in ("jk-zzzzzzzz-no-such", "zzzzzzzz", "..", "daemon"):
        with greeted(two.socket) as operator:
            answer = operator.call_raw(method, b'{"instance": "%s"}' % name.encode())
        assert code_of(answer) == "INSTANCE_NOT_FOUND"
    assert Path(two.home / "data" / "daemon").is_dir()


def test_in_flight_calls_of_a_capsule_are_answered_before_its_instance_goes(two: Daemon) -> None:
    """Each call is stored and acknowledged, or refused; none is left without an answer."""
    with greeted(two.instance_socket()) as capsule:
        for number in range(200):
            capsule.send_call("status.record", b'{"entries":[{"new_status":"late"}]}', number)
        unload(two)
        answers = capsule.read_to_end()
    stored = two.rows("SELECT count(*) FROM status_log WHERE new_status = 'late'")[0][0]
    assert sum("result" in answer for answer in answers) == stored
    words = {code_of(answer) for answer in answers if "error" in answer}
    assert words <= {"INSTANCE_NOT_LOADED", "DAEMON_STOPPING"}


def test_looking_around_never_brings_back_what_was_unloaded_or_purged(stopped: Daemon) -> None:
    """The look takes a turn of the loop for each instance, so others come in between."""
    stopped.configure(timeouts={"watch_s": 0.001})
    stopped.start()
    stopped.load(OTHER, "reviewer")
    names = [f"jk-{number:08d}-x" for number in range(60)]
    for name in names:
        load(stopped, name, role_key="r")
    for name in names:
        purge(stopped, name) if name < names[30] else unload(stopped, name)
    stopped.instance_socket(OTHER).unlink()
    stopped.wait_for_log("is bound again")  # it has looked at all since
    assert [name for name in names if stopped.instance_socket(name).exists()] == []
    assert [name for name in names[:30] if (stopped.home / "sockets" / name).exists()] == []
    assert stopped.log.count("not served any more") == 0


@proves("instance-purge", "instance-problem")
def test_a_purge_that_cannot_remove_the_file_says_so_and_can_be_run_again(two: Daemon) -> None:
    unload(two)
    two.instance_db().unlink()
    (two.instance_db() / "planted").mkdir(parents=True)
    with pytest.raises(MemdError) as caught:
        purge(two)
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert caught.value.hint is not None
    assert refused(two, "status.record") in {"INSTANCE_FOLDER_MISSING", "INSTANCE_NOT_LOADED"}
    with two.capsule(OTHER) as other:
        assert record(other, "on").first_id == 1
    (two.instance_db() / "planted").rmdir()
    two.instance_db().rmdir()
    purge(two)
    assert refused(two, "status.record") == "INSTANCE_NOT_FOUND"

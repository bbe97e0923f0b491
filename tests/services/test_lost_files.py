"""Files taken away or exchanged under a served instance: noticed before the next answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import InstanceState
from tests.support.daemon import CONTAINER, OTHER, Daemon, record
from tests.support.instances import get, load, purge
from tests.support.proves import proves
from tests.support.raw import Raw, greeted

#: Nothing here may be noticed by looking around; the tests that want it set it so.
NEVER = {"watch_s": 3600}


@pytest.fixture
def two(stopped: Daemon) -> Daemon:
    """A daemon that serves two instances, with a row each, and never looks around."""
    stopped.configure(timeouts=NEVER)
    return started(stopped)


@pytest.fixture
def watchful(stopped: Daemon) -> Daemon:
    """The same, but it looks around all the time."""
    stopped.configure(timeouts={"watch_s": 0.02})
    return started(stopped)


def started(daemon: Daemon) -> Daemon:
    daemon.start()
    daemon.load(CONTAINER)
    daemon.load(OTHER, "reviewer")
    with daemon.client() as operator:
        record(operator, "first", instance=CONTAINER)
        record(operator, "first", instance=OTHER)
    return daemon


@pytest.fixture
def follower(two: Daemon) -> Iterator[Raw]:
    with greeted(two.socket) as connection:
        connection.call("status.subscribe", instances=[CONTAINER])
        connection.read()  # it has joined
        yield connection


# -- what can happen to the files ------------------------------------------------------


def purged_by_jackin(daemon: Daemon) -> None:
    shutil.rmtree(daemon.instance_db().parent)


def file_removed(daemon: Daemon) -> None:
    daemon.instance_db().unlink()


def file_moved(daemon: Daemon) -> None:
    daemon.instance_db().rename(daemon.home.parent / "moved.db")


def file_exchanged(daemon: Daemon) -> None:
    """By a copy of itself, which is another file all the same."""
    copy = daemon.home.parent / "copy.db"
    shutil.copy(daemon.instance_db(), copy)
    copy.rename(daemon.instance_db())


def wal_removed(daemon: Daemon) -> None:
    daemon.instance_db().with_name("jackin.db-wal").unlink()


def folder_exchanged(daemon: Daemon) -> None:
    folder = daemon.instance_db().parent
    folder.rename(daemon.home.parent / "moved")
    folder.mkdir(mode=0o700)


Loss = Callable[[Daemon], None]

LOSSES = pytest.mark.parametrize(
    "lose",
    [purged_by_jackin, file_removed, file_moved, file_exchanged, wal_removed, folder_exchanged],
)


def refused_record(daemon: Daemon) -> MemdError:
    with daemon.client() as client, pytest.raises(MemdError) as caught:
        record(client, "lost", instance=CONTAINER)
    return caught.value


@proves("store-replaced", "instance-removed-folder", "instance-problem")
@LOSSES
def test_a_loss_is_noticed_before_the_next_acknowledgement(
    two: Daemon, follower: Raw, lose: Loss
) -> None:
    lose(two)
    error = refused_record(two)
    assert error.code is ErrorCode.DATABASE_REPLACED
    assert CONTAINER in error.message
    assert error.hint is not None

    failed = get(two)
    assert failed.state is InstanceState.FAILED
    assert failed.problem is not None
    assert failed.problem.code == "DATABASE_REPLACED"
    assert failed.problem.hint
    end = follower.read()
    assert (end["method"], end["params"]["code"]) == ("stream.end", "DATABASE_REPLACED")
    assert (two.status().instances_loaded, two.status().instances_failed) == (1, 1)


@proves("store-others-go-on")
@LOSSES
def test_the_other_instance_and_the_daemon_go_on(two: Daemon, lose: Loss) -> None:
    lose(two)
    refused_record(two)
    with two.capsule(OTHER) as other:
        assert record(other, "on").first_id == 2
    assert two.rows("SELECT new_status FROM status_log ORDER BY id", OTHER) == [("first",), ("on",)]


@proves("store-replaced")
@LOSSES
def test_a_reader_is_not_answered_from_files_that_are_gone(two: Daemon, lose: Loss) -> None:
    lose(two)
    with greeted(two.socket) as operator:
        error = operator.refused("status.latest", instance=CONTAINER)
    assert error["data"]["code"] == "DATABASE_REPLACED"
    assert get(two).state is InstanceState.FAILED


@proves("instance-removed-folder")
@LOSSES
def test_every_later_call_is_refused_in_the_same_way(two: Daemon, lose: Loss) -> None:
    lose(two)
    first = refused_record(two)
    second = refused_record(two)
    assert (second.code, second.message, second.hint) == (first.code, first.message, first.hint)
    with greeted(two.instance_socket()) as capsule:
        for method in ("status.list", "status.latest", "status.subscribe"):
            assert capsule.refused(method)["data"]["code"] == "DATABASE_REPLACED"


@LOSSES
def test_loading_again_accepts_what_is_there_or_begins_anew(two: Daemon, lose: Loss) -> None:
    lose(two)
    refused_record(two)
    assert load(two).state is InstanceState.LOADED
    with two.capsule() as capsule:
        recorded = record(capsule, "again")
    found = two.rows("SELECT new_status FROM status_log ORDER BY id")
    assert found[-1] == ("again",)
    assert len(found) == recorded.last_id


@proves("store-epoch")
def test_subscribers_learn_that_a_database_begun_anew_is_another(
    two: Daemon, follower: Raw
) -> None:
    purged_by_jackin(two)
    refused_record(two)
    assert follower.read()["method"] == "stream.end"
    load(two)
    with two.capsule() as capsule:
        record(capsule, "again")
    gap, rows = follower.read(), follower.read()
    assert (gap["method"], gap["params"]["missed"]) == ("stream.gap", None)
    assert [row["new_status"] for row in rows["params"]["rows"]] == ["again"]


def test_an_instance_that_jackin_purged_can_be_forgotten(two: Daemon) -> None:
    purged_by_jackin(two)
    refused_record(two)
    purge(two)
    with pytest.raises(MemdError) as caught:
        get(two)
    assert caught.value.code is ErrorCode.INSTANCE_NOT_FOUND
    assert not two.instance_socket().exists()


@proves("store-epoch", "store-replaced")
def test_another_database_in_its_place_is_not_taken_for_it_after_a_restart(two: Daemon) -> None:
    two.terminate()
    shutil.copy(two.instance_db(OTHER), two.instance_db(CONTAINER))
    two.start()
    error = refused_record(two)
    assert error.code is ErrorCode.DATABASE_REPLACED
    assert error.hint is not None
    assert get(two).state is InstanceState.FAILED
    with two.capsule(OTHER) as other:
        assert record(other, "on").first_id == 2
    assert load(two).state is InstanceState.LOADED  # the operator means it
    with two.capsule() as capsule:
        assert record(capsule, "accepted").first_id == 2


# -- looking around --------------------------------------------------------------------


@proves("instance-removed-folder", "stream-end")
@pytest.mark.parametrize("lose", [purged_by_jackin, file_removed, file_moved])
def test_a_loss_is_noticed_without_any_call(watchful: Daemon, lose: Loss) -> None:
    with greeted(watchful.socket) as follower:
        follower.call("status.subscribe", instances=[CONTAINER])
        follower.read()
        lose(watchful)
        end = follower.read()
    assert (end["method"], end["params"]["code"]) == ("stream.end", "INSTANCE_FOLDER_MISSING")
    problem = get(watchful).problem
    assert problem is not None
    assert "instance purge" in str(problem.hint)
    assert "instance load" in str(problem.hint)
    with watchful.capsule(OTHER) as other:
        assert record(other, "on").first_id == 2


@proves("instance-restart", "instance-problem")
@pytest.mark.parametrize("lose", [purged_by_jackin, file_removed, folder_exchanged])
def test_what_vanished_while_the_daemon_was_down_is_failed_with_a_problem(
    two: Daemon, lose: Loss
) -> None:
    two.kill()
    lose(two)
    two.start()
    found = get(two)
    assert found.state is InstanceState.FAILED
    assert found.problem is not None
    assert found.problem.code == "INSTANCE_FOLDER_MISSING"
    assert refused_record(two).code is ErrorCode.INSTANCE_FOLDER_MISSING
    assert not two.instance_db().exists()  # nothing was begun unasked
    with two.capsule(OTHER) as other:
        assert record(other, "on").first_id == 2
    assert load(two).problem is None
    with two.capsule() as capsule:
        assert record(capsule, "anew").first_id == 1

"""What was acknowledged is on disk, whatever happens next."""

from __future__ import annotations

import pytest

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.status import StatusListParams
from tests.support.daemon import CONTAINER, Daemon, record
from tests.support.proves import proves


@proves("store-ack-survives-kill")
def test_acknowledged_rows_survive_sigkill_and_are_served_again(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        for number in range(50):
            record(capsule, f"step-{number}")
    daemon.kill()

    found = daemon.rows("SELECT new_status FROM status_log ORDER BY id")
    assert found == [(f"step-{number}",) for number in range(50)]

    daemon.start()
    with daemon.capsule() as capsule:  # nobody loaded it again
        page = capsule.call("status.list", StatusListParams(limit=1))
    assert page.rows[0].new_status == "step-49"


def test_a_call_whose_answer_was_lost_is_done_once(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        first = record(capsule, "working", idempotency_key="k")
    daemon.kill()
    daemon.start()
    with daemon.capsule() as capsule:
        assert record(capsule, "working", idempotency_key="k") == first
        with pytest.raises(MemdError) as refused:
            record(capsule, "idle", idempotency_key="k")
    assert refused.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert daemon.rows("SELECT count(*) FROM status_log") == [(1,)]


def test_a_database_replaced_while_open_acknowledges_nothing(daemon: Daemon) -> None:
    daemon.load()
    with daemon.capsule() as capsule:
        record(capsule, "working")
        daemon.instance_db().rename(daemon.home / "moved.db")
        with pytest.raises(MemdError) as refused:
            record(capsule, "idle")
    assert refused.value.code is ErrorCode.DATABASE_REPLACED
    assert CONTAINER in refused.value.message

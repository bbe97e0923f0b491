"""The daemon's log says what happened, never what was said."""

from __future__ import annotations

import json

import pytest

from tests.support.daemon import CONTAINER, Daemon
from tests.support.instances import write_manifest
from tests.support.proves import proves
from tests.support.raw import greeted

SAID = "hunter2-sk-live-0123456789"


@proves("daemon-secrets-not-logged")
@pytest.mark.parametrize("log_format", ["human", "json"])
def test_nothing_that_callers_say_reaches_the_log(stopped: Daemon, log_format: str) -> None:
    stopped.configure(timeouts={"watch_s": 0.02})
    stopped.start("--log-level", "debug", "--log-format", log_format)
    write_manifest(stopped, workspace_label=SAID)
    good = {"new_status": "working"}
    with greeted(stopped.socket, build=SAID) as operator:
        operator.call("instance.load", container=CONTAINER, idempotency_key=SAID)
        for entry in (
            good | {"new_status": SAID},
            good | {"metadata": {SAID: [SAID]}},
            good | {"new_status": SAID + "\0"},
            good | {SAID: 1},
            good | {"metadata": SAID * 10_000},
            good | {"occurred_at": SAID},
        ):
            params = {"instance": CONTAINER, "entries": [entry], "idempotency_key": SAID}
            operator.call_raw("status.record", json.dumps(params).encode())
        operator.call_raw(SAID)
        operator.call_raw("instance.get", json.dumps({"instance": SAID}).encode())
        operator.call_raw("status.list", json.dumps({"before": SAID}).encode())
        operator.send_frame(SAID.encode())
        assert operator.read()["error"]["data"]["code"] == "PARSE_ERROR"
        write_manifest(stopped, agent_runtime=None, workspace_label=SAID)
        operator.refused("instance.load", container=CONTAINER)
        write_manifest(stopped).write_bytes(b'{"x": "' + SAID.encode())
        operator.refused("instance.load", container=CONTAINER)
        stopped.instance_db().unlink()
        operator.refused("status.record", instance=CONTAINER, entries=[{"new_status": SAID}])
    stopped.terminate()
    stopped.log.ended()
    assert stopped.log.count("serving") >= 1
    assert stopped.log.count(CONTAINER) >= 1  # that its database is gone
    assert stopped.log.count(SAID) == 0


def test_the_json_log_has_one_object_a_line(stopped: Daemon) -> None:
    stopped.start("--log-format", "json")
    stopped.load()
    stopped.instance_db().unlink()
    with greeted(stopped.socket) as operator:
        operator.refused("status.record", instance=CONTAINER, entries=[{"new_status": "x"}])
    stopped.terminate()
    stopped.log.ended()
    lines = [json.loads(line) for line in stopped.log.matching(bool)]
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    assert {line["level"] for line in lines} >= {"info", "error"}


def test_an_unknown_log_level_is_refused_on_the_command_line(stopped: Daemon) -> None:
    finished = stopped.command("serve", "--log-level", "loud")
    assert finished.status == 2
    assert "--log-level" in finished.err

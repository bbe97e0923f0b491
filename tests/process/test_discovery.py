"""What rpc.discover lists is there, and the programs that the package promises."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator

import pytest
from msgspec import Raw

from jackin_mem.blocking import Client
from jackin_memd.server import dispatch
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.methods import METHODS
from jackin_memd.wire.session import DiscoverParams
from tests.support.daemon import Daemon
from tests.support.proves import proves
from tests.support.shared import running_daemon


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        yield daemon


@proves("wire-discover-live")
def test_a_running_daemon_serves_every_method_that_it_lists(served: Daemon) -> None:
    with served.client() as client:
        document = client.call("rpc.discover", DiscoverParams())
    names = [method["name"] for method in document["methods"]]
    assert sorted(names) == sorted(METHODS)
    for name in names:
        # Parameters of the wrong kind reach the method's own types and no further.
        assert _refusal(served.client(), name) is ErrorCode.INVALID_PARAMS, name


def _refusal(client: Client, name: str) -> ErrorCode:
    with client, pytest.raises(MemdError) as refused:
        client.call_raw(name, Raw(json.dumps([name]).encode()))
    return refused.value.code


@proves("wire-no-traceback")
def test_a_fault_of_the_daemons_own_is_told_without_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = dispatch.as_memd_error(ValueError("a stored value"), "status.list")
    assert error.code is ErrorCode.INTERNAL_ERROR
    told = json.dumps([error.message, error.hint, error.data()])
    assert "stored value" not in told
    assert "Traceback" not in told
    assert "status.list failed" in caplog.text  # whoever runs it finds out more


@proves("layout-two-programs")
def test_the_package_installs_its_two_programs() -> None:
    scripts = importlib.metadata.distribution("jackin-memd").entry_points.select(
        group="console_scripts"
    )
    assert {script.name: callable(script.load()) for script in scripts} == {
        "jackin-memd": True,
        "jackin-mem": True,
    }

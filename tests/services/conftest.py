"""One daemon for the tests of a module; each must leave it unharmed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.raw import Raw, greeted
from tests.support.shared import assert_unharmed, running_daemon


@pytest.fixture(scope="module")
def module_daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """With the settings that the module names in CONFIG."""
    with running_daemon(**getattr(request.module, "CONFIG", {})) as daemon:
        yield daemon


@pytest.fixture
def shared(module_daemon: Daemon) -> Iterator[Daemon]:
    """A daemon that serves CONTAINER and OTHER to all tests of the module."""
    yield module_daemon
    assert_unharmed(module_daemon)


@pytest.fixture
def raw(shared: Daemon) -> Iterator[Raw]:
    """A greeted connection of the operator."""
    with greeted(shared.socket) as connection:
        yield connection


@pytest.fixture
def stranger(shared: Daemon) -> Iterator[Raw]:
    """A connection of the operator that has said nothing yet."""
    with Raw(shared.socket) as connection:
        yield connection

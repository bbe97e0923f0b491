"""Fixtures of the client's tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.command import Command
from tests.clients.faces import Face, OnSockets, OnTrio


@pytest.fixture(params=[OnSockets, OnTrio], ids=["blocking", "trio"])
def face(request: pytest.FixtureRequest) -> Face:
    made: Face = request.param()
    return made


@pytest.fixture
def path(short_path: Path) -> Path:
    """Where a scripted daemon listens."""
    return short_path / "memd.sock"


@pytest.fixture
def mem(capsys: pytest.CaptureFixture[str]) -> Command:
    """`mem("status", "list")` runs that command."""
    return Command(capsys)


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Commands hear SIGINT, also where the tests run in the background: a shell has
    it ignored there, and processes inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

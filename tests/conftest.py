"""What every test may count on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.daemon import Daemon, new_daemon

# A slow machine is no failure: nothing here is a timing assertion.
settings.register_profile("jackin", deadline=None)
settings.load_profile("jackin")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "proves(*requirements): the ids in tests/requirements.py that the test stands for",
    )


@pytest.fixture(autouse=True)
def hermetic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees or touches the home, the config or the daemon of who runs it."""
    for name in ("JACKIN_HOME_DIR", "JACKIN_CONFIG_DIR", "JACKIN_MEMD_SOCKET", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose sockets fit the system's limit; pytest's own are too deep."""
    folder = Path(tempfile.mkdtemp(prefix="jm-")).resolve()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def stopped(short_path: Path) -> Iterator[Daemon]:
    """A daemon of an empty home, not started yet."""
    with new_daemon(short_path) as daemon:
        yield daemon


@pytest.fixture
def daemon(stopped: Daemon) -> Daemon:
    """A running daemon of an empty home."""
    stopped.start()
    return stopped

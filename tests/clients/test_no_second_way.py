"""A client that can't reach the daemon says so, and does nothing else instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jackin_memd.wire.errors import ErrorCode
from tests.support.proves import proves

COMMANDS = (
    "status",
    "status list jk-k7p9m2xq-shop-builder",
    "status record jk-k7p9m2xq-shop-builder working",
    "instance load jk-k7p9m2xq-shop-builder --role builder",
    "instance purge jk-k7p9m2xq-shop-builder --yes",
    "instance list",
    "ping",
    "raw ping",
    "watch",
)


@proves("client-no-second-way", "daemon-one-path-function")
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_daemon_a_command_names_its_socket_and_writes_no_file(
    command: str, tmp_path: Path
) -> None:
    home = tmp_path / "jackin"
    ended = subprocess.run(
        [sys.executable, "-m", "jackin_mem", *command.split()],
        env={**os.environ, "JACKIN_HOME_DIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == ErrorCode.DAEMON_UNREACHABLE.exit_status
    assert str(home / "run" / "memd.sock") in ended.stderr
    assert "jackin-memd start" in ended.stderr
    assert not home.exists()

"""Running as somebody whom file modes apply to: root passes them all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: "nobody" on Linux; any user but root will do.
_ID = 65534


class Somebody:
    """Who runs the tests, or where that is root, a user without its powers."""

    def __init__(self) -> None:
        """Skips the test where root can't become somebody else."""
        self.is_another = os.geteuid() == 0
        self.prefix: tuple[str, ...] = ()
        """What a command must begin with to run as this user."""
        if not self.is_another:
            return
        if shutil.which("setpriv") is None:
            pytest.skip("run by root, and there is no setpriv to become somebody else")
        self.prefix = ("setpriv", f"--reuid={_ID}", f"--regid={_ID}", "--clear-groups")
        command = [*self.prefix, sys.executable, "-c", "import jackin_memd.app"]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            pytest.skip("run by root, and nobody else can read this Python's packages")

    def give(self, *paths: Path) -> None:
        """Make the paths this user's own."""
        for path in paths:
            if self.is_another:
                os.chown(path, _ID, _ID)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """This process acts as that user: files, and who it is to a socket's other end."""
        before = os.geteuid()
        if self.is_another:
            os.seteuid(_ID)
        try:
            yield
        finally:
            os.seteuid(before)

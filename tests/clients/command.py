"""Runs `jackin-mem` in the test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackin_mem.cli import main


class Ran:
    """What a command did."""

    def __init__(self, status: object, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err


class Command:
    """Runs `jackin-mem …` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Ran(ended.value.code, out, err)

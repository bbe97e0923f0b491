"""A short command pays for itself alone: what is not loaded costs no time."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"trio", "rich", "apsw", "psutil", "asyncio", "sqlite3", "subprocess", "platformdirs"}

LOADED = "; import sys; print(*sys.modules)"


def loaded_by(statement: str) -> set[str]:
    found = subprocess.run(
        [sys.executable, "-c", statement + LOADED], capture_output=True, text=True, check=True
    )
    return set(found.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "jackin_mem.cli",
        "jackin_mem.blocking",
        "jackin_mem.commands.ping",
        "jackin_mem.commands.status",
        "jackin_mem.commands.instance",
        "jackin_mem.commands.raw",
        "jackin_mem.commands.watch",
        "jackin_mem.commands.tour",
    ],
)
def test_commands_load_nothing_heavy(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert module in loaded
    assert not loaded & HEAVY


def test_the_command_line_loads_no_command_before_it_is_chosen() -> None:
    loaded = loaded_by("from jackin_mem.cli import make_parser; make_parser()")
    assert not [name for name in loaded if name.startswith("jackin_mem.commands.")]


def test_a_chosen_command_loads_no_other() -> None:
    loaded = loaded_by("from jackin_mem.cli import make_parser; make_parser().parse_args(['ping'])")
    commands = {name for name in loaded if name.startswith("jackin_mem.commands.")}
    assert commands == {"jackin_mem.commands.ping"}


def test_the_check_itself_sees_what_is_loaded() -> None:
    assert loaded_by("import trio") >= {"trio"}
    assert loaded_by("import jackin_mem.commands.watch_terminal") >= {"rich"}

"""What CI runs is what README.md tells people to run."""

from __future__ import annotations

import re

from tests.architecture.source_files import ROOT


def commands_of_the_readme() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]


def test_the_readme_has_two_commands_of_one_line_each() -> None:
    commands = commands_of_the_readme()
    assert len(commands) == 2
    assert all("\n" not in command for command in commands)


def test_ci_runs_the_test_command_of_the_readme_word_for_word() -> None:
    _, tests = commands_of_the_readme()
    assert tests in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()

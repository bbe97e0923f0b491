"""The documents say what the code does: a thing without a word in them fails here."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from jackin_mem.cli import make_parser as mem_parser
from jackin_memd import cli as memd_cli
from jackin_memd.host.config import Settings
from jackin_memd.wire import docs
from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.methods import METHODS
from tests.architecture.source_files import ROOT
from tests.support.proves import proves

PROTOCOL = ROOT / "docs" / "protocol.md"
OPERATIONS = ROOT / "docs" / "operations.md"


def text_of(*paths: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def all_documents() -> str:
    return text_of(ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def settings(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every setting's dotted name."""
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from settings(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def commands(parser: argparse.ArgumentParser, path: str) -> Iterator[str]:
    """Every command of a program as it is typed, inner ones too."""
    module = getattr(parser, "module", None)
    if module is not None:  # completed only when it is used
        import_module(f"jackin_mem.commands.{module}").configure(parser)
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        yield path
    for action in inner:
        for name, below in action.choices.items():
            yield from commands(below, f"{path} {name}")


COMMANDS = [*commands(memd_cli._parser(), "jackin-memd"), *commands(mem_parser(), "jackin-mem")]


# -- the protocol page ------------------------------------------------------------


@proves("wire-documented")
def test_the_generated_parts_of_the_protocol_page_are_current() -> None:
    assert docs.rendered(text_of(PROTOCOL)) == text_of(PROTOCOL), (
        "run python -m jackin_memd.wire.docs"
    )


def test_a_stale_page_is_told_from_a_current_one_and_made_current(tmp_path: Path) -> None:
    page = tmp_path / "protocol.md"
    stale = text_of(PROTOCOL).replace("| `ping` |", "| `pong` |")
    page.write_text(stale, encoding="utf-8")
    assert docs.main(["--check", str(page)]) == 1
    assert text_of(page) == stale
    assert docs.main([str(page)]) == 0
    assert docs.main(["--check", str(page)]) == 0
    assert text_of(page) == text_of(PROTOCOL)


def test_a_page_without_one_of_the_generated_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="errors"):
        docs.rendered(text_of(PROTOCOL).replace("<!-- begin errors -->", ""))


@proves("wire-documented")
@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.word)
def test_every_error_stands_in_the_protocol_page(code: ErrorCode) -> None:
    row = re.compile(rf"^\| `{code.word}` \| {code.number}( \(local\))? \| {code.exit_status} \|",
                     re.MULTILINE)  # fmt: skip
    assert row.search(text_of(PROTOCOL))


@proves("wire-documented")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_stands_in_the_protocol_page(name: str) -> None:
    assert f"\n| `{name}` |" in text_of(PROTOCOL)


@pytest.mark.parametrize(
    "notification", sorted({name for m in METHODS.values() for name, _ in m.notifications})
)
def test_every_notification_is_explained(notification: str) -> None:
    assert f"**`{notification}`**" in text_of(PROTOCOL)


def test_the_protocol_page_names_only_settings_that_exist() -> None:
    named = set(re.findall(r"`((?:limits|timeouts|durability)\.[a-z_]+)`", text_of(PROTOCOL)))
    assert named
    assert named <= set(settings(Settings))


def test_no_two_errors_share_a_number() -> None:
    numbers = [code.number for code in ErrorCode]
    assert len(set(numbers)) == len(numbers)


# -- settings, commands, dependencies -----------------------------------------------


@proves("ops-settings-documented")
@pytest.mark.parametrize("name", list(settings(Settings)))
def test_every_setting_stands_in_the_operations_page(name: str) -> None:
    assert f"`{name}`" in text_of(OPERATIONS)


@proves("ops-commands-documented")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_a_document(command: str) -> None:
    assert re.search(rf"\b{re.escape(command)}\b", all_documents())


def test_both_programs_were_looked_at() -> None:
    assert {"jackin-memd serve", "jackin-mem ping", "jackin-mem instance load"} <= set(COMMANDS)


def test_every_dependency_says_why_it_is_there() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0] for line in wanted}
    explained = set(
        re.findall(r"^\| `([^`]+)` \|", text_of(ROOT / "docs/dependencies.md"), re.MULTILINE)
    )
    assert explained == names


def test_every_link_between_documents_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text_of(page)):
            assert (page.parent / target).exists(), f"{page.name}: {target}"

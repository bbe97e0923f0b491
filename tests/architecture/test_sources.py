"""Rules that hold for every source file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source_files import CLIENTS, DAEMON, TESTS, calls, modules, named, tree
from tests.support.proves import proves

MOST_LINES = 600

#: Opening a database file beside SQLite, and closing it again, drops every lock
#: that SQLite holds on it.
OPENS = {"open", "io.open", "os.open", "os.fdopen", "os.link", "os.sendfile"}
OPENING_METHODS = {"open", "read_bytes", "read_text", "write_bytes", "write_text"}
#: Methods of these names on other things than paths.
NOT_PATHS = {"self._pool.open", "pool.open"}

every_module = pytest.mark.parametrize("path", modules(DAEMON, CLIENTS, TESTS), ids=named)
sql_modules = pytest.mark.parametrize(
    "path", modules(DAEMON / "storage", DAEMON / "engine"), ids=named
)


def opens_files(node: ast.AST) -> list[str]:
    found = []
    for name, call in calls(node):
        if name == "os.open" and len(call.args) > 1 and "os.O_EXCL" in ast.unparse(call.args[1]):
            continue  # the file did not exist, so nobody can hold a lock on it
        base, _, last = name.rpartition(".")
        on_a_path = bool(name.startswith(".") or base) and last in OPENING_METHODS
        if name in OPENS or base == "shutil" or (on_a_path and name not in NOT_PATHS):
            found.append(f"{name} in line {call.lineno}")
    return found


def swallows(node: ast.AST) -> list[int]:
    """Lines that catch everything and say nothing."""
    return [
        handler.lineno
        for handler in ast.walk(node)
        if isinstance(handler, ast.ExceptHandler)
        and (handler.type is None or ast.unparse(handler.type) in {"Exception", "BaseException"})
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in handler.body)
    ]


@every_module
def test_a_module_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@every_module
def test_a_module_says_what_it_is(path: Path) -> None:
    if path.name != "__init__.py" or path.stat().st_size:  # an empty one only marks a package
        assert ast.get_docstring(tree(path))


@every_module
def test_no_failure_is_swallowed(path: Path) -> None:
    assert swallows(tree(path)) == []


@pytest.mark.parametrize("path", modules(TESTS), ids=named)
def test_no_test_sleeps(path: Path) -> None:
    assert [c.lineno for name, c in calls(tree(path)) if name in {"time.sleep", "sleep"}] == []
    imported = [
        alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    ]
    assert "sleep" not in imported


@pytest.mark.parametrize("path", modules(DAEMON), ids=named)
def test_the_daemon_prints_in_its_command_alone(path: Path) -> None:
    if path != DAEMON / "cli.py":
        assert [call.lineno for name, call in calls(tree(path)) if name == "print"] == []


@proves("store-no-second-descriptor")
@sql_modules
def test_no_file_is_opened_where_databases_are(path: Path) -> None:
    assert opens_files(tree(path)) == []


@pytest.mark.parametrize(
    "source",
    ["open('x')", "os.open(p, 0)", "p.read_bytes()", "Path(p).open('rb')", "f().read_text()",
     "shutil.copyfile(a, b)", "shutil.copy2(a, b)", "io.open(p)"],
)  # fmt: skip
def test_the_rule_against_opening_files_sees_each_way_to_do_it(source: str) -> None:
    assert opens_files(ast.parse(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "connection.execute('x')",
        "opened(p)",
        "reopen()",
        "p.stat()",
        "os.open(p, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)",
    ],
)
def test_the_rule_against_opening_files_lets_other_calls_pass(source: str) -> None:
    assert opens_files(ast.parse(source)) == []


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException"])
def test_the_rule_against_swallowing_sees_each_way_to_do_it(caught: str) -> None:
    assert swallows(ast.parse(f"try:\n  x()\nexcept{caught}:\n  pass")) == [3]
    assert swallows(ast.parse(f"try:\n  x()\nexcept{caught}:\n  log()")) == []


def test_the_rules_look_at_every_part_of_the_project() -> None:
    seen = {named(path).split("/")[0] for path in modules(DAEMON, CLIENTS, TESTS)}
    assert seen == {"jackin_memd", "clients", "tests"}
    assert len(modules(DAEMON)) > 30

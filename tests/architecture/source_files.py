"""Where the sources are, and their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DAEMON = ROOT / "jackin_memd"
CLIENTS = ROOT / "clients" / "jackin_mem"
TESTS = ROOT / "tests"


def modules(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def calls(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call and its dotted name as written: `os.open`, `path.read_bytes`.

    What is called on an expression begins with a dot: `.read_bytes`.
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield _dotted(inner.func), inner


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""

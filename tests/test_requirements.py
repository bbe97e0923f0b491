"""The guarantees of tests/requirements.py and the tests that prove them agree.

Read out of the source, so no run order and no selection of tests matters.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.requirements import ALL, GROUPS, REQUIREMENTS, Deferred, Requirement, Tested

TESTS = Path(__file__).parent

#: Fewer means that the tests were not found, not that they were not written.
LEAST_TESTS = 150


class Found:
    """The test functions of a set of files, and what they claim."""

    def __init__(self) -> None:
        self.tests = 0
        self.claims: dict[str, list[str]] = defaultdict(list)
        self.odd: list[str] = []
        """Claims that can't be read, or that no test makes."""

    def read(self, source: str, name: str) -> None:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._read_definition(node, name)

    def _read_definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, name: str
    ) -> None:
        is_test = node.name.startswith(("test_", "Test"))
        self.tests += is_test and not isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and _is_proves(decorator.func)):
                continue
            where = f"{name}::{node.name}"
            claimed = [arg.value for arg in decorator.args if isinstance(arg, ast.Constant)]
            if not is_test or not claimed or len(claimed) != len(decorator.args):
                self.odd.append(where)
            for requirement in claimed:
                self.claims[str(requirement)].append(where)


def _is_proves(function: ast.expr) -> bool:
    return (isinstance(function, ast.Name) and function.id == "proves") or (
        isinstance(function, ast.Attribute) and function.attr == "proves"
    )


def collected() -> Found:
    found = Found()
    for path in sorted(TESTS.rglob("test_*.py")):
        found.read(path.read_text(encoding="utf-8"), path.relative_to(TESTS).as_posix())
    return found


def unproven(requirements: list[Requirement], found: Found) -> list[str]:
    return [r.id for r in requirements if isinstance(r.status, Tested) and r.id not in found.claims]


def unknown(known: dict[str, Requirement], found: Found) -> dict[str, list[str]]:
    return {id_: tests for id_, tests in found.claims.items() if id_ not in known}


def too_early(requirements: list[Requirement], found: Found) -> list[str]:
    return [r.id for r in requirements if isinstance(r.status, Deferred) and r.id in found.claims]


def test_every_guarantee_that_is_not_deferred_is_proven_by_a_test() -> None:
    missing = unproven(ALL, collected())
    assert not missing, f"no test claims {', '.join(missing)}"


def test_every_claim_names_a_known_guarantee() -> None:
    assert unknown(REQUIREMENTS, collected()) == {}


def test_no_deferred_guarantee_is_claimed() -> None:
    assert too_early(ALL, collected()) == []


def test_every_claim_is_made_by_a_test_in_literal_words() -> None:
    assert collected().odd == []


def test_the_tests_were_found() -> None:
    assert collected().tests > LEAST_TESTS


def test_every_id_stands_once_and_belongs_to_a_group() -> None:
    assert len(REQUIREMENTS) == len(ALL)
    assert {id_.split("-", maxsplit=1)[0] for id_ in REQUIREMENTS} == set(GROUPS)


@pytest.mark.parametrize("requirement", ALL, ids=lambda requirement: requirement.id)
def test_a_guarantee_is_one_sentence_with_its_source(requirement: Requirement) -> None:
    assert requirement.text.endswith(".")
    assert requirement.source.split(":", maxsplit=1)[0] in {
        "jackin", "nuzo", "architecture", "interop", "docs",
    }  # fmt: skip
    if isinstance(requirement.status, Deferred):
        assert requirement.status.issue > 2
        assert requirement.status.reason


def test_the_checks_see_what_they_look_for() -> None:
    found = Found()
    found.read(
        "@proves('a', 'b')\ndef test_x(): ...\n"
        "@pytest.mark.proves('c')\nasync def test_y(): ...\n"
        "@proves(NAME)\ndef test_z(): ...\n"
        "@proves('d')\ndef helper(): ...\n",
        "t.py",
    )
    assert (found.tests, sorted(found.claims)) == (3, ["a", "b", "c", "d"])
    assert found.odd == ["t.py::test_z", "t.py::helper"]
    some = [Requirement("a", "docs", "A.", Tested()), Requirement("x", "docs", "X.", Tested()),
            Requirement("c", "docs", "C.", Deferred(5, "later"))]  # fmt: skip
    assert unproven(some, found) == ["x"]
    assert too_early(some, found) == ["c"]
    assert sorted(unknown({r.id: r for r in some}, found)) == ["b", "d"]

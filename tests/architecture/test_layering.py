"""Dependencies point one way: the contracts of pyproject.toml hold, and can fail."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.source_files import ROOT
from tests.support.proves import proves

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--config", str(config), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@proves("layout-one-way", "layout-clients-wire-only")
def test_the_contracts_of_the_project_hold() -> None:
    done = lint(ROOT / "pyproject.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_layer_that_exists_is_in_the_contract() -> None:
    """A package that no contract names could import anything."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    mentioned = {
        name
        for contract in contracts
        for part in ("layers", "source_modules")
        for name in contract.get(part, ())
    }
    packages = {
        f"jackin_memd.{path.stem}"
        for path in (ROOT / "jackin_memd").iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    unbound = {"jackin_memd.__init__", "jackin_memd.__main__"}
    assert packages - unbound <= mentioned


def test_a_contract_that_forbids_what_is_true_fails(tmp_path: Path) -> None:
    config = tmp_path / "false.toml"
    config.write_text(
        """
        [tool.importlinter]
        root_packages = ["jackin_memd"]
        [[tool.importlinter.contracts]]
        name = "a peer without frames"
        type = "forbidden"
        source_modules = ["jackin_memd.wire.peer"]
        forbidden_modules = ["jackin_memd.wire.framing"]
        [[tool.importlinter.contracts]]
        name = "errors above the peer"
        type = "layers"
        layers = ["jackin_memd.wire.errors", "jackin_memd.wire.peer"]
        """,
        encoding="utf-8",
    )
    done = lint(config)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 broken" in done.stdout

"""What an import loads: clients pay for it on every short command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.proves import proves


def loaded_by(statement: str) -> set[str]:
    """The modules that the statement adds to a bare interpreter."""
    script = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print('\\n'.join(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["json", "socket", "logging"])
def test_the_measure_sees_what_a_statement_loads(module: str) -> None:
    assert module in loaded_by(f"import {module}")
    assert module not in loaded_by("import itertools")


@proves("layout-light-wire")
@pytest.mark.parametrize("module", ["methods", "peer", "address", "streams", "codec"])
def test_the_wire_loads_no_sockets_no_threads_and_no_event_loop(module: str) -> None:
    loaded = loaded_by(f"import jackin_memd.wire.{module}")
    assert f"jackin_memd.wire.{module}" in loaded
    heavy = {
        "trio", "apsw", "psutil", "socket", "threading", "asyncio", "rich", "logging", "sqlite3",
        "subprocess", "platformdirs", "argparse", "random", "tempfile",
    }  # fmt: skip
    assert loaded & heavy == set()


def test_the_wire_loads_nothing_else_of_the_daemon() -> None:
    ours = {name for name in loaded_by("import jackin_memd.wire.peer, jackin_memd.wire.methods")
            if name.startswith("jackin_memd")}  # fmt: skip
    assert all(name.startswith("jackin_memd.wire") or name == "jackin_memd" for name in ours)


def test_discovery_and_its_schemas_are_loaded_by_none_of_the_wires_other_modules() -> None:
    assert "jackin_memd.wire.discovery" not in loaded_by("import jackin_memd.wire.methods")


@proves("layout-light-wire")
def test_the_package_itself_loads_nothing() -> None:
    assert loaded_by("import jackin_memd") <= {"jackin_memd", "__future__"}

"""The README: a short example, which tests/docs runs, and commands that exist, as CI has them."""

import importlib.util
import os
import re
import subprocess
import venv

import pytest

from tests.places import ROOT

README, SYMBOLS = ((ROOT / name).read_text() for name in ("README.md", "docs/symbols.md"))


def test_two_commands():
    commands = re.findall(r"^python3 run\.py (\w+)$", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    script = (ROOT / ".ci/run").read_text().splitlines()
    steps = ["python3 run.py test", "python3 run.py rest"]
    assert [line for line in script if "run.py" in line] == steps


@pytest.mark.skipif(os.name == "nt", reason="sh reads the line")
def test_demo_says_how_to_call_the_command(tmp_path):
    """Both lines, in an environment with a command of that name, in a folder with a space."""
    spec = importlib.util.spec_from_file_location("run", ROOT / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    folder = tmp_path / "a clone" / ".venv"
    venv.create(folder)
    command = folder / "bin/replica"
    command.write_text("#!/bin/sh\necho called $1\n")
    command.chmod(0o755)
    called, sourced = (
        line.partition(": ")[2] for line in run.from_now_on(folder / "bin").split("\n")
    )
    for line in (called, f"{sourced}; replica --help"):
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
        assert done.stdout == "called --help\n", line


def test_makefile_has_the_same_commands():
    """Each of run.py's is documented, and a target of its own."""
    documented = re.findall(r"^ +python3 run\.py (\w+)", (ROOT / "run.py").read_text(), re.M)
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(targets.split()) == sorted(documented)


def test_links_point_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_symbol_table_names_exist():
    """Every field the table names is one of the problem objects' or of a call's."""
    import replica

    rows = re.findall(r"^\| \$.*?\$ \| `(\w+)`", SYMBOLS, re.MULTILINE)
    known = {
        *replica.GradientStep.__dataclass_fields__,
        *replica.SpikedRandomFeatures.__dataclass_fields__,
        *replica.Solution.__dataclass_fields__,
        "V1", "V2", "m", "theta", "psi", "Q1", "q2",
    }  # fmt: skip
    assert len(rows) > 12
    assert set(rows) <= known, set(rows) - known

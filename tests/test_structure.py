"""Layers point one way; importing the library stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "solvers": {"solvers"},
    "replica": {"solvers", "replica"},
    "validation": {"solvers", "replica", "validation"},
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_point_one_way(package):
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        own = set(imported(path)) & {"tests", "benchmarks", *ALLOWED}
        assert own <= ALLOWED[package], path


def test_import_is_light():
    """`import replica` brings neither the plotting, the tables, the oracle nor the CLI."""
    code = "import sys, replica; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"matplotlib", "xarray", "pandas", "mpmath", "typer", "rich", "pydantic", "h5py"}
    assert not heavy & set(modules)

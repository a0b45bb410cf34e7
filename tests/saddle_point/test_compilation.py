"""When the core is compiled, and what it does where it cannot be, or cannot be kept."""

import os
import subprocess
import sys
import zipfile

import pytest

import replica
from tests.places import ROOT
from tests.saddle_point.test_one_group import MODELS

CURVE = """
import sys
{before}
import numpy as np, replica
model = replica.SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
replica.solve(model, alpha=1.0, lam=0.1)
print("numba" in sys.modules)
curve = replica.learning_curve(model, alpha=np.linspace(0.5, 2, 60000), lam=0.1)
print("numba" in sys.modules, float(curve.test_error[-1]))
"""


def outcome(before="", cwd=None, **environment):
    """Of one point and a curve of many, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", CURVE.format(before=before)],
        env=os.environ | environment, cwd=cwd, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    one, many, error = done.stdout.split()
    model = replica.SpikedRandomFeatures(**MODELS["odd"])
    expected = replica.solve(model, alpha=2.0, lam=0.1).test_error
    assert float(error) == pytest.approx(expected, rel=1e-13)
    return one, many


@pytest.mark.slow
def test_numba_is_imported_where_it_pays():
    assert outcome() == ("False", "True")


@pytest.mark.slow
def test_without_numba():
    """Python does all that it would have compiled."""
    assert outcome("sys.modules['numba'] = None") == ("True", "True")  # there, as None


@pytest.mark.slow
def test_where_numba_leaves_functions_as_they_are():
    assert outcome(NUMBA_DISABLE_JIT="1") == ("False", "True")


@pytest.mark.slow  # compiles everything
def test_where_there_are_no_sources(tmp_path):
    """Of a library in a ZIP file."""
    archive = tmp_path / "library.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for package in ("replica", "solvers"):
            for path in sorted((ROOT / package).rglob("*.py")):
                file.write(path, path.relative_to(ROOT))
    assert outcome(PYTHONPATH=str(archive), cwd=tmp_path) == ("False", "True")


@pytest.mark.slow  # compiles everything
def test_where_nothing_can_be_kept():
    """Of a user who has no home, of an installation that is another's."""
    before = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
del sys.modules["numba"]
"""
    assert outcome(before)[1] == "True"

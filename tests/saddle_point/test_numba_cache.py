"""When the core is compiled, and what it does where it cannot be, or cannot be kept."""

import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import replica
from tests.places import ROOT
from tests.processes import python
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
    done = python("-c", CURVE.format(before=before), variables=environment, cwd=cwd)
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


def flip(content):
    """One bit, in the middle."""
    content[len(content) // 2] ^= 1


def clear(content):
    """200 bytes, in the middle."""
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(200)


def cut(content):
    """Its second half."""
    del content[len(content) // 2 :]


def harm(folder, damage, kinds=("nbc", "nbi")):
    """Damage what numba has kept in a folder; how many files that is."""
    files = [file for kind in kinds for file in folder.rglob(f"*.{kind}")]
    for file in files:
        content = bytearray(file.read_bytes())
        damage(content)
        file.write_bytes(content)
    return len(files)


@pytest.mark.parametrize("kind", ["nbc", "nbi"])
@pytest.mark.parametrize("damage", [flip, clear, cut, bytearray.clear])
def test_what_came_to_harm_is_compiled_anew(damage, kind, tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    from replica.saddle_point.compiled_responses import cache_on_disk

    (tmp_path / "kept.py").write_text("def twice(x):\n    return 2 * x\n")

    def hits():
        """Whether it is taken from the disk."""
        spec = spec_from_file_location("kept", tmp_path / "kept.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, "kept", module)  # where numba looks for its globals
        function = numba.njit(module.twice)
        cache_on_disk(function)
        assert function(21.0) == 42
        return sum(function.stats.cache_hits.values())

    assert (hits(), hits()) == (0, 1)
    assert harm(tmp_path, damage, [kind]) == 1
    assert (hits(), hits()) == (0, 1)


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

"""Which package may use which, through its face only, and what stays light."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name

import pytest

from tests.places import ROOT
from tests.processes import python

# From the ground up: a package may use those before it, and single modules likewise.
FLOORS = [
    "replica.interrupts",
    "solvers",
    "replica.errors", "replica.files",
    "replica.display",
    "replica.plotting",
    "replica.problem", "replica.equivalence", "replica.saddle_point", "replica.steps",
    "replica.convex", "replica.fit", "replica.given", "replica.reuse", "replica.dimension",
    "replica.spectra", "replica.observables",
    "replica.reference",
    "replica",  # the public face
    "replica.cli", "replica.explore", "replica.sklearn", "replica.__main__",
    "validation.draws", "validation.run", "validation.measure",
    "validation.comparisons", "validation.mixtures",
    "validation",  # its public face
    "validation.figures", "validation.cli", "validation.__main__",
]  # fmt: skip
# What is imported inside a function, so that `import replica` stays light, and by whom.
LAZY = {
    "replica.explore": {"replica.explore"},  # the cells of a marimo notebook are functions
    "replica.saddle_point.compiled_responses": {"replica.saddle_point"},  # it imports numba
}


def modules():
    """Every module of the three packages: its dotted name and file."""
    for top in ("solvers", "replica", "validation"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


FILES = dict(modules())


def package(module):
    """The longest entry of FLOORS that ``module`` belongs to."""
    inside = [f for f in FLOORS if module == f or module.startswith(f + ".")]
    exact = [f for f in inside if f not in ("replica", "validation") or f == module]
    return max(exact, key=len, default=None)


@cache
def parsed(module):
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def imports(module):
    """What ``module`` imports from the three packages: (module, name, inside a function?)."""
    path, tree = FILES[module], parsed(module)
    at_top = set(map(id, tree.body))
    inside = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in ("solvers", "replica", "validation"):
                    yield alias.name, None, id(node) not in at_top
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), inside)
            if base.split(".")[0] in ("solvers", "replica", "validation", "tests", "benchmarks"):
                for alias in node.names:
                    yield base, alias.name, id(node) not in at_top


@cache
def face(name):
    """The names that a package offers: what its ``__init__`` defines, or imports from inside."""
    found = set()
    for node in parsed(name).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
    return found


@pytest.mark.parametrize("module", FILES)
def test_imports_go_down_and_through_faces(module):
    own = package(module)
    assert own is not None, f"{module} is in no package of FLOORS"
    for base, name, lazy in imports(module):
        there = package(base)
        submodule = f"{base}.{name}"
        if submodule in FILES and package(submodule) != package(base):
            there = package(submodule)  # a package or module named by its parent
        assert there is not None, (module, base)
        if there == own:
            assert not lazy or own in LAZY.get(submodule, LAZY.get(base, set())), (module, base)
            continue
        assert FLOORS.index(there) < FLOORS.index(own), f"{module} looks up to {there}"
        if lazy:
            reached = submodule if submodule in LAZY else base
            assert own in LAZY.get(reached, LAZY.get(there, set())), (module, base)
        if there != "solvers" and FILES[there].name == "__init__.py" and submodule != there:
            assert base == there, f"{module} reaches into {base}, past the face of {there}"
            if name is None or name == "__version__":
                continue  # `import replica`
            assert name in face(there), f"{module} takes {name}, which {there} does not offer"


def test_there_is_no_circle():
    """Inside a package, too: every module can be put after all that it imports."""
    before = {}
    for module in FILES:
        taken = set()
        for base, name, lazy in imports(module):
            if not lazy:
                taken.add(f"{base}.{name}" if f"{base}.{name}" in FILES else base)
        # a face is imported before what is inside, which does not import it back
        before[module] = {
            m
            for m in taken
            if m != module and not (FILES[m].name == "__init__.py" and module.startswith(m + "."))
        }
    TopologicalSorter(before).prepare()  # which names a circle


HEAVY = {"matplotlib", "xarray", "pandas", "mpmath", "typer", "rich", "h5py"}
# what only a spectrum, a trained bias or a first point needs comes with these
LATER = {"scipy.optimize", "scipy.interpolate", "scipy.integrate", "scipy.stats", "numba"}


@pytest.mark.parametrize(
    ("packages", "left_out"), [("replica, validation", HEAVY), ("replica", LATER)]
)
def test_import_is_light(packages, left_out):
    assert not left_out & imported_by(f"import {packages}")


def imported_by(code):
    """The modules that a process has after the ``code``."""
    return set(python("-c", f"{code}; import sys; print(*sys.modules)", check=True).stdout.split())

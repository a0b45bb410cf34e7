"""The reference: its names can be typed as they stand there, and no public name is missing."""

import importlib
import inspect
import re

import pytest

import replica
from tests.places import PAGES, ROOT

MODULE = re.compile(r"^\.\. auto(module):: (\S+)", re.MULTILINE)
LISTED = re.compile(r"^   ()(\w+(?:\.\w+)+)$", re.MULTILINE)  # in an autosummary
DESCRIBED = [
    (sort, name)
    for page in PAGES
    for pattern in (MODULE, LISTED)
    for sort, name in pattern.findall(page.read_text("utf-8"))
]


def obtained(name):
    """What ``name`` is for a user who imports the module it is in, and types it.

    Where a function hides the package of its name, as ``validation.compare`` does, names of the
    package's face are there for ``from validation.compare import ...``.
    """
    place, _, last = name.rpartition(".")
    module = importlib.import_module(place)
    typed = importlib.import_module(place.partition(".")[0])
    for part in place.split(".")[1:]:
        typed = getattr(typed, part)
    assert typed is module or hasattr(module, last), f"{place} is hidden"
    return getattr(module, last)


@pytest.mark.parametrize(("sort", "name"), DESCRIBED)
def test_described_names_can_be_typed(sort, name):
    if sort == "module":
        assert importlib.import_module(name).__doc__
    else:
        assert obtained(name).__doc__, f"{name} has nothing to be described"


def test_all_public_names_are_described():
    names = {name for _, name in DESCRIBED}
    assert {f"replica.{name}" for name in replica.__all__} <= names
    offered = importlib.import_module("replica.plotting").__all__
    assert {f"replica.plotting.{name}" for name in offered if name.startswith("plot_")} <= names


def test_all_faces_of_the_theory_are_described():
    modules = {name for sort, name in DESCRIBED if sort == "module"}
    packages = {f"replica.{p.parent.name}" for p in (ROOT / "replica").glob("*/__init__.py")}
    assert packages <= modules


PLOTS = [f"plotting.{name}" for name in replica.plotting.__all__ if name.startswith("plot_")]


@pytest.mark.parametrize("name", [*replica.__all__, *PLOTS])
def test_every_parameter_is_described(name):
    """Of functions, and of what users make; results are described by their attributes."""
    one = obtained(f"replica.{name}")
    page = inspect.getdoc(one)
    if isinstance(one, type) and "\nParameters\n" not in page:
        return  # a result, or an exception
    described = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?\n    \S", page, re.MULTILINE)
    known = {each.strip("* ") for names in described for each in names.split(",")}
    parameters = set(inspect.signature(one).parameters) - {"origin"}  # which GradientStep.srf gives
    assert parameters <= known, parameters - known

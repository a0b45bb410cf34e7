"""The reference: no public name is missing, nor a parameter."""

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
    place, _, last = f"replica.{name}".rpartition(".")
    one = getattr(importlib.import_module(place), last)
    page = inspect.getdoc(one)
    if isinstance(one, type) and "\nParameters\n" not in page:
        return  # a result, or an exception
    described = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?\n    \S", page, re.MULTILINE)
    known = {each.strip("* ") for names in described for each in names.split(",")}
    parameters = set(inspect.signature(one).parameters) - {"origin"}  # which GradientStep.srf gives
    assert parameters <= known, parameters - known

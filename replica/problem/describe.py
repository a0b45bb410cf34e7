"""A problem in plain values, for files, documents and the names of stored results."""

import json
from dataclasses import MISSING, fields
from typing import Any

from .laws import Law, law
from .problem import Problem

# numbers told whatever their value; what else is at its default is switched off
ALWAYS = ("student", "target", "r", "c", "gamma", "beta", "noise", "bias")


def describe(problem: Problem) -> dict[str, Any]:
    """The fields of a problem as plain values.

    Fields at a default that switches them off are left out.
    """
    if problem.rows is not None:
        width, step = _told(problem, ("beta", "dimension")), describe(problem.rows.step)
        norms = {} if problem.rows.row_norms else {"row_norms": False}
        return width | norms | step | {"model": "network"}
    return _told(problem, [f.name for f in fields(problem)])


def _told(problem: Problem, names: Any) -> dict[str, Any]:
    """The named fields that are to be told."""
    default = {f.name: f.default for f in fields(problem)}
    found = {}
    for name in names:
        value = getattr(problem, name)
        usual = default[name]
        if isinstance(value, Law) and usual is not MISSING:
            usual = law(name, usual)
        if (name in ALWAYS and not isinstance(value, Law)) or value != usual:
            found[name] = _plain(value)
    return found


def attributes(problem: Problem) -> dict[str, str | float]:
    """The description with what NetCDF cannot hold as JSON text."""
    return {
        name: value if isinstance(value, (str, float)) else json.dumps(value)
        for name, value in describe(problem).items()
    }


def _plain(value: Any) -> Any:
    """A name, a number, or lists of numbers."""
    if isinstance(value, Law):
        continuous = value.continuous
        if continuous is not None:
            if isinstance(continuous, str):
                return continuous
            return f"{continuous.dist.name}{continuous.args}{continuous.kwds or ''}"
        return [list(value.values), list(value.fractions)]
    return getattr(value, "name", value)

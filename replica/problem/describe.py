"""A problem in plain values, for files, documents and the names of stored results."""

import json
from dataclasses import MISSING, fields
from textwrap import fill
from typing import Any

from .laws import Law, law
from .mixtures import GaussianMixture
from .problem import Problem


def describe(problem: Problem) -> dict[str, Any]:
    """The fields of a problem as plain values.

    Fields at a default that switches them off are left out.
    """
    if problem.rows is not None:
        width, step = _stated(problem, ("beta", "dimension")), describe(problem.step)
        norms = {} if problem.rows.row_norms else {"row_norms": False}
        return width | norms | step | {"model": "network"}
    return _stated(problem, [f.name for f in fields(problem) if f.name != "origin"])


def as_made(problem: Problem) -> dict[str, Any]:
    """``describe`` of a problem, or of the step that has made it, with its width."""
    if problem.rows is not None or problem.step is None or problem.step is problem:
        return describe(problem)
    return describe(problem.step) | _stated(problem, ("beta", "dimension"))


def _stated(problem: Problem, names: Any) -> dict[str, Any]:
    """Those of the named fields that say something, as plain values."""
    default = {f.name: f.default for f in fields(problem)}
    # whatever their value, unless that is a law; another field at its default is switched off
    always = ("student", "target", "r", "c", "gamma", "beta", "noise", "bias")
    stated = {}
    for name in names:
        value, usual = getattr(problem, name), default[name]
        if isinstance(value, Law) and usual is not MISSING:
            usual = law(name, usual)
        if (name in always and not isinstance(value, Law)) or value != usual:
            stated[name] = _plain(value)
    return stated


def shown(problem: Problem) -> str:
    """A problem as its ``repr``: what is stated of it, in lines of 96 characters."""
    known = as_made(problem)
    if problem.step is not problem:  # what a table takes, whatever made it
        known |= _stated(problem, ("r", "c", "gamma"))
    texts = {k: f"{v:.6g}" if isinstance(v, float) else repr(v) for k, v in known.items()}
    given = ", ".join(f"{name}={value}" for name, value in texts.items())
    return fill(f"{type(problem).__name__}({given})", 96, subsequent_indent="    ")


def attributes(described: dict[str, Any]) -> dict[str, str | float]:
    """A description for NetCDF: what its attributes cannot hold, as JSON text."""
    return {
        name: json.dumps(value) if isinstance(value, (bool, dict, list, tuple)) else value
        for name, value in described.items()
    }


def _plain(value: Any) -> Any:
    """The value of a field as a name, a number, or lists of numbers."""
    if isinstance(value, GaussianMixture):
        return value.described
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Law):
        of = value.continuous
        if of is None:
            return [list(value.values), list(value.fractions)]
        return of if isinstance(of, str) else f"{of.dist.name}{of.args}{of.kwds or ''}"
    return getattr(value, "name", value)

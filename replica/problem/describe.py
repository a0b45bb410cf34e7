"""Problems as plain values, for files, documents and the keys of stored results."""

import json
from dataclasses import MISSING, fields
from textwrap import fill
from typing import Any

from .laws import Law, law
from .mixtures import GaussianMixture
from .problem import Problem


def describe(problem: Problem) -> dict[str, Any]:
    """The fields of a problem as plain values.

    Fields with a default value that switches them off are omitted.
    """
    if problem.rows is not None:
        width, step = _stated_fields(problem, ("beta", "dimension")), describe(problem.step)
        norms = {} if problem.rows.row_norms else {"row_norms": False}
        return width | norms | step | {"theory": "network"}
    return _stated_fields(problem, [f.name for f in fields(problem) if f.name != "origin"])


def describe_with_step(problem: Problem) -> dict[str, Any]:
    """Description of a problem, or of the step that made it together with its width."""
    if problem.rows is not None or problem.step is None or problem.step is problem:
        return describe(problem)
    return describe(problem.step) | _stated_fields(problem, ("beta", "dimension"))


def _stated_fields(problem: Problem, names: Any) -> dict[str, Any]:
    """The named fields that are not switched off, as plain values."""
    default = {f.name: f.default for f in fields(problem)}
    # included at any value, unless it is a law; another field at its default is switched off
    always = ("student", "target", "r", "c", "gamma", "beta", "noise", "bias")
    stated = {}
    for name in names:
        value, default_value = getattr(problem, name), default[name]
        if isinstance(value, Law) and default_value is not MISSING:
            default_value = law(name, default_value)
        if (name in always and not isinstance(value, Law)) or value != default_value:
            stated[name] = _plain_value(value)
    return stated


def problem_repr(problem: Problem) -> str:
    """The ``repr`` of a problem: its description, in lines of 96 characters."""
    description = describe_with_step(problem)
    if problem.step is not problem:  # the fields of an sRF that its table depends on
        description |= _stated_fields(problem, ("r", "c", "gamma"))
    texts = {k: f"{v:.6g}" if isinstance(v, float) else repr(v) for k, v in description.items()}
    arguments = ", ".join(f"{name}={value}" for name, value in texts.items())
    return fill(f"{type(problem).__name__}({arguments})", 96, subsequent_indent="    ")


def netcdf_attributes(described: dict[str, Any]) -> dict[str, str | float]:
    """A description as attributes of NetCDF: values it does not support become JSON text."""
    return {
        name: json.dumps(value) if isinstance(value, (bool, dict, list, tuple)) else value
        for name, value in described.items()
    }


def _plain_value(value: Any) -> Any:
    """The value of a field as a name, a number, or nested lists of numbers."""
    if isinstance(value, GaussianMixture):
        return value.described
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, Law):
        frozen = value.continuous  # a name, or a frozen scipy.stats distribution
        if frozen is None:
            return [list(value.values), list(value.fractions)]
        return (
            frozen
            if isinstance(frozen, str)
            else f"{frozen.dist.name}{frozen.args}{frozen.kwds or ''}"
        )
    return getattr(value, "name", value)

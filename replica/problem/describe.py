"""Problems as plain values, for files, documents and the keys of stored results."""

import json
from collections.abc import Container
from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .labels import label_noise
from .laws import Law, law
from .mixtures import GaussianMixture
from .named_activations import activation
from .problem import Problem
from .targets import parse_target


def describe(problem: Problem) -> dict[str, Any]:
    """The fields of a problem as plain values.

    Fields with a default value that switches them off are omitted.
    """
    if problem.rows is not None:
        width, step = _stated_fields(problem, ("beta", "dimension")), describe(problem.step)
        return width | _of_rows(problem) | step | {"theory": "network"}
    return _stated_fields(problem, [f.name for f in fields(problem)])


def _of_rows(problem: Problem) -> dict[str, Any]:
    """Options of a network's theory other than the step and the width."""
    if problem.rows is None:
        return {}
    norms = {} if problem.rows.row_norms else {"row_norms": False}
    return norms | ({"reuse": problem.rows.reuse} if problem.rows.reuse else {})


def describe_with_step(problem: Problem) -> dict[str, Any]:
    """Description of a problem, or of the step that made it together with its width."""
    if problem.rows is not None or problem.step is None or problem.step is problem:
        return describe(problem)
    return describe(problem.step) | _stated_fields(problem, ("beta", "dimension"))


def _stated_fields(problem: Problem, names: Any) -> dict[str, Any]:
    """The named fields that are not switched off, as plain values."""
    # included at any value, unless it is a law; another field at its default is switched off
    always = ("student", "target", "r", "c", "gamma", "beta", "noise", "bias")
    values = _changed_fields(problem, always)
    return {name: _plain_value(values[name]) for name in names if name in values}


def _changed_fields(problem: Problem, always: Container[str] = ()) -> dict[str, Any]:
    """The fields that are not at their default values, or are ``always`` included unless laws."""
    changed = {}
    for one in fields(problem):
        value, default = getattr(problem, one.name), one.default
        if isinstance(value, Law):
            default = default if default is MISSING else law(one.name, default)
        elif one.name in always:
            default = MISSING
        if value != default and one.name != "origin":
            changed[one.name] = value
    return changed


def problem_repr(problem: Any) -> str:
    """The code that makes a problem after ``from replica import *``: its constructor, or the step
    that made it and a method of the step.

    Functions and laws of a user's own have their names.
    """
    step, rows = problem.step, problem.rows
    if step is not None and step is not problem:
        maker = f"{step!r}.{'network' if rows else 'srf'}"
        values = {"beta": problem.beta}
        values |= {} if problem.dimension == np.inf else {"dimension": problem.dimension}
        values |= _of_rows(problem)
    else:
        maker, values = type(problem).__name__, _changed_fields(problem)
    arguments = [f"{name}={_code(problem, name, value)}" for name, value in values.items()]
    return f"{maker}({', '.join(arguments)})"


def _code(problem: Problem, name: str, value: Any) -> str:
    """A value of a field as it is typed."""
    if isinstance(value, tuple):
        return f"[{', '.join(_code(problem, name, one) for one in value)}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, Law):
        if value.continuous is not None:
            text = _plain_value(value)
            return repr(text) if isinstance(value.continuous, str) else text
        one = value.values[0] if len(value.values) == 1 else list(value.values)
        return repr(one if law(name, one) == value else (value.values, value.fractions))
    text = getattr(value, "name", None)
    parsed: Any = None
    with suppress(InvalidArgument):
        if name == "label_noise":
            parsed = label_noise(text)
        elif name == "student":
            parsed = activation(text, name)
        else:
            parsed, _ = parse_target(text, problem.inputs)
    return repr(text if parsed == value else value)


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

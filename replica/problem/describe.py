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
        width_fields, step = _stated_fields(problem, ("beta", "dimension")), describe(problem.step)
        return width_fields | _of_rows(problem) | step | {"theory": "network"}
    return _stated_fields(problem, [problem_field.name for problem_field in fields(problem)])


def _of_rows(problem: Problem) -> dict[str, Any]:
    """Options of a network's theory other than the step and the width."""
    if problem.rows is None:
        return {}
    row_options = {} if problem.rows.row_norms else {"row_norms": False}
    return row_options | ({"reuse": problem.rows.reuse} if problem.rows.reuse else {})


def describe_with_step(problem: Problem) -> dict[str, Any]:
    """Description of a problem, or of the step that made it together with its width."""
    if problem.rows is not None or problem.step is None or problem.step is problem:
        return describe(problem)
    return describe(problem.step) | _stated_fields(problem, ("beta", "dimension"))


def _stated_fields(problem: Problem, names: Any) -> dict[str, Any]:
    """The named fields that are not switched off, as plain values."""
    # included at any value, unless it is a law; another field at its default is switched off
    always_stated = ("student", "target", "r", "c", "gamma", "beta", "noise", "bias")
    stated_values = _changed_fields(problem, always_stated)
    return {name: _plain_value(stated_values[name]) for name in names if name in stated_values}


def _changed_fields(problem: Problem, always: Container[str] = ()) -> dict[str, Any]:
    """The fields that are not at their default values, or are ``always`` included unless laws."""
    changed_fields = {}
    for problem_field in fields(problem):
        field_value, default = getattr(problem, problem_field.name), problem_field.default
        if isinstance(field_value, Law):
            default = default if default is MISSING else law(problem_field.name, default)
        elif problem_field.name in always:
            default = MISSING
        if field_value != default and problem_field.name != "origin":
            changed_fields[problem_field.name] = field_value
    return changed_fields


def problem_repr(problem: Any) -> str:
    """The code that makes a problem after ``from replica import *``: its constructor, or the step
    that made it and a method of the step.

    Functions and laws of a user's own have their names.
    """
    problem_step, problem_rows = problem.step, problem.rows
    if problem_step is not None and problem_step is not problem:
        constructor_code = f"{problem_step!r}.{'network' if problem_rows else 'srf'}"
        repr_values = {"beta": problem.beta}
        repr_values |= {} if problem.dimension == np.inf else {"dimension": problem.dimension}
        repr_values |= _of_rows(problem)
    else:
        constructor_code, repr_values = type(problem).__name__, _changed_fields(problem)
    codes = [f"{name}={_code(problem, name, x)}" for name, x in repr_values.items()]
    return f"{constructor_code}({', '.join(codes)})"


def _code(problem: Problem, name: str, typed: Any) -> str:
    """A value of a field as it is typed."""
    if isinstance(typed, tuple):
        return f"[{', '.join(_code(problem, name, entry) for entry in typed)}]"
    if isinstance(typed, float) and not np.isfinite(typed):
        return f"float('{typed}')"
    if isinstance(typed, Law):
        if typed.continuous is not None:
            value_name = _plain_value(typed)
            return repr(value_name) if isinstance(typed.continuous, str) else value_name
        law_value = typed.values[0] if len(typed.values) == 1 else list(typed.values)
        return repr(law_value if law(name, law_value) == typed else (typed.values, typed.fractions))
    value_name = getattr(typed, "name", None)
    parsed_value: Any = None
    with suppress(InvalidArgument):
        if name == "label_noise":
            parsed_value = label_noise(value_name)
        elif name == "student":
            parsed_value = activation(value_name, name)
        else:
            parsed_value, _ = parse_target(value_name, problem.inputs)
    return repr(value_name if parsed_value == typed else typed)


def netcdf_attributes(described: dict[str, Any]) -> dict[str, str | float]:
    """A description as attributes of NetCDF: values it does not support become JSON text."""
    return {
        field_name: json.dumps(value) if isinstance(value, (bool, dict, list, tuple)) else value
        for field_name, value in described.items()
    }


def _plain_value(field_value: Any) -> Any:
    """The value of a field as a name, a number, or nested lists of numbers."""
    if isinstance(field_value, GaussianMixture):
        return field_value.described
    if isinstance(field_value, tuple):
        return [_plain_value(plain_item) for plain_item in field_value]
    if isinstance(field_value, Law):
        continuous_law = field_value.continuous  # a name, or a frozen scipy.stats distribution
        if continuous_law is None:
            return [list(field_value.values), list(field_value.fractions)]
        return (
            continuous_law
            if isinstance(continuous_law, str)
            else f"{continuous_law.dist.name}{continuous_law.args}{continuous_law.kwds or ''}"
        )
    return getattr(field_value, "name", field_value)

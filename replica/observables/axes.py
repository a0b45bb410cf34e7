"""Axes of a grid, and the data set of the results at its points."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from ..convex import Loss
from ..convex import loss as as_loss
from ..errors import InvalidArgument, meant
from ..plotting import ERROR_LABELS, LABELS
from ..problem import (
    Problem,
    SpikedRandomFeatures,
    activation,
    axis,
    check_problem,
    choice,
    laws_by_name,
    netcdf_attributes,
)
from ..steps import THEORIES

if TYPE_CHECKING:
    import xarray


def is_list(values: Any) -> bool:
    """True if several values are given, not one."""
    return not isinstance(values, str) and np.ndim(values) > 0


def losses_of(typed_losses: Any) -> tuple[list[Loss], dict[str, Array]]:
    """Losses, of one or of a list without two of a name, and the axis of their names."""
    losses = named("loss", typed_losses, as_loss)
    return losses, {"loss": np.array([one.name for one in losses])} if is_list(typed_losses) else {}


def grid_axes(problem: Problem, grids: Mapping[str, Any]) -> dict[str, Array]:
    """The values in ``grids`` as they stand on the axes: numbers, laws by name, models by name, or
    students; a name of no field of the problem that may vary is refused."""
    check_problem(problem)
    for grid, values in grids.items():
        if grid in ("alpha0", "eta", "rate") and problem.step is not None and problem.step.steps:
            allowed_grid = "left out: each of several steps has its own, in steps"
            raise InvalidArgument(grid, np.asarray(values).tolist(), allowed_grid)
        if grid not in problem.varying:
            grid_names = ["alpha", "lam", *problem.varying]
            is_of_steps = grid in ("alpha0", "eta", "rate", "readout", "decay", "theory")
            meant_name = "" if is_of_steps else meant(grid, grid_names)
            hint_text = f" (did you mean {meant_name}?)" if meant_name else ""
            raise InvalidArgument("a grid", grid, f"over {', '.join(grid_names)}{hint_text}")
    axis_makers = {"readout": laws_by_name, "student": _choices, "theory": _choices}
    return {grid: axis_makers.get(grid, axis)(grid, values) for grid, values in grids.items()}


def named(name: str, values: Any, make: Callable[[Any], Any]) -> list[Any]:
    """Objects that ``make`` returns for each value of a list, or the one; no two of one name."""
    grid_objects = [make(axis_value) for axis_value in (values if is_list(values) else [values])]
    names = [getattr(grid_object, "name", grid_object) for grid_object in grid_objects]
    if not grid_objects or len({*names}) < len(names):
        raise InvalidArgument(name, ", ".join(map(str, names)), "one or more, of different names")
    return grid_objects


def _choices(name: str, values: Any) -> Array:
    """Activations, or names of theories of a step, (n,)."""

    def axis_choice(value: Any) -> Any:
        return activation(value, name) if name == "student" else choice(name, value, THEORIES)

    return np.array(named(name, values, axis_choice))


def places_on_grid(axes: Mapping[str, Array]) -> list[dict[str, Any]]:
    """The values of each combination of the fields in ``axes``, the last varying fastest."""
    combinations = itertools.product(*(axis_values.tolist() for axis_values in axes.values()))
    return [dict(zip(axes, grid_values, strict=True)) for grid_values in combinations]


def models_on_grid(problem: Problem, axes: Mapping[str, Array]) -> list[SpikedRandomFeatures]:
    """Models of all combinations; InvalidArgument for a parameter of the step that is missing."""
    return [problem.model_at(**values) for values in places_on_grid(axes)]


def data_set(
    axes: Mapping[str, Array],
    columns: Mapping[str, Array],
    constants: dict[str, Any],
    single: Sequence[str],
    also: Mapping[str, Any] | None = None,
) -> "xarray.Dataset":
    """The ``columns``, (points,) each, and other variables on their ``axes``, with the labels of
    figures.  An axis that was given as a ``single`` number stays one: a coordinate of no
    dimension."""
    import xarray

    dims, axis_sizes = tuple(axes), tuple(values.size for values in axes.values())
    point_columns = {key: values for key, values in columns.items() if key not in axes}
    variables = {key: (dims, values.reshape(axis_sizes)) for key, values in point_columns.items()}
    coordinates = {key: _coordinate(values) for key, values in axes.items()}
    result = xarray.Dataset(variables | dict(also or {}), coordinates, netcdf_attributes(constants))
    for key, long_name in (LABELS | ERROR_LABELS).items():
        if key in result:
            result[key].attrs["long_name"] = long_name
    return result.squeeze([key for key in single if key in result.dims])


def scalar_arguments(**arguments: Any) -> tuple[str, ...]:
    """Names of the arguments that are one value, not a list."""
    return tuple(argument for argument, value in arguments.items() if not is_list(value))


def _coordinate(axis_values: Array) -> Array:
    """Coordinate of an axis: numbers, or names of its values."""
    if axis_values.dtype != object:
        return axis_values
    return np.array([getattr(value, "name", value) for value in axis_values.tolist()])

"""Theory on a grid: all combinations of values of a problem's parameters, loss and point; and the
data set of its results.

A grid of a limit is solved in blocks, one for every model and loss: ``workers`` share them, and
``progress`` is called after each; that of given layers and features point by point.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers import executors
from solvers.results import Array, Status

from ..convex import Loss
from ..convex import loss as as_loss
from ..display import Progress, reasons_text
from ..errors import InvalidArgument, hint
from ..given import Given
from ..plotting import ERROR_LABELS, LABELS
from ..problem import (
    NO_SAMPLES,
    Problem,
    SpikedRandomFeatures,
    activation,
    asked,
    axis,
    check_call,
    check_points,
    check_problem,
    choice,
    describe,
    describe_with_step,
    laws_by_name,
    netcdf_attributes,
    positive,
    samples_of,
)
from ..steps import THEORIES
from .evaluate_model import LARGEST_PENALTY, evaluate
from .readout_curves import (
    FEW_DEGREES,
    FEWEST_DEGREES,
    RARE_FEATURES,
    column_names,
    has_rare_features,
    layer_points,
    point_note,
    with_noted,
)
from .row_fits import fitted_errors
from .theory_changes import CHANGES, LOWEST_SHIFT, headline_error, of_size

if TYPE_CHECKING:
    import xarray

logger = logging.getLogger(__name__)
POINT_AXES = "loss", "alpha", "lam"  # which models do not depend on


def is_list(values: Any) -> bool:
    """True if several values are given, not one."""
    return not isinstance(values, str) and np.ndim(values) > 0


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
            hint_text = "" if is_of_steps else hint(grid, grid_names)
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
    grid_combinations = itertools.product(*(axis_values.tolist() for axis_values in axes.values()))
    return [dict(zip(axes, grid_values, strict=True)) for grid_values in grid_combinations]


def point_axis(model: Problem | Given, alpha: Any, samples: Any) -> tuple[str, Any]:
    """Name and value of the one of alpha and samples that is given: of a limit, alpha."""
    if isinstance(model, Given):
        return asked(model, alpha, samples)
    if samples is not None:
        raise InvalidArgument("samples", samples, NO_SAMPLES)
    if alpha is None:
        raise InvalidArgument("alpha", None, "given: readout samples over input dimension, n/d")
    return "alpha", alpha


def model_grid(
    problem: Problem | Given, grids: Mapping[str, Any]
) -> tuple[dict[str, Array], list[Any]]:
    """Axes of the fields that vary, and the models of all combinations; what is given has no such
    field, and is itself the model."""
    if isinstance(problem, Given):
        return {}, [problem]
    model_axes = grid_axes(problem, grids)
    return model_axes, models_on_grid(problem, model_axes)


def models_on_grid(problem: Problem, axes: Mapping[str, Array]) -> list[SpikedRandomFeatures]:
    """Models of all combinations; InvalidArgument for a parameter of the step that is missing."""
    return [problem.model_at(**grid_values) for grid_values in places_on_grid(axes)]


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


def with_points(curve: "xarray.Dataset", points: "xarray.Dataset", axis: str) -> "xarray.Dataset":
    """A curve with other points along an ``axis``, in the place of its own where it has these."""
    import xarray

    both = xarray.concat([curve, points], axis, combine_attrs="override")
    return both.sortby(axis).drop_duplicates(axis, keep="last")


def scalar_arguments(**arguments: Any) -> tuple[str, ...]:
    """Names of the arguments that are one value, not a list."""
    return tuple(argument for argument, value in arguments.items() if not is_list(value))


def _coordinate(axis_values: Array) -> Array:
    """Coordinate of an axis: numbers, or names of its values."""
    if axis_values.dtype != object:
        return axis_values
    return np.array([getattr(value, "name", value) for value in axis_values.tolist()])


@dataclass(frozen=True)
class Grid:
    """The theory on a grid.

    Attributes
    ----------
    problem : SpikedRandomFeatures, GradientStep, FirstLayer, FeatureSample or FeatureMoments
    axes : dict of name -> (n,) array
        Model fields that vary, the loss if there are several, then alpha, or samples, and lam.
    models : list of SpikedRandomFeatures
        One per combination of the model fields, the last varying fastest; or what is given.
    columns : dict of name -> (points,) array
        Results at every point, the last axis varying fastest.
    losses : list of Loss
        Losses that the readout minimises.
    single : tuple of str
        The axes of one value that was given as a number, not as a list.
    """

    problem: Any
    axes: dict[str, Array]
    models: list[Any]
    columns: dict[str, Array]
    losses: list[Loss]
    single: tuple[str, ...] = ()

    @property
    def constants(self) -> dict[str, Any]:
        """Problem and loss in plain values, without the axes of the grid; of a model made by a
        step, the fields of the step, unless the model's own are varied."""
        varied_names = {*self.axes}
        if isinstance(self.problem, Given):
            grid_constants = dict(self.problem.described)
        else:
            has_own_fields = varied_names & {"r", "c", "gamma"}
            grid_constants = (describe if has_own_fields else describe_with_step)(self.problem)
            if self.problem.step is not None:
                grid_constants = {"theory": "srf"} | grid_constants
        if not self.losses[0].is_square:
            grid_constants["loss"] = self.losses[0].name
        varied_names |= {"eta"} if "rate" in varied_names or "eta" in self.columns else set()
        return {key: value for key, value in grid_constants.items() if key not in varied_names}

    @property
    def converged(self) -> bool:
        """True if every point did."""
        return bool(self.columns["converged"].all())

    def log_unsolved(self) -> "Grid":
        """Log a warning of the points that did not converge, with the reasons; returns the grid."""
        if (failed := ~self.columns["converged"]).any():
            first_model, theory_text = self.models[0], ""
            if not isinstance(self.problem, Given):
                has_d, kind = np.isfinite(first_model.dimension), first_model.rows is None
                theory_text = f" (theory of the {'sRF' if kind else 'network'}"
                theory_text += f" at d = {first_model.dimension:g})" if has_d else ")"
            grid_reasons = reasons_text(self.columns["status"][failed])
            grid_warning = "%d of %d points did not converge%s: %s"
            logger.warning(grid_warning, failed.sum(), failed.size, theory_text, grid_reasons)
        return self

    def dataset(self, fits: bool = True) -> "xarray.Dataset":
        """The grid as an xarray.Dataset, see :func:`learning_curve`; ``fits`` to random rows of a
        sample are beside its errors."""
        if isinstance(self.problem, Given):
            all_columns = self.columns | (self._fitted_columns() if fits else {})
            curve = data_set(self.axes, all_columns, self.constants, self.single)
            return with_noted(self.problem, curve)
        model_variables: dict[str, Any] = {}
        # else each point has its own
        if "eta" not in self.columns and not self.problem.follows_alpha:
            for field_name in ("r", "c", "gamma"):
                self._add_field(model_variables, field_name, self.models)
        if "rate" in self.axes:
            self._add_field(model_variables, "eta", [model.step for model in self.models])
        return data_set(self.axes, self.columns, self.constants, self.single, model_variables)

    def _fitted_columns(self) -> dict[str, Array]:
        """Columns of fits to random rows of a sample, of all points that Ctrl-C did not leave."""
        place = self._places() | self.columns
        is_left = place["status"] == str(Status.INTERRUPTED)
        fitted_samples = np.where(is_left, np.nan, place.get("samples", np.nan))
        parts = [np.split(x, len(self.losses)) for x in (fitted_samples, place["lam"])]
        fits = [
            fitted_errors(self.problem, samples, lam, loss)
            for samples, lam, loss in zip(*parts, self.losses, strict=True)
        ]
        unknown = np.full(len(fitted_samples) // len(self.losses), np.nan)
        names = dict.fromkeys(name for one in fits for name in one)
        return {name: np.concatenate([one.get(name, unknown) for one in fits]) for name in names}

    def notes_on_errors(self) -> list[str]:
        """Notes on points at which models at their own dimension may have other errors than the
        theory: few residual degrees of freedom, or features that are rarely very large.

        Networks whose theory of the dimension is section 23 are flagged, not noted, where features
        are rarely large.  Degrees of freedom are those of the square loss,
        n (train_error / label_error)^(1/2), the latter the test error on labels with their noise,
        which is not known of labels +-1 at random.
        """
        alpha, squares = self._places()["alpha"], [loss.is_square for loss in self.losses]
        few, rare = np.zeros((2, alpha.size), dtype=bool)
        of_loss = np.repeat(squares, alpha.size // len(self.models) // len(squares))
        is_square = np.tile(of_loss, len(self.models))
        for model, _, _, at in self._blocks(np.arange(alpha.size)):
            if np.isfinite(model.dimension) and not model.labels.channel:
                n, p = alpha[at] * model.dimension, model.beta * model.dimension
                train_error = self.columns["train_error"][at]
                label_error = self.columns["test_error"][at] + model.labels.variance
                with np.errstate(divide="ignore", invalid="ignore"):
                    degrees = n * np.sqrt(train_error / label_error)
                    few[at] = is_square[at] & (degrees < FEWEST_DEGREES)
                    if np.isinf(model.own_dimension):
                        layer = model.geometry
                        kurtosis = model.student.kurtosis(layer.bias, layer.c, layer.fractions)
                        rare[at] = has_rare_features(kurtosis, p, n, train_error, label_error)
        noted = {FEW_DEGREES: few, RARE_FEATURES: rare}
        return [point_note(note, at, "alpha", alpha) for note, at in noted.items() if at.any()]

    def _places(self) -> dict[str, Array]:
        """The values of the axes at every point."""
        axis_values = (x.ravel() for x in np.meshgrid(*self.axes.values(), indexing="ij"))
        return dict(zip(self.axes, axis_values, strict=True))

    def _add_field(self, grid_variables: dict[str, Any], name: str, grid_models: list[Any]) -> None:
        """Put the field ``name`` of all models among the variables, if it is one number."""
        values = [np.asarray(getattr(model, name)) for model in grid_models]
        if name not in self.axes and all(value.size == 1 for value in values):
            axes = [axis for axis in self.axes if axis not in POINT_AXES]
            grid_variables[name] = axes, np.reshape(values, [self.axes[axis].size for axis in axes])

    def thinned(self) -> "Grid":
        """The points at the first, the middle and the last value of every axis."""
        axis_sizes = {name: values.size for name, values in self.axes.items()}
        kept = {name: [*dict.fromkeys((0, n // 2, n - 1))] for name, n in axis_sizes.items()}
        grid_shape = [*axis_sizes.values()]
        points = np.arange(np.prod(grid_shape)).reshape(grid_shape)[np.ix_(*kept.values())].ravel()
        points_of_model = np.prod(grid_shape) // len(self.models)  # whose axes are the last
        return replace(
            self,
            axes={name: values[kept[name]] for name, values in self.axes.items()},
            models=[self.models[index] for index in np.unique(points // points_of_model)],
            losses=[self.losses[index] for index in kept.get("loss", [0])],
            columns={name: values[points] for name, values in self.columns.items()},
        )

    def with_changes(self, names: Iterable[str] = CHANGES, **settings: Any) -> "Grid":
        """The grid with columns ``finite_size_shift`` and ``network_difference`` of
        :class:`Solution`, or one of them by name; ``settings`` as of :func:`solve_grid`."""
        error_name = headline_error(self.models[0])

        def change(name: str, model: Any, alpha: Array, lam: Array, errors: Array) -> Array:
            def solved_errors(other: SpikedRandomFeatures) -> Array:
                """The errors of another model, 0 where they are far below the limit."""
                solved = _solved_columns([other], alpha, lam, self.losses, **settings)
                is_far_below = solved["status"] == str(Status.FAR_BELOW_LIMIT)
                return np.where(is_far_below, 0.0, solved[error_name])

            error_change = CHANGES[name].of(model, errors, solved_errors)
            if name == "finite_size_shift":
                error_change = np.maximum(error_change, LOWEST_SHIFT)
            if name == "finite_size_shift" and model.reuse:
                a, b = (x.ravel() for x in np.meshgrid(alpha, lam, indexing="ij"))
                largest_lam = LARGEST_PENALTY * a * of_size(model).dimension
                error_change = np.where(b > largest_lam, np.nan, error_change)
            return error_change

        blocks = [*self._blocks(self.columns[error_name])]
        changes = {name: np.concatenate([change(name, *one) for one in blocks]) for name in names}
        return replace(self, columns=self.columns | changes)

    def _blocks(self, all_errors: Array) -> Iterator[tuple[Any, Array, Array, Array]]:
        """Model, alpha, lam and ``all_errors`` of the points of each model; of a point by itself
        where the best lam or eta is searched."""
        best_values = {name: self.columns[name] for name in ("lam", "eta") if name in self.columns}
        points_per_model = len(all_errors) // len(self.models)
        if not best_values:
            errors_of_models = np.split(all_errors, len(self.models))
            for model, model_errors in zip(self.models, errors_of_models, strict=True):
                yield model, self.axes["alpha"], self.axes["lam"], model_errors
            return
        for k, grid_place in enumerate(places_on_grid(self.axes)):
            found = grid_place | {name: values[k] for name, values in best_values.items()}
            model = self.models[k // points_per_model]
            if np.isfinite(found.get("eta", np.nan)):
                model = model.model_at(eta=float(found["eta"]))
            yield model, np.array([found["alpha"]]), np.array([found["lam"]]), all_errors[k : k + 1]


@check_call
def solve_grid(
    problem: Problem | Given,
    *,
    alpha: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    lam: ArrayLike,
    grids: Mapping[str, Any] | None = None,
    loss: Any = "square",
    **settings: Any,
) -> Grid:
    """Columns that :func:`learning_curve` computes, as plain arrays.

    ``settings`` are the workers, the progress, which is called with (done, total) after each block
    of points, and options of :func:`replica.observables.evaluate_model.evaluate`.
    """
    name, axis_values = point_axis(problem, alpha, samples)
    model_axes, models = model_grid(problem, grids or {})
    losses = named("loss", loss, as_loss)
    loss_axis = {"loss": np.array([one.name for one in losses])} if is_list(loss) else {}
    axes = model_axes | loss_axis | {name: positive(name, axis_values), "lam": positive("lam", lam)}
    most_points = 10**7  # points, whose results take 5 GB
    check_points("a grid", (values.size for values in axes.values()), most_points)
    is_given = isinstance(problem, Given)
    alpha_or_n = samples_of(problem, name, axes[name]) if is_given else axes[name]
    columns = _solved_columns(models, alpha_or_n, axes["lam"], losses, **settings)
    single_axes = scalar_arguments(**grids or {}, **{name: axis_values}, lam=lam)
    return Grid(problem, axes, models, columns, losses, single_axes)


def _solved_columns(
    models: Sequence[Any],
    alpha: Array,
    lam: Array,
    losses: Sequence[Loss],
    *,
    workers: int = 1,
    progress: Progress | None = None,
    partial_results: bool = False,
    **settings: Any,
) -> dict[str, Array]:
    """The columns of :class:`Grid` of every model with every loss at all alpha and lam; of what is
    given at numbers of samples in the place of alpha."""
    a, b = (x.ravel() for x in np.meshgrid(alpha, lam, indexing="ij"))
    shown = dict.fromkeys(
        name for model in models[:1] for loss in losses for name in column_names(model, loss)
    )
    if isinstance(models[0], Given):
        given_points = (
            (len(a) * k + i, point.columns)
            for k, loss in enumerate(losses)
            for i, point in layer_points(models[0], a, b, loss, **settings)
        )
        point_count = len(a) * len(losses)
        return columns_of([*shown], collected(given_points, point_count, progress, partial_results))

    def block_size(model: Any, loss: Loss) -> int:
        """Number of points that are solved together."""
        if model.follows_alpha:
            return len(lam)  # every alpha has a step of its own
        # Of a loss other than the square, 64 points take some seconds: more cost less each, fewer
        # leave workers idle.  The last digits depend on it, not on the number of workers.
        return len(a) if loss.is_square else 64

    grid_blocks = [
        partial(_columns, [*shown], model, a[i : i + size], b[i : i + size], loss=loss, **settings)
        for model in models
        for loss in losses
        for size in [block_size(model, loss)]
        for i in range(0, len(a), size)
    ]

    block_columns = computed(grid_blocks, workers, progress, partial_results)
    for i, block in enumerate(grid_blocks):
        if block_columns[i] is None:
            point_count = len(block.args[2])
            block_columns[i] = columns_of([*shown], [None] * point_count)
    return {name: np.concatenate([columns[name] for columns in block_columns]) for name in shown}


def computed(
    tasks: Sequence[Callable[[], Any]],
    workers: int,
    progress: Progress | None,
    partial_results: bool = False,
) -> list[Any]:
    """Results of the ``tasks``, by ``workers`` processes, as :func:`collected` has them."""
    if not (isinstance(workers, (int, np.integer)) and workers >= 1):
        raise InvalidArgument("workers", workers, "a whole number of processes, 1 or more")
    task_indices, task_count = range(len(tasks)), len(tasks)
    finished = executors.run_all(lambda i: tasks[i](), task_indices, None, min(workers, task_count))
    return collected(finished, task_count, progress, partial_results)


def collected(
    finished: Iterable[tuple[int, Any]],
    task_count: int,
    progress: Progress | None,
    partial_results: bool,
) -> list[Any]:
    """Results of so many tasks, which are ``finished`` in any order; with ``partial_results``, if
    some are known at Ctrl-C, None in the place of the others."""
    task_results: dict[int, Any] = {}
    try:
        for task, task_result in finished:
            task_results[task] = task_result
            if progress is not None:
                progress(len(task_results), task_count)
    except KeyboardInterrupt:
        if not partial_results or not task_results:
            raise
    return [task_results.get(task) for task in range(task_count)]


def columns_of(names: Sequence[str], rows: Sequence[dict[str, Any] | None]) -> dict[str, Array]:
    """Columns of these ``names`` of points, by their ``rows``: None of a point that Ctrl-C left.
    If the status of every point is the refusal of an argument, the first is raised."""
    point_rows = [unsolved_row(names) if row is None else row for row in rows]
    statuses = [row["status"] for row in point_rows]
    if all(isinstance(status, InvalidArgument) for status in statuses):
        raise statuses[0]
    columns = {name: np.array([row[name] for row in point_rows]) for name in names}
    return columns | {"status": np.array([status_text(status) for status in statuses])}


def unsolved_row(names: Sequence[str], status: Any = Status.INTERRUPTED) -> dict[str, Any]:
    """The columns of these ``names`` of a point that was not solved."""
    unsolved_values = {"converged": False, "status": status, "iterations": 0, "at_edge": ""}
    return {name: unsolved_values.get(name, np.nan) for name in names}


def status_text(status: Any) -> str:
    """Sentence of a status, or of a refusal, without the value that is refused."""
    return str(status).partition(", got ")[0]


def _columns(
    names: Sequence[str], model: Any, alpha: Array, lam: Array, **settings: Any
) -> dict[str, Array]:
    """Columns of these ``names`` of the points of one block, (P,) each."""
    block_results = vars(evaluate(model, alpha, lam, **settings))
    columns = {name: block_results[name] for name in names}
    statuses = columns["status"].tolist()
    texts = {status: status_text(status) for status in {*statuses}}
    return columns | {"status": np.array([texts[status] for status in statuses])}

"""Theory on a grid: all combinations of values of a problem's parameters, loss and point.

A grid is solved in blocks, one for every model and loss: ``workers`` share them, and ``progress``
is called after each.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers import executors
from solvers.results import Array

from ..convex import Loss
from ..display import Progress
from ..errors import InvalidArgument
from ..problem import (
    Problem,
    SpikedRandomFeatures,
    check_points,
    describe,
    describe_with_step,
    positive,
)
from .axes import data_set, grid_axes, losses_of, models_on_grid, scalar_arguments
from .evaluate_model import evaluate
from .theory_changes import CHANGES, Change, headline_error, model_columns

if TYPE_CHECKING:
    import xarray

logger = logging.getLogger(__name__)
POINT_AXES = "loss", "alpha", "lam"  # which models do not depend on


@dataclass(frozen=True)
class Grid:
    """The theory on a grid.

    Attributes
    ----------
    problem : SpikedRandomFeatures or GradientStep
    axes : dict of name -> (n,) array
        SpikedRandomFeatures fields that vary, the loss if there are several, then alpha and lam.
    models : list of SpikedRandomFeatures
        One per combination of the model fields, the last varying fastest.
    columns : dict of name -> (points,) array
        Results at every point, the last axis varying fastest.
    losses : list of Loss
        Losses that the readout minimises.
    single : tuple of str
        The axes of one value that was given as a number, not as a list.
    """

    problem: Problem
    axes: dict[str, Array]
    models: list[SpikedRandomFeatures]
    columns: dict[str, Array]
    losses: list[Loss]
    single: tuple[str, ...] = ()

    @property
    def constants(self) -> dict[str, Any]:
        """Problem and loss in plain values, without the axes of the grid; of a model made by a
        step, the fields of the step, unless the model's own are varied."""
        problem, varied_names = self.problem, {*self.axes}
        grid_constants = (
            describe(problem) if varied_names & {"r", "c", "gamma"} else describe_with_step(problem)
        )
        if not self.losses[0].is_square:
            grid_constants["loss"] = self.losses[0].name
        varied_names |= {"eta"} if "rate" in varied_names or "eta" in self.columns else set()
        return {key: value for key, value in grid_constants.items() if key not in varied_names}

    @property
    def converged(self) -> bool:
        """True if every point did."""
        return bool(self.columns["converged"].all())

    def dataset(self) -> "xarray.Dataset":
        """The grid as an xarray.Dataset, see :func:`learning_curve`."""
        model_variables: dict[str, Any] = {}
        # else each point has its own
        if "eta" not in self.columns and not self.problem.follows_alpha:
            for field_name in ("r", "c", "gamma"):
                self._add_field(model_variables, field_name, self.models)
        if "rate" in self.axes:
            self._add_field(model_variables, "eta", [model.step for model in self.models])
        return data_set(self.axes, self.columns, self.constants, self.single, model_variables)

    def _add_field(self, grid_variables: dict[str, Any], name: str, grid_models: list[Any]) -> None:
        """Put the field ``name`` of all models among the variables, if it is one number."""
        values = [np.asarray(getattr(model, name)) for model in grid_models]
        if name not in self.axes and all(value.size == 1 for value in values):
            axes = [axis for axis in self.axes if axis not in POINT_AXES]
            grid_variables[name] = axes, np.reshape(values, [self.axes[axis].size for axis in axes])

    def ends(self) -> "Grid":
        """The points at the first and the last value of every axis."""
        sizes = {name: values.size for name, values in self.axes.items()}
        ends = {name: [*dict.fromkeys((0, size - 1))] for name, size in sizes.items()}
        model_ends, end_points = (
            np.arange(np.prod([sizes[name] for name in names], dtype=int))
            .reshape([sizes[name] for name in names])[np.ix_(*[ends[name] for name in names])]
            .ravel()
            for names in ([name for name in sizes if name not in POINT_AXES], sizes)
        )
        return replace(
            self,
            axes={name: values[ends[name]] for name, values in self.axes.items()},
            models=[self.models[index] for index in model_ends],
            losses=[self.losses[index] for index in ends.get("loss", [0])],
            columns={name: values[end_points] for name, values in self.columns.items()},
        )

    def with_changes(self, names: Iterable[str] = CHANGES, **settings: Any) -> "Grid":
        """The grid with columns ``finite_size_shift`` and ``network_difference`` of
        :class:`Solution`, or one of them by name; ``settings`` as of :func:`solve_grid`."""
        changes = {name: self._grid_changes(CHANGES[name], **settings) for name in names}
        return replace(self, columns=self.columns | changes)

    def _grid_changes(self, change: Change, **settings: Any) -> Array:
        """Relative change of the headline error at every point, (points,)."""
        error_name, readout_grid = (
            headline_error(self.models[0]),
            (self.axes["alpha"], self.axes["lam"], self.losses),
        )

        def grid_errors(model: SpikedRandomFeatures) -> Array:
            return _solved_columns([model], *readout_grid, **settings)[error_name]

        errors_of_models = np.split(self.columns[error_name], len(self.models))
        models_and_errors = zip(self.models, errors_of_models, strict=True)
        return np.concatenate([change.of(base, x, grid_errors) for base, x in models_and_errors])


def solve_grid(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    grids: Mapping[str, Any],
    loss: Any = "square",
    workers: int = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> Grid:
    """Columns that :func:`learning_curve` computes, as plain arrays.

    ``progress`` is called with (done, total) after each block of points; ``settings`` are those
    of :func:`replica.observables.evaluate_model.evaluate`.
    """
    model_axes, (losses, loss_axis) = grid_axes(problem, grids), losses_of(loss)
    point_axes = loss_axis | {"alpha": positive("alpha", alpha), "lam": positive("lam", lam)}
    most = 10**7  # points, whose results take 5 GB
    check_points("a grid", (values.size for values in (model_axes | point_axes).values()), most)
    models = models_on_grid(problem, model_axes)
    scalar_axes = scalar_arguments(**grids, alpha=alpha, lam=lam)
    point_values = point_axes["alpha"], point_axes["lam"], losses
    columns = _solved_columns(models, *point_values, workers=workers, progress=progress, **settings)
    if (failed := ~columns["converged"]).any():
        theory_name = "sRF" if models[0].rows is None else "network"
        at_d = f" at d = {models[0].dimension:g}" if np.isfinite(models[0].dimension) else ""
        grid_reasons = "; ".join(dict.fromkeys(map(str, columns["status"][failed])))
        grid_warning = "%d of %d points did not converge (theory of the %s%s): %s"
        logger.warning(grid_warning, failed.sum(), failed.size, theory_name, at_d, grid_reasons)
    return Grid(problem, model_axes | point_axes, models, columns, losses, scalar_axes)


def _solved_columns(
    models: Sequence[SpikedRandomFeatures],
    alpha: Array,
    lam: Array,
    losses: Sequence[Loss],
    *,
    workers: int = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> dict[str, Array]:
    """The columns of :class:`Grid` of every model with every loss at all alpha and lam."""
    a, b = (x.ravel() for x in np.meshgrid(alpha, lam, indexing="ij"))
    shown = dict.fromkeys(
        name for model in models[:1] for loss in losses for name in model_columns(model, loss)
    )
    # Of a loss other than the square, 64 points take some seconds: more cost less each, fewer leave
    # workers idle.  The last digits depend on it, so it is the same for any number of workers.
    grid_blocks = [
        partial(_columns, [*shown], model, a[i : i + size], b[i : i + size], loss=loss, **settings)
        for model in models
        for loss in losses
        for size in [len(a) if loss.is_square else 64]
        for i in range(0, len(a), size)
    ]
    block_columns = computed(grid_blocks, workers, progress)
    return {name: np.concatenate([columns[name] for columns in block_columns]) for name in shown}


def computed(
    tasks: Sequence[Callable[[], Any]], workers: int, progress: Progress | None
) -> list[Any]:
    """Results of the ``tasks``, by ``workers`` processes."""
    if not (isinstance(workers, (int, np.integer)) and workers >= 1):
        raise InvalidArgument("workers", workers, "a whole number of processes, 1 or more")
    task_results: dict[int, Any] = {}
    cells, count = range(len(tasks)), len(tasks)
    for task, result in executors.run_all(lambda i: tasks[i](), cells, None, min(workers, count)):
        task_results[task] = result
        if progress is not None:
            progress(len(task_results), count)
    return [task_results[task] for task in cells]


def _columns(column_names: Sequence[str], *block: Any, **settings: Any) -> dict[str, Array]:
    """Columns ``column_names`` of the points of one block, (P,) each."""
    block_evaluation = evaluate(*block, **settings)
    columns = {name: getattr(block_evaluation, name) for name in column_names}
    sentences = {status: status.value for status in set(columns["status"])}
    return columns | {"status": np.array([sentences[status] for status in columns["status"]])}

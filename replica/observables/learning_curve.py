"""Learning curves: the theory on the grid of all combinations of its parameters."""

import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers import executors
from solvers.resources import TIME_LIMIT
from solvers.results import Array, ConvergenceError

from ..convex import LOSSES, Evaluation, Loss
from ..convex import loss as as_loss
from ..errors import InvalidArgument, meant
from ..given import Given, needs_alpha
from ..plotting import ERROR_LABELS, LABELS
from ..problem import (
    Problem,
    SpikedRandomFeatures,
    as_made,
    attributes,
    axis,
    check_points,
    check_problem,
    describe,
    flag,
    laws_by_name,
    positive,
)
from .evaluate import Scheme
from .given_layers import curve_given, of_limits_alone
from .solution import columns_shown, evaluate

if TYPE_CHECKING:
    import xarray

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Grid:
    """The theory on a grid.

    Attributes
    ----------
    problem : SpikedRandomFeatures or GradientStep
    axes : dict of name -> (n,) array
        SpikedRandomFeatures fields that vary, then alpha and lam.
    models : list of SpikedRandomFeatures
        One per combination of the model fields, the last varying fastest.
    columns : dict of name -> (points,) array
        What is known of every point, the last axis varying fastest.
    loss : Loss
        What the readout minimises.
    """

    problem: Problem
    axes: dict[str, Array]
    models: list[SpikedRandomFeatures]
    columns: dict[str, Array]
    loss: Loss = LOSSES["square"]

    @property
    def constants(self) -> dict[str, Any]:
        """The problem in plain values, and its loss, without what varies with an axis; of a model
        that a step has made, those of the step, unless what the step makes is varied."""
        problem, varied = self.problem, {*self.axes}
        described = describe(problem) if varied & {"r", "c", "gamma"} else as_made(problem)
        if not self.loss.is_square:
            described["loss"] = self.loss.name
        varied |= {"eta"} if "rate" in varied else set()
        return {name: value for name, value in described.items() if name not in varied}

    @property
    def converged(self) -> bool:
        """Whether every point did."""
        return bool(self.columns["converged"].all())

    def dataset(self) -> "xarray.Dataset":
        """As an xarray.Dataset, see :func:`learning_curve`."""
        import xarray

        dims, shape = tuple(self.axes), tuple(axis.size for axis in self.axes.values())
        variables = {name: (dims, values.reshape(shape)) for name, values in self.columns.items()}
        for name in ("r", "c", "gamma"):
            self._add(variables, name, self.models)
        if "rate" in self.axes:
            self._add(variables, "eta", [model.step for model in self.models])
        found = xarray.Dataset(variables, coords=self.axes, attrs=attributes(self.constants))
        for name, label in (LABELS | ERROR_LABELS).items():
            if name in found:
                found[name].attrs["long_name"] = label
        return found

    def _add(self, variables: dict[str, Any], name: str, each: list[Any]) -> None:
        """Put a field of ``each`` model among the variables, if it is one number."""
        values = [np.asarray(getattr(one, name)) for one in each]
        if name not in self.axes and all(value.size == 1 for value in values):
            axes = list(self.axes.items())[:-2]
            shape = [axis.size for _, axis in axes]
            variables[name] = [axis for axis, _ in axes], np.reshape(values, shape)


def sweep(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    grids: Mapping[str, ArrayLike],
    loss: Any = "square",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Grid:
    """What :func:`learning_curve` computes, as plain arrays.

    ``progress`` is called with (done, total) after each block of points; ``settings`` are those
    of :func:`replica.observables.solution.evaluate`.
    """
    axes = grid_axes(problem, grids)
    ends = {"alpha": positive("alpha", alpha), "lam": positive("lam", lam)}
    sizes = [values.size for values in (axes | ends).values()]
    most = 10**7  # points, whose results take 5 GB
    check_points("a grid", " x ".join(map(str, sizes)), prod(sizes), most)
    models = models_on_grid(problem, axes)
    axes |= ends
    a, b = (x.ravel() for x in np.meshgrid(axes["alpha"], axes["lam"], indexing="ij"))
    minimised, count = as_loss(loss), len(a)
    # Of a loss other than the square, 64 points take some seconds: more cost less each, fewer leave
    # workers idle.  The last digits depend on it, so it is the same for any number of workers.
    size = count if minimised.is_square else 64
    blocks = [
        partial(evaluate, model, a[i : i + size], b[i : i + size], loss=minimised, **settings)
        for model in models
        for i in range(0, count, size)
    ]
    if not (isinstance(workers, (int, np.integer)) and workers >= 1):
        raise InvalidArgument("workers", workers, "a whole number of processes, 1 or more")
    done: dict[int, dict[str, Array]] = {}
    cells, most = range(len(blocks)), min(workers, len(blocks))
    for index, part in executors.results(partial(_columns, blocks), cells, None, most):
        done[index] = part
        if progress is not None:
            progress(len(done), len(blocks))
    parts = [done[index] for index in cells]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if failed := int(np.sum(~columns["converged"])):
        logger.warning("%d of %d points did not converge", failed, columns["converged"].size)
    return Grid(problem, axes, models, columns, minimised)


def _columns(blocks: list[partial[Evaluation]], index: int) -> dict[str, Array]:
    """What is known of the points of one block, (P,) each: the columns of :class:`Grid`."""
    block = blocks[index]
    evaluated = block()
    shown = columns_shown(block.args[0], block.keywords["loss"])
    columns = {name: evaluated.columns[name] for name in shown}
    return columns | {"status": np.array([status.value for status in columns["status"]])}


def learning_curve(
    model: Problem | Given,
    *,
    alpha: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    lam: ArrayLike,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    method: str = "newton",
    rule: str = "auto",
    time_limit: float = TIME_LIMIT,
    workers: int = 1,
    raise_on_failure: bool = False,
    **grids: ArrayLike,
) -> "xarray.Dataset":
    """The theory on the grid of all values of alpha, lam and any model field.  docs/theory.md 4, 20

    Parameters
    ----------
    model : SpikedRandomFeatures, GradientStep, FirstLayer or FeatureSample
        A GradientStep also needs ``beta``, and stands for its sRF.
    alpha, lam : float or array
    samples : float or array
        Numbers n of readout samples, in the place of alpha, of a FirstLayer or FeatureSample.
    loss, quadrature_tol, method, rule
        As in :func:`solve`, for every point.
    time_limit : float
        Seconds a point, on average over those solved at once.
    workers : int
        Processes among which the grid is divided, where a loss other than the square makes it
        slow; the numbers do not depend on it.
    raise_on_failure : bool
        Raise if any point did not converge.
    **grids : float or array
        Fields of the model, or of the step that made it, to vary: ``beta=[0.5, 1, 2]``,
        ``eta=...``, ``readout=["equal", "gaussian"]``; ``rate=`` is eta/d, which stays as beta
        varies: eta~ = rate/beta.

    Returns
    -------
    xarray.Dataset
        Dimensions: the names in ``grids``, then alpha or samples, and lam.  Variables test_error,
        train_error, converged, residual, quadrature_error, iterations, status, and the
        sRF's r, c, gamma, where each is one number for all neurons;
        loss_error and train_loss for a loss other than the square, classification_error where
        labels are +-1.  Points that did not converge have NaN errors.

    Raises
    ------
    InvalidArgument
        If a value is missing or out of range, an option does not fit the model, or a name in
        ``grids`` is not a field.
    ConvergenceError
        On request, with the Dataset inside.
    ChildProcessError
        If workers die again and again.

    Examples
    --------
    >>> from replica import GradientStep, learning_curve
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> curve = learning_curve(model, alpha=[0.2, 3.0], lam=0.1)
    >>> curve.test_error.values.round(7).tolist()
    [[0.0484829], [0.0325182]]
    >>> learning_curve(model, alpha=1.0, lam=0.1, eta=[1, 3]).test_error.values.round(7).ravel()
    array([0.0928738, 0.041604 ])
    """
    if isinstance(model, Given):
        of_limits_alone(method=method, rule=rule, workers=workers, **grids)
        limits = {"tol": quadrature_tol, "time_limit": time_limit}
        dataset = curve_given(model, alpha, samples, lam, loss, **limits)
    else:
        dataset = sweep(
            model,
            alpha=needs_alpha(alpha, samples),
            lam=lam,
            grids=grids,
            loss=loss,
            quadrature_tol=quadrature_tol,
            scheme=Scheme(method, rule),
            time_limit=time_limit,
            workers=workers,
        ).dataset()
    if flag("raise_on_failure", raise_on_failure) and (failed := int((~dataset.converged).sum())):
        raise ConvergenceError(f"{failed} points did not converge", dataset)
    return dataset


def grid_axes(problem: Problem, grids: Mapping[str, Any]) -> dict[str, Array]:
    """The values in ``grids`` as they stand on the axes: numbers, or laws by name; a name of no
    field of the problem that may vary is refused."""
    check_problem(problem)
    for name, values in grids.items():
        if name in ("alpha0", "eta", "rate") and problem.step is not None and problem.step.steps:
            allowed = "left out: each of several steps has its own, in steps"
            raise InvalidArgument(name, np.asarray(values).tolist(), allowed)
        if name not in problem.varying:
            known = ["alpha", "lam", *problem.varying]
            of_steps = name in ("alpha0", "eta", "rate", "readout", "decay")
            hint = "" if of_steps else meant(name, known)
            asked = f" (did you mean {hint}?)" if hint else ""
            raise InvalidArgument("a grid", name, f"over {', '.join(known)}{asked}")
    kinds = {"readout": laws_by_name}
    return {name: kinds.get(name, axis)(name, values) for name, values in grids.items()}


def places_on_grid(axes: Mapping[str, Array]) -> list[dict[str, Any]]:
    """The values of each combination of the fields in ``axes``, the last varying fastest."""
    each = itertools.product(*(grid.tolist() for grid in axes.values()))
    return [dict(zip(axes, values, strict=True)) for values in each]


def models_on_grid(problem: Problem, axes: Mapping[str, Array]) -> list[SpikedRandomFeatures]:
    """The model of each combination; what a step needs and is missing is refused."""
    return [problem.model(**values) for values in places_on_grid(axes)]

"""Learning curves: the theory on the grid of all combinations of its parameters."""

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array, ConvergenceError

from ..convex import LOSSES, Evaluation, Loss
from ..convex import loss as as_loss
from ..errors import InvalidArgument
from ..problem import Problem, SpikedRandomFeatures, attributes, axis, check_problem, positive
from .solution import evaluate

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
    def converged(self) -> bool:
        """Whether every point did."""
        return bool(self.columns["converged"].all())

    def dataset(self) -> "xarray.Dataset":
        """As an xarray.Dataset, see :func:`learning_curve`."""
        import xarray

        dims, shape = tuple(self.axes), tuple(axis.size for axis in self.axes.values())
        variables = {name: (dims, values.reshape(shape)) for name, values in self.columns.items()}
        for name in ("r", "c", "gamma"):
            each = [getattr(model, name) for model in self.models]
            if name not in self.axes and all(isinstance(value, float) for value in each):
                values = np.array(each)
                variables[name] = dims[:-2], values.reshape(shape[:-2])
        return xarray.Dataset(variables, coords=self.axes, attrs=self._attributes())

    def _attributes(self) -> dict[str, str | float]:
        """The problem as a NetCDF file describes it, and the loss unless it is the square."""
        described = attributes(self.problem)
        return described if self.loss.is_square else described | {"loss": self.loss.name}


def sweep(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    grids: Mapping[str, ArrayLike],
    loss: Any = "square",
    quadrature_tol: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Grid:
    """What :func:`learning_curve` computes, as plain arrays.

    ``progress`` is called with (done, total) after each model.

    Raises
    ------
    InvalidArgument
        If a value is out of range or a name in ``grids`` is not a field.
    """
    axes = {name: axis(name, grid) for name, grid in grids.items()}
    models = list(models_on_grid(problem, axes))
    axes |= {"alpha": positive("alpha", alpha), "lam": positive("lam", lam)}
    mesh = np.meshgrid(axes["alpha"], axes["lam"], indexing="ij")
    points = [coordinate.ravel() for coordinate in mesh]
    minimised = as_loss(loss)
    parts: list[dict[str, Array]] = []  # the columns of one model after the other
    for model in models:
        evaluation = evaluate(model, *points, loss=minimised, quadrature_tol=quadrature_tol)
        parts.append(_columns(model, minimised, evaluation))
        if progress is not None:
            progress(len(parts), len(models))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    failed = int(np.sum(~columns["converged"]))
    if failed:
        logger.warning("%d of %d points did not converge", failed, columns["converged"].size)
    return Grid(problem, axes, models, columns, minimised)


def _columns(model: SpikedRandomFeatures, loss: Loss, evaluation: Evaluation) -> dict[str, Array]:
    """What is known of the points of one model, (points,) each: the columns of :class:`Grid`."""
    points, losses = evaluation.points, evaluation.losses
    trained = {"trained_bias": evaluation.bias} if model.train_bias else {}
    of_loss: dict[str, Array] = {}
    if not loss.is_square:
        of_loss |= {"loss_error": losses.test, "train_loss": losses.train}
    if model.labels.binary:
        of_loss["classification_error"] = losses.classification
    return trained | {
        "test_error": points.errors.test,
        "train_error": points.errors.train,
        **of_loss,
        "converged": evaluation.converged,
        "residual": evaluation.residual,
        "quadrature_error": evaluation.quadrature_error,
        "iterations": points.iterations,
        "status": np.array([status.value for status in points.status]),
    }


def learning_curve(
    model: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    raise_on_failure: bool = False,
    **grids: ArrayLike,
) -> "xarray.Dataset":
    """The theory on the grid of all combinations of alpha, lam and any model field.

    Parameters
    ----------
    model : SpikedRandomFeatures or GradientStep
        A GradientStep also needs ``beta``, and stands for its sRF.
    alpha, lam : float or array
        As in :func:`solve`.
    loss : str or Loss
        Convex loss of the readout, as in :func:`solve`.
    quadrature_tol : float
        Bound on the estimated relative quadrature error of every point, as in :func:`solve`.
    raise_on_failure : bool
        Raise if any point did not converge.
    **grids : float or array
        Fields of the model, or of a network's step, to vary: ``beta=[0.5, 1, 2]``, ``eta=...``.

    Returns
    -------
    xarray.Dataset
        Dimensions: the names in ``grids``, then alpha, lam.  Variables test_error,
        train_error, converged, residual, quadrature_error, iterations, status, and the
        sRF's r, c, gamma; loss_error and train_loss for a loss other than the square,
        classification_error where labels are +-1.  Points that did not converge have NaN errors.

    Raises
    ------
    InvalidArgument
        If a value is out of range or a name in ``grids`` is not a field.
    ConvergenceError
        On request, with the Dataset inside.

    Examples
    --------
    >>> from replica import GradientStep
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> curve = learning_curve(model, alpha=[0.2, 3.0], lam=0.1)
    >>> curve.test_error.values.round(7).tolist()
    [[0.0484829], [0.0325182]]
    """
    grid = sweep(model, alpha=alpha, lam=lam, grids=grids, loss=loss, quadrature_tol=quadrature_tol)
    dataset = grid.dataset()
    if raise_on_failure and not grid.converged:
        failed = int((~dataset.converged).sum())
        raise ConvergenceError(f"{failed} points did not converge", dataset)
    return dataset


def models_on_grid(problem: Problem, axes: Mapping[str, Array]) -> Iterator[SpikedRandomFeatures]:
    """The model of each combination of the fields in ``axes``, the last varying fastest.

    Raises
    ------
    InvalidArgument
        If a name is not a numeric field, or beta is missing for a GradientStep.
    """
    check_problem(problem)
    for name in axes:
        if len(problem.schedule) > 1 and name in ("alpha0", "eta"):
            raise InvalidArgument(
                name, axes[name].tolist(), "left out: each of several steps has its own, in steps"
            )
        if name not in problem.varying:
            raise InvalidArgument("a grid", name, f"over alpha, lam, {', '.join(problem.varying)}")
    for values in itertools.product(*axes.values()):
        yield problem.model(**dict(zip(axes, values, strict=True)))

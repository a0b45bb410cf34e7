"""Learning curves: the theory on the grid of all combinations of its parameters."""

import itertools
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array, ConvergenceError

from ..convex.evaluation import Evaluation
from ..convex.losses import NAMED, Loss
from ..convex.losses import loss as as_loss
from ..errors import InvalidArgument
from ..problem.laws import Law, law
from ..problem.srf import GradientStep, SpikedRandomFeatures
from ..steps.network import Model, Network
from .solution import axis, evaluate, positive

if TYPE_CHECKING:
    import xarray

logger = logging.getLogger(__name__)

OPTIONAL = {
    "alpha0": None,
    "eta": None,
    "steps": (),
    "readout": law("readout", 1.0),
    "bias": law("bias", 0.0),
    "fractions": None,
    "intercept": False,
    "train_bias": False,
    "dimension": np.inf,
    "law_error": 0.0,
    "step_noise": None,
    "row_norms": True,
    "label_noise": None,
}
Problem = SpikedRandomFeatures | GradientStep


@dataclass(frozen=True)
class Grid:
    """The theory on a grid.

    Attributes
    ----------
    problem : SpikedRandomFeatures, Network or GradientStep
    axes : dict of name -> (n,) array
        Model fields that vary, then alpha and lam.
    models : list of SpikedRandomFeatures or Network
        One per combination of the model fields, the last varying fastest.
    columns : dict of name -> (points,) array
        What is known of every point, the last axis varying fastest.
    loss : Loss
        What the readout minimises.
    """

    problem: Problem | Network
    axes: dict[str, Array]
    models: list[Model]
    columns: dict[str, Array]
    loss: Loss = NAMED["square"]

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
        known = attributes(self.problem)
        return known if self.loss.is_square else known | {"loss": self.loss.name}


def sweep(
    problem: Problem | Network,
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
    models = list(variants(problem, axes))
    axes |= {"alpha": positive("alpha", alpha), "lam": positive("lam", lam)}
    points = np.meshgrid(axes["alpha"], axes["lam"], indexing="ij")
    evaluations = []
    for model in models:
        at = (x.ravel() for x in points)
        evaluations.append(evaluate(model, *at, loss=loss, quadrature_tol=quadrature_tol))
        if progress is not None:
            progress(len(evaluations), len(models))
    of = as_loss(loss)
    tables = [_columns(model, of, found) for model, found in zip(models, evaluations, strict=True)]
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    failed = int(np.sum(~columns["converged"]))
    if failed:
        logger.warning("%d of %d points did not converge", failed, columns["converged"].size)
    return Grid(problem, axes, models, columns, of)


def _columns(model: Model, loss: Loss, found: Evaluation) -> dict[str, Array]:
    """The columns of one model's points."""
    trained = {"trained_bias": found.bias} if model.train_bias else {}
    measured: dict[str, Array] = {}
    if not loss.is_square:
        measured |= {"loss_error": found.losses.test, "train_loss": found.losses.train}
    if model.binary:
        measured["classification_error"] = found.losses.classification
    return trained | {
        "test_error": found.points.errors.test,
        "train_error": found.points.errors.train,
        **measured,
        "converged": found.converged,
        "residual": found.residual,
        "quadrature_error": found.quadrature_error,
        "iterations": found.points.iterations,
        "status": np.array([status.value for status in found.points.status]),
    }


def learning_curve(
    model: Problem | Network,
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
    model : SpikedRandomFeatures, Network or GradientStep
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


def variants(problem: Problem | Network, axes: Mapping[str, Array]) -> Iterator[Model]:
    """The model of each combination of the fields in ``axes``, the last varying fastest.

    Raises
    ------
    InvalidArgument
        If a name is not a numeric field, or beta is missing for a GradientStep.
    """
    allowed = _varying(problem)
    if isinstance(problem, Network):
        allowed += _varying(problem.step)
    if isinstance(problem, GradientStep):
        allowed.append("beta")
        if "beta" not in axes:
            raise InvalidArgument("beta", None, "given together with a GradientStep (p/d)")
    several = isinstance(problem, GradientStep) and problem.steps
    for name in axes:
        if several and name in ("alpha0", "eta"):
            raise InvalidArgument(
                name, axes[name].tolist(), "left out: each of several steps has its own, in steps"
            )
        if name not in allowed:
            raise InvalidArgument("a grid", name, f"over alpha, lam, {', '.join(allowed)}")
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        if isinstance(problem, GradientStep):
            beta = chosen.pop("beta")
            yield replace(problem, **chosen).srf(beta=beta)
        elif isinstance(problem, Network):
            own = {name: chosen.pop(name) for name in _varying(problem) if name in chosen}
            yield replace(problem, step=replace(problem.step, **chosen), **own)
        else:
            yield replace(problem, **chosen)


def _varying(problem: Problem | Network) -> list[str]:
    """The numeric fields."""
    return [f.name for f in fields(problem) if isinstance(getattr(problem, f.name), float)]


def describe(problem: Problem | Network) -> dict[str, Any]:
    """The fields of a problem as plain values, for files and documents.

    Fields at a default that switches them off are left out.
    """
    found = {
        f.name: _plain(getattr(problem, f.name))
        for f in fields(problem)
        if f.name not in OPTIONAL or getattr(problem, f.name) != OPTIONAL[f.name]
    }
    if isinstance(problem, Network):
        found |= describe(found.pop("step")) | {"model": "network"}
    return found


def attributes(problem: Problem | Network) -> dict[str, str | float]:
    """The description with what NetCDF cannot hold as JSON text."""
    return {
        name: value if isinstance(value, (str, float)) else json.dumps(value)
        for name, value in describe(problem).items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Law):
        law = value.continuous
        if law is not None:
            return law if isinstance(law, str) else f"{law.dist.name}{law.args}{law.kwds or ''}"
        return [list(value.values), list(value.fractions)]
    return getattr(value, "name", value)

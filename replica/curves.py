"""The theory at one point, or at many points of one model.

Each point is solved on the coarsest table of ``equivalence.tables`` that resolves it, on
its own account: its answer does not depend on the rest of the grid.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array, ConvergenceError, Status

from . import convex, ridge
from .classification import classification_error
from .equivalence import Table, tables
from .errors import InvalidArgument
from .evaluation import Evaluation, assign, concatenate
from .label_tables import LabelTable, label_table
from .layered import solve_layered
from .local_fields import Losses
from .losses import Loss
from .losses import loss as as_loss
from .models import FINITE, SpikedRandomFeatures, number
from .network import Model
from .overlaps import Conjugates, Overlaps
from .trained_bias import best_bias, objective

QUADRATURE_TOLERANCE = 1e-10
RESIDUAL_TOLERANCE = 1e-10
CLASSIFICATION_TOLERANCE = 1e-8
LAYERED = 2  # last level of shared tables for kinks or bends in labels +-1: 80 nodes
CHUNK = 2**17  # points times nodes handled at once: 256 KiB an array, kept in the cache


@dataclass(frozen=True, eq=False)
class Solution:
    """The theory at one point.

    Attributes
    ----------
    model : SpikedRandomFeatures or Network
    alpha, lam : float
    test_error : float
        E (target - prediction)^2 on noiseless targets; NaN if not converged.  Eq. (4.11)
    train_error : float
        Mean squared training residual; NaN if not converged.
    loss : Loss
        What the readout minimises, beside the penalty.
    loss_error : float
        Mean loss on new samples, labels with their noise; half the square for the square loss.
    train_loss : float
        Mean loss on the training samples.
    classification_error : float
        P(y f < 0) on new samples where labels are +-1; NaN elsewhere, or where no rule resolves it.
    overlaps, conjugates : Overlaps, Conjugates
        Without the leading axis over points; groups in the order of ``model.geometry``, where
        equal ones are merged and empty ones left out.
    converged : bool
    status : Status
        Its value is a sentence.
    residual : float
        Largest relative violation of any of the original equations at this point.
    quadrature_error : float
        The same on a rule of about half the size: bounds the effect of the rule used.
    iterations : int
        Evaluations of the saddle-point equations.
    nodes : int
        Size of the quadrature rule.
    trained_bias : float
        The common bias that minimises the training objective; 0 if none is trained.  As the
        bottom of a minimum it is known to about 1e-8, and the test error with it.
    """

    model: Model
    alpha: float
    lam: float
    test_error: float
    train_error: float
    loss: Loss
    loss_error: float
    train_loss: float
    classification_error: float
    overlaps: Overlaps
    conjugates: Conjugates
    converged: bool
    status: Status
    residual: float
    quadrature_error: float
    iterations: int
    nodes: int
    trained_bias: float


def solve(
    model: Model,
    *,
    alpha: float,
    lam: float,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    raise_on_failure: bool = False,
) -> Solution:
    """Test error, training error and overlaps at one point.  THEORY 4, 6

    Parameters
    ----------
    model : SpikedRandomFeatures or Network
    alpha : float
        Readout samples over input dimension, n/d.
    lam : float
        Ridge penalty lambda of (1.2), positive.
    loss : str or Loss
        Convex loss of the readout: ridge regression's square unless given, see
        :func:`replica.losses.loss`.
    quadrature_tol : float
        Bound on the estimated relative quadrature error; 1e-10 unless given, 1e-6 for a loss
        other than the square.
    raise_on_failure : bool
        Raise instead of returning a point that did not converge.

    Raises
    ------
    InvalidArgument
        If alpha or lam is out of range, or the loss does not fit the labels.
    QuadratureError
        If a function of the model cannot be integrated, such as one with undeclared kinks.
    ConvergenceError
        On request, with the Solution inside.

    Examples
    --------
    >>> from replica import GradientStep
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> point = solve(model, alpha=0.9, lam=0.1)
    >>> round(point.test_error, 7), round(point.train_error, 7), point.converged
    (0.0425039, 0.0168595, True)
    """
    if not isinstance(model, Model):
        raise InvalidArgument("model", model, "a model, such as step.srf(beta=1)")
    evaluated = evaluate(
        model,
        positive("alpha", [alpha]),
        positive("lam", [lam]),
        loss=loss,
        quadrature_tol=quadrature_tol,
    )
    points, losses = evaluated.points, evaluated.losses
    solution = Solution(
        model=model,
        alpha=float(alpha),
        lam=float(lam),
        test_error=float(points.errors.test[0]),
        train_error=float(points.errors.train[0]),
        loss=as_loss(loss),
        loss_error=float(losses.test[0]),
        train_loss=float(losses.train[0]),
        classification_error=float(losses.classification[0]),
        overlaps=Overlaps(*(part[0] for part in points.overlaps)),
        conjugates=Conjugates(*(part[0] for part in points.conjugates)),
        converged=bool(evaluated.converged[0]),
        status=points.status[0],
        residual=float(evaluated.residual[0]),
        quadrature_error=float(evaluated.quadrature_error[0]),
        iterations=int(points.iterations[0]),
        nodes=int(evaluated.nodes[0]),
        trained_bias=float(evaluated.bias[0]),
    )
    if raise_on_failure and not solution.converged:
        raise ConvergenceError(
            f"at alpha={solution.alpha:g}, lam={solution.lam:g}: {solution.status.value} "
            f"(residual {solution.residual:.1e}, quadrature {solution.quadrature_error:.1e})",
            solution,
        )
    return solution


def evaluate(
    model: Model,
    alpha: Array,
    lam: Array,
    *,
    loss: Any = "square",
    quadrature_tol: float | None = None,
) -> Evaluation:
    """The theory of ``model`` at the points (alpha[i], lam[i]), arrays of shape (P,)."""
    of = as_loss(loss)
    if of.kind == "margin" and not model.binary:
        raise InvalidArgument(
            "loss", of.name, "a loss of the residual: the labels of this problem are not +-1"
        )
    if not model.train_bias:
        return _evaluate(model, alpha, lam, of, quadrature_tol)

    assert isinstance(model, SpikedRandomFeatures)  # a network trains no bias

    def at(bias: float, rows: Array) -> Evaluation:
        return _evaluate(shifted(model, bias), alpha[rows], lam[rows], of, quadrature_tol)

    def trained(bias: float, rows: Array) -> Array:
        one = at(bias, rows)
        train = one.losses.train
        return objective(train, one.points.overlaps, alpha[rows], lam[rows], model.beta)

    found = []
    for row, bias in enumerate(best_bias(trained, len(alpha))):
        one = at(0.0 if np.isnan(bias) else bias, np.array([row]))
        if np.isnan(bias):
            one.points.status[:] = Status.AT_EDGE
            for error in (*one.points.errors, *one.losses):
                error[:] = np.nan
        found.append(replace(one, bias=np.array([bias])))
    return concatenate(found)


def shifted(model: Model, bias: float) -> Model:
    """``model`` with ``bias`` added to all neurons, for good."""
    if not model.train_bias and not bias:
        return model
    assert isinstance(model, SpikedRandomFeatures)  # a network trains no bias
    g = model.geometry
    return replace(
        model,
        r=tuple(map(tuple, g.r)),
        c=tuple(g.c),
        fractions=tuple(g.fractions),
        gamma=tuple(map(tuple, g.gamma)),
        bias=tuple(g.bias + bias),
        train_bias=False,
    )


def _evaluate(
    model: Model, alpha: Array, lam: Array, loss: Loss, quadrature_tol: float | None
) -> Evaluation:
    """Every point climbs the ladder of tables until its quadrature error is met."""
    linear = loss.is_square and not model.channel
    turns = bool(loss.kinks or loss.bends)
    layered = not linear and turns and model.geometry.r.shape[1] == 1
    thin = layered and model.binary  # labels with noise blur the kinks
    brief = thin and loss.jumps
    if quadrature_tol is None:
        quadrature_tol = QUADRATURE_TOLERANCE if linear else convex.QUADRATURE_TOLERANCE
    kept: Evaluation | None = None
    tried = False
    rows = np.arange(len(alpha))
    for level in itertools.count():
        pair = tables(model, level) if linear else _label_tables(model, level)
        if pair is None:
            break
        fine = pair[1]
        size = max(1, CHUNK // len(_features(fine).weights))
        blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
        found = concatenate(
            [_on_tables(pair, alpha[b], lam[b], _guess(kept, b), loss, brief) for b in blocks]
        )
        kept = found if kept is None else assign(kept, rows, found)
        # not (x <= tol), rather than x > tol: an undefined estimate is not a small one.
        unmet = ~(found.quadrature_error <= quadrature_tol)
        if not linear:  # what two tables did not solve is not a matter of quadrature
            unmet &= found.converged | (level < 1 and not brief)
        if not unmet.any():
            break
        rows = rows[unmet]
        if thin and level == LAYERED:
            tried = True
            kept = _layered(model, alpha, lam, loss, quadrature_tol, kept, rows)
            rows = rows[~(kept.quadrature_error[rows] <= quadrature_tol)]
            if not rows.size:
                break
    if kept is None:
        raise InvalidArgument("loss", loss.name, "square for a model of so many directions")
    if layered:
        left = ~kept.converged | (~(kept.quadrature_error <= quadrature_tol) & (not tried))
        kept = _layered(model, alpha, lam, loss, quadrature_tol, kept, np.flatnonzero(left))
    if model.binary:
        kept = _classified(model, kept, None if linear else quadrature_tol)
    status = kept.points.status
    tolerance = RESIDUAL_TOLERANCE if linear else convex.RESIDUAL_TOLERANCE
    status[kept.converged & ~(kept.residual <= tolerance)] = Status.NO_PROGRESS
    status[kept.converged & ~(kept.quadrature_error <= quadrature_tol)] = Status.QUADRATURE
    for error in (*kept.points.errors, *kept.losses):
        error[status != Status.CONVERGED] = np.nan
    return replace(kept, points=ridge.for_groups(_features(fine), kept.points))


def _layered(
    model: Model,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float,
    kept: Evaluation,
    rows: Array,
) -> Evaluation:
    """With the named points, which the shared tables do not resolve, on tables of their own."""
    for row in rows:
        one = np.array([row])
        found = solve_layered(model, loss, alpha[one], lam[one], _guess(kept, one), tol)
        if found is not None:
            kept = assign(kept, one, Evaluation(*found, np.zeros(1)))
    return kept


def _classified(model: Model, kept: Evaluation, quadrature_tol: float | None) -> Evaluation:
    """With the classification error: part of the quadrature error where that has a tolerance,
    left NaN elsewhere by a rule that does not resolve it."""
    tol = min(CLASSIFICATION_TOLERANCE, (quadrature_tol or np.inf) / 10)
    wrong, error = np.full((2, len(kept.nodes)), np.nan)
    rows = np.flatnonzero(kept.converged)
    overlaps = Overlaps(*(part[rows] for part in kept.points.overlaps))
    wrong[rows], error[rows] = classification_error(model, overlaps, tol)
    quadrature = kept.quadrature_error
    if quadrature_tol is None:
        wrong[~(error <= tol)] = np.nan
    else:
        quadrature = np.maximum(quadrature, error / np.maximum(np.abs(wrong), 1e-4))
    losses = kept.losses._replace(classification=wrong)
    return replace(kept, losses=losses, quadrature_error=quadrature)


def _features(of: Table | LabelTable) -> Table:
    return of.table if isinstance(of, LabelTable) else of


def _label_tables(model: Model, level: int) -> tuple[LabelTable, LabelTable] | None:
    coarse, fine = label_table(model, level), label_table(model, level + 1)
    return None if coarse is None or fine is None else (coarse, fine)


def _on_tables(
    pair: tuple[Table, Table] | tuple[LabelTable, LabelTable],
    alpha: Array,
    lam: Array,
    start: Overlaps | None,
    loss: Loss,
    brief: bool,
) -> Evaluation:
    """Solve on the second table; judge the answer on it and on the first, coarser one."""
    coarse, fine = pair
    if isinstance(fine, LabelTable):
        assert isinstance(coarse, LabelTable)
        points, losses = convex.solve_points(fine, loss, alpha, lam, start, brief=brief)
        mismatches = [convex.mismatch(t, loss, alpha, lam, points, losses) for t in (fine, coarse)]
    else:
        assert isinstance(coarse, Table)
        points = ridge.solve_points(fine, alpha, lam, start)
        train, unknown = points.errors.train, np.full(len(alpha), np.nan)
        test = points.errors.test + fine.noise
        losses = Losses(train / 2, train.copy(), test / 2, unknown)
        mismatches = [ridge.mismatch(t, alpha, lam, points) for t in (fine, coarse)]
    return Evaluation(
        points,
        losses,
        mismatches[0],
        mismatches[1],
        np.full(len(alpha), len(_features(fine).weights)),
        np.zeros(len(alpha)),
    )


def _guess(kept: Evaluation | None, rows: Array) -> Overlaps | None:
    """The overlaps found on the previous table, where every one of them is usable."""
    if kept is None or not (kept.points.status[rows] == Status.CONVERGED).all():
        return None
    return Overlaps(*(part[rows] for part in kept.points.overlaps))


def axis(name: str, values: ArrayLike) -> Array:
    """``values`` of a parameter as a one-dimensional array of at least one number.

    Raises
    ------
    InvalidArgument
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise InvalidArgument(name, values, "a number or a one-dimensional sequence")
    return array


def positive(name: str, values: ArrayLike) -> Array:
    """``values`` of alpha or lam as a one-dimensional array, checked.

    Raises
    ------
    InvalidArgument
    """
    allowed = {
        "alpha": "positive and finite (n/d)",
        "lam": "positive and finite: at 0 the ridge problem has no unique minimiser; "
        "take 1e-12 for its limit",
    }[name]
    array = axis(name, values)
    for value in array:
        number(name, value, 0, FINITE, allowed, open_low=True)
    return array

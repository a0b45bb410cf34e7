"""Many points of one model and any loss, at the bias that the model has.

Those of ridge regression are solved on tables of growing size, shared by all points of the model,
each until its answer solves the equations on the table before as well, within the tolerance.
"""

from functools import partial
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

import numpy as np

from solvers.results import Array, Status

from ..convex import (
    LOSS_QUADRATURE_TOLERANCE,
    LOSS_RESIDUAL_TOLERANCE,
    Evaluation,
    Loss,
    Losses,
    assign,
    classification_error,
    concatenate,
    scores_of_ridge,
    slope_in_bias,
    solve_convex,
)
from ..equivalence import Table, table_at, tables
from ..errors import InvalidArgument
from ..problem import Model
from ..saddle_point import check, ridge, solve_and_check, solve_damped

QUADRATURE_TOLERANCE = 1e-10
RESIDUAL_TOLERANCE = 1e-10
CLASSIFICATION_TOLERANCE = 1e-8
TIME_LIMIT = 20.0  # seconds a point: more than any ordinary one takes
# Nodes of a table times pairs of groups: a point of ridge regression keeps some ten arrays so large
# of every table, in all below 1 GB.
LARGEST_TABLE = 2**23
CHUNK = 2**17  # points times nodes handled at once: 256 KiB an array, kept in the cache


class Scheme(NamedTuple):
    """How ridge regression's equations are solved, and on which nodes averages are taken."""

    method: str = "newton"
    rule: str = "auto"

    def check(self, model: Model, *, ridge: bool) -> None:
        """Refuse what is not known, or does not fit the model and its loss."""
        if self.method not in METHODS:
            raise InvalidArgument("method", self.method, " or ".join(METHODS))
        if self.rule not in RULES:
            raise InvalidArgument("rule", self.rule, " or ".join(RULES))
        name = "method" if self.method != "newton" else "rule"
        usual, value = getattr(USUAL, name), getattr(self, name)
        if not ridge or model.train_bias:
            raise InvalidArgument(name, value, f"{usual} but for the square loss and fixed biases")
        if model.geometry.r.shape[1] > 1:
            raise InvalidArgument(name, value, f"{usual} for several spikes")
        table = table_at(model, 0)
        one = table is not None and table.one_group is not None and np.isinf(model.dimension)
        if self.method == "damped" and not (one and model.rows is None):
            allowed = f"{usual} but for one group of isotropic neurons without intercept"
            raise InvalidArgument(name, value, allowed)


METHODS, RULES = ("newton", "damped"), ("auto", "gauss-hermite")
USUAL = Scheme()


def evaluate_at_bias(
    model: Model,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float | None,
    time_limit: float = TIME_LIMIT,
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), to the quadrature tolerance ``tol`` or that of
    the loss, in ``time_limit`` seconds a point; at the model's bias, whether or not one is
    trained."""
    if is_ridge(model, loss):
        return evaluate_ridge(model, alpha, lam, tol, time_limit=time_limit)
    tol = LOSS_QUADRATURE_TOLERANCE if tol is None else tol
    found, table = solve_convex(model, alpha, lam, loss, tol, time_limit), table_at(model, 0)
    assert table is not None
    classification = min(CLASSIFICATION_TOLERANCE, tol / 10)
    return _finished(model, table, found, (tol, LOSS_RESIDUAL_TOLERANCE, classification))


def is_ridge(model: Model, loss: Loss) -> bool:
    """Whether the loss is the square, of labels that E[y | z] and a variance tell all about."""
    return loss.is_square and not model.labels.channel


def evaluate_ridge(
    model: Model,
    alpha: Array,
    lam: Array,
    tol: float | None,
    scheme: Scheme = USUAL,
    time_limit: float = TIME_LIMIT,
) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,).  docs/theory.md 4"""
    now = monotonic()
    deadline = now + time_limit * len(alpha)
    tol = QUADRATURE_TOLERANCE if tol is None else tol
    kept: Evaluation | None = None
    rows = np.arange(len(alpha))
    for coarse, fine in pairwise(tables(model, scheme.rule)):
        size = max(1, CHUNK // (fine.weights.size * len(fine.c) ** 2))
        blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
        each = [
            _on(model, (fine, coarse), alpha[at], lam[at], kept and kept.at(at), scheme)
            for at in blocks
        ]
        found = concatenate(each)
        kept = found if kept is None else assign(kept, rows, found)
        # not (x <= tol), rather than x > tol: an undefined estimate is not a small one.  What a
        # table did not solve is not a matter of quadrature.
        rows = rows[kept.converged[rows] & ~(kept.quadrature_error[rows] <= tol)]
        if not rows.size:
            break
        before, now = now, monotonic()
        # the next table takes no less time than this one, and mostly twice its memory
        late = 2 * now - before > deadline
        if late or 2 * fine.weights.size * len(fine.c) ** 2 >= LARGEST_TABLE:
            kept.points.status[rows] = Status.TIME if late else Status.MEMORY
            break
    assert kept is not None  # the first tables are there for every model
    return _finished(model, fine, kept, (tol, RESIDUAL_TOLERANCE, CLASSIFICATION_TOLERANCE))


def _on(
    model: Model,
    tables: tuple[Table, Table],
    alpha: Array,
    lam: Array,
    before: Evaluation | None,
    scheme: Scheme,
) -> Evaluation:
    """The points on the first of two ``tables``, checked on both; from those ``before``, where all
    of them are usable."""
    fine = tables[0]
    start = before.points.overlaps if before is not None and before.converged.all() else None
    if scheme.method == "damped" and fine.one_group is not None:
        points, error = check(solve_damped(fine.one_group, alpha, lam), *tables, alpha, lam)
    else:
        points, error = solve_and_check(*tables, alpha, lam, start)
    train, unknown = points.errors.train, np.full(len(alpha), np.nan)
    test = points.errors.test + fine.noise
    losses = Losses(train / 2, train.copy(), test / 2)
    nodes, bias = np.full(len(alpha), fine.weights.size), np.zeros(len(alpha))
    slope = slope_in_bias(model, fine, alpha, points, partial(scores_of_ridge, fine))
    return Evaluation(points, losses, unknown, error, nodes, slope, bias)


def _finished(
    model: Model, table: Table, kept: Evaluation, tolerances: tuple[float, float, float]
) -> Evaluation:
    """``kept`` with the classification error, the status of every point by the ``tolerances`` of
    quadrature, residual and classification, NaN errors where that is not convergence, and
    the overlaps of all groups of the ``table``."""
    tol, residual_tol, classification_tol = tolerances
    status, wrong = kept.points.status, kept.classification_error
    status[kept.converged & ~(kept.points.residual <= residual_tol)] = Status.NO_PROGRESS
    status[kept.converged & ~(kept.quadrature_error <= tol)] = Status.QUADRATURE
    rows = np.flatnonzero(kept.converged)
    wrong[rows] = classification_error(model, kept.at(rows).points.overlaps, classification_tol)
    for error in (*kept.points.errors, *kept.losses, wrong):
        error[~kept.converged] = np.nan
    return kept._replace(points=ridge.for_groups(table, kept.points))

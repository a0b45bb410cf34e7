"""The theory of a network at its own dimension, at many points.  docs/theory.md 23"""

from dataclasses import replace
from typing import Any

import numpy as np

from solvers.resources import check_time, deadline
from solvers.results import Array, Rows, Status

from ..convex import Evaluation, Loss, solve_on_growing_tables
from ..equivalence import Table
from ..errors import InvalidArgument
from ..problem import Model
from ..saddle_point import Conjugates, Overlaps, TabulatedRows, field_at_nodes, ridge
from .readout import class_error, solve_readouts
from .tabulate import table_at_dimension

QUADRATURE_TOLERANCE, RESIDUAL_TOLERANCE = 2e-3, 1e-8
CHUNK = 2**17  # points times nodes handled at once: 1 MB an array


def evaluate_at_dimension(
    model: Model,
    limit: Evaluation,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float | None,
    time_limit: float,
) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,), of a network at its own
    dimension.

    Errors are those of the ``limit`` times their ratio to it on tables of the same nodes, from
    which the rounding of steep features by few nodes nearly cancels.

    Raises
    ------
    InvalidArgument
        If this theory does not cover the model or the loss.
    """
    check_covered(model, loss)
    found, tol = Evaluation(len(alpha)), QUADRATURE_TOLERANCE if tol is None else tol
    found.overlaps, found.conjugates = _unknown(len(alpha))
    ratios, network = np.full((3, len(alpha)), np.nan), replace(model, dimension=np.inf)
    of_limit = np.array([limit.test_error, limit.train_error, limit.classification_error])

    def tables_for(level: int, _: Rows) -> tuple[Table, Table] | None:
        at = table_at_dimension(network, model.dimension, level)
        in_limit = table_at_dimension(network, np.inf, level)
        return None if at is None or in_limit is None else (at, in_limit)

    def solve_on(tables: tuple[Table, Table], points: Rows, _: Any) -> Rows:
        size = max(1, CHUNK // tables[0].weights.size)
        for rows in np.array_split(points, -(-len(points) // size)):
            check_time()
            V = np.stack([limit.overlaps.V1[rows, 0, 0], limit.overlaps.V2[rows, 0]], axis=1)
            at = solve_readouts(tables[0], alpha[rows], lam[rows], V)
            ratio = np.array([*at.errors, at.wrong]) / _limit(tables[1], alpha[rows], lam[rows])
            change = np.nan_to_num(np.abs(ratio / ratios[:, rows] - 1)[:2].max(axis=0), nan=np.inf)
            ratios[:, rows] = ratio
            test, train, wrong = of_limit[:, rows] * ratio
            found.store(
                rows,
                test_error=test,
                train_error=train,
                loss_error=(test + tables[0].noise) / 2,
                train_loss=train / 2,
                classification_error=wrong,
                residual=at.residual,
                quadrature_error=np.maximum(change, limit.quadrature_error[rows]),
                iterations=at.passes,
                nodes=np.full(len(rows), tables[0].weights.size),
                converged=at.residual <= RESIDUAL_TOLERANCE,
                open=~(change <= tol),
            )
            found.overlaps.V1[rows, 0, 0], found.overlaps.V2[rows, 0] = at.V.T
            found.overlaps.m[rows] = at.m[:, :1]
        return points[found.open[points] & found.converged[points]]

    known = np.flatnonzero(limit.converged)
    found.flag(~limit.converged, Status.NO_PROGRESS)
    found.status[~limit.converged] = limit.status[~limit.converged]
    with deadline(time_limit * len(alpha)), np.errstate(all="ignore"):  # what is not finite is NaN
        solve_on_growing_tables(found, known, tables_for, solve_on)
    found.close(RESIDUAL_TOLERANCE)
    return found


def reason_not_at_dimension(model: Model, loss: Loss) -> str:
    """The reason why the theory of a network at its own dimension does not cover a ``model`` or a
    ``loss``; empty if it does, or if the model is no such network."""
    if np.isinf(model.own_dimension):
        return ""
    rows: Any = model.rows
    reasons = {
        "several readout values or biases": not isinstance(
            rows.covariance_of(np.zeros(1, np.int64)), TabulatedRows
        ),
        "losses other than the square": not loss.is_square,
        "labels +-1 at random": model.labels.channel,
    }
    known = "the theory of a network at its own dimension does not cover"
    return next((f"{known} {name}" for name, holds in reasons.items() if holds), "")


def check_covered(model: Model, loss: Loss) -> None:
    """Raise InvalidArgument unless the theory covers ``model`` and ``loss``."""
    if reason := reason_not_at_dimension(model, loss):
        raise InvalidArgument("dimension", model.dimension, f"inf here: {reason}")


def _limit(table: Table, alpha: Array, lam: Array) -> Array:
    """Test, training and classification errors in the limit on a ``table``, (3, P)."""
    found = ridge.solve_points(table, alpha, lam)
    field = field_at_nodes(ridge.responses_of(table), found.overlaps)
    return np.array([*found.errors, class_error(table, field.centre, field.variance)])


def _unknown(count: int) -> tuple[Overlaps, Conjugates]:
    """Overlaps and conjugates of points, NaN: of them V1, V2 and m are stored."""
    shapes = (1, 1), (1,), (1,), (1, 1), (1, 1), (1, 1), (1,)
    conjugate = (1, 1), (1,), (1,), (1, 2), (1, 1), (1,)
    overlaps = Overlaps(*(np.full((count, *shape), np.nan) for shape in shapes))
    return overlaps, Conjugates(*(np.full((count, *shape), np.nan) for shape in conjugate))

"""Evaluation: results at the points of a model, solved on larger and larger tables."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers.resources import GivenUp
from solvers.results import Array, Indices, Status

from .overlaps import Conjugates, MeanSquaredErrors, Overlaps

ERRORS = "test_error", "train_error", "loss_error", "train_loss", "classification_error"
ACCOUNT = "converged", "residual", "quadrature_error", "iterations", "nodes", "status"
COLUMNS = "trained_bias", *ERRORS, *ACCOUNT
Nodes = TypeVar("Nodes")  # a table, or another object that has one


class Points(NamedTuple):
    """Solutions at P points, with the residual, the iterations and the status of each.

    Attributes
    ----------
    overlaps, conjugates, errors : Overlaps, Conjugates, Errors
    residual : (P,)
        Residual of (4.1)-(4.4); of all equations, if the points were checked.
    quadrature_error : (P,)
        Infinite unless the points were checked.
    iterations, status : (P,)
        Iterations of the solver of (4.1)-(4.4), and its ``Status``.
    """

    overlaps: Overlaps
    conjugates: Conjugates
    errors: MeanSquaredErrors
    residual: Array
    quadrature_error: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]


class Evaluation:
    """Results of the theory of one model at P points, as arrays over points, for ``Solution``.

    Those named in ``COLUMNS`` have the names of its fields.

    A point is ``converged`` once it is solved on some table.  It is ``open`` until its quadrature
    error is within the tolerance, or it is given up.  Points that are both can be refined.
    ``slope`` is the derivative of the training objective in a common bias, if one is trained.
    ``history`` is that of Anderson's method for the equations of a loss.
    """

    overlaps: Overlaps
    conjugates: Conjugates
    history: Array | None = None

    def __init__(self, count: int) -> None:
        self.open, self.converged = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        self.status = np.full(count, Status.NO_PROGRESS)
        self.residual, self.quadrature_error = np.full((2, count), np.inf)
        self.iterations, self.nodes = np.zeros((2, count), dtype=int)
        self.trained_bias, self.slope = np.zeros((2, count))
        self.test_error, self.train_error, *other_errors = np.full((len(ERRORS), count), np.nan)
        self.loss_error, self.train_loss, self.classification_error = other_errors

    def store(self, rows: Any, **results: Any) -> None:
        """Store results of some points by name: arrays, or records of arrays.

        The arrays are stored themselves where ``rows`` (R,), in increasing order, are all points.
        """
        all_points = np.ndim(rows) == 1 and len(rows) == len(self.open)
        for attribute, result in results.items():
            parts = result if isinstance(result, tuple) else (result,)
            if all_points and (parts is result or isinstance(result, np.ndarray)):
                setattr(self, attribute, result)
                continue
            if getattr(self, attribute, None) is None:  # of a shape that is known only now
                unknown = [np.full((len(self.open), *array.shape[1:]), np.nan) for array in parts]
                setattr(self, attribute, type(result)(*unknown) if parts is result else unknown[0])
            stored = getattr(self, attribute)
            for target, array in zip(stored if parts is result else (stored,), parts, strict=True):
                target[rows] = array

    def overlaps_at(self, rows: Any) -> Overlaps:
        """Copy of the overlaps of some points."""
        return Overlaps(*(overlap[rows] for overlap in self.overlaps))

    def flag(self, rows: Any, status: Any) -> None:
        """Give points up: set a status that says why, and NaN errors."""
        self.open[rows] = self.converged[rows] = False
        self.status[rows] = status
        for error_column in ERRORS:
            getattr(self, error_column)[rows] = np.nan

    def close(self, residual_tol: float, lost: Any = False) -> None:
        """Give up all points that are not within the tolerances, or whose errors are ``lost`` to
        rounding."""
        solved = self.converged & (self.residual <= residual_tol) & ~self.open & ~np.asarray(lost)
        self.status[solved] = Status.CONVERGED
        if solved.all():
            return
        self.status[self.converged & lost] = Status.ROUNDING
        self.status[self.converged & self.open] = Status.QUADRATURE
        self.status[self.converged & ~(self.residual <= residual_tol)] = Status.NO_PROGRESS
        self.flag(~solved, self.status[~solved])


def solve_on_growing_tables(
    evaluation: Evaluation,
    points: Indices,
    solve_on: Callable[[int, Indices, Nodes | None], tuple[Nodes | None, Indices]],
    level: int = 0,
    last: Nodes | None = None,
) -> None:
    """Solve points on larger and larger tables, until no point needs a larger one.

    Parameters
    ----------
    evaluation : Evaluation
        The results, in which points that take too long or too many nodes are flagged.
    points : (R,)
    solve_on : callable (level, points, last table or None) -> table, points
        Solves points on the table of a level, or on an object with one, and stores results in
        ``evaluation``.  Returns the table, and the points that need a larger one: none past the
        last level.  It may raise ``GivenUp`` or ``LinAlgError``.
    level, last : int, table
        Level of the first table, and the table before it.
    """
    while points.size:
        try:
            last, points = solve_on(level, points, last)
        except (GivenUp, np.linalg.LinAlgError) as failure:
            status = failure.status if isinstance(failure, GivenUp) else Status.NOT_FINITE
            if status is not Status.TIME and points.size > 1:  # half of the points need fewer nodes
                for half_points in np.array_split(points, 2):
                    solve_on_growing_tables(evaluation, half_points, solve_on, level, last)
            else:
                evaluation.flag(points[evaluation.open[points]], status)
            return
        level += 1


def relative_change(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    reference_size = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(reference_size > 0, reference_size, 1.0))

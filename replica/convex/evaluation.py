"""Evaluation of the theory of one model at many points: their results, status and refinement."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Array, Indices, Status

from ..equivalence import tables
from ..problem import Model
from ..saddle_point import Conjugates, MeanSquaredErrors, Overlaps, ridge
from .losses import Loss

Table = TypeVar("Table")  # or any other object with nodes
ERRORS = "test_error", "train_error", "loss_error", "train_loss", "classification_error"


class Task(NamedTuple):
    """P points of one model to solve, with ``alpha`` and ``lam`` (P,) and the tolerance ``tol`` of
    the quadrature."""

    model: Model
    loss: Loss
    alpha: Array
    lam: Array
    tol: float = 1e-6

    def select(self, rows: Indices) -> "Task":
        """Task with some of the points."""
        return self._replace(alpha=self.alpha[rows], lam=self.lam[rows])

    def ridge(self) -> ridge.Points:
        """Solutions of ridge regression at these points, on the first of its tables."""
        return ridge.solve_points(next(tables(self.model)), self.alpha, self.lam)


class Evaluation:
    """Results of the theory of one model at P points, as arrays over points, for ``Solution``.

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

    @property
    def columns(self) -> dict[str, Array]:
        """Results of each point, (P,), with the field names of ``Solution`` as keys."""
        account = "converged", "residual", "quadrature_error", "iterations", "nodes", "status"
        names = "trained_bias", *ERRORS, *account
        return dict(zip(names, attrgetter(*names)(self), strict=True))

    def store(self, rows: Any, **results: Any) -> None:
        """Store results of some points by name: arrays, or records of arrays.

        The arrays are stored themselves where ``rows`` (R,), in increasing order, are all points.
        """
        of_all = np.ndim(rows) == 1 and len(rows) == len(self.open)
        for name, value in results.items():
            if of_all and isinstance(value, (tuple, np.ndarray)):
                setattr(self, name, value)
            elif isinstance(value, tuple):
                if not hasattr(self, name):
                    setattr(self, name, type(value)(*map(self._nan_array, value)))
                for target, values in zip(getattr(self, name), value, strict=True):
                    target[rows] = values
            elif value is not None:
                if getattr(self, name) is None:
                    setattr(self, name, self._nan_array(value))
                getattr(self, name)[rows] = value

    def _nan_array(self, template: Array) -> Array:
        """NaN array for all points, with the trailing shape of ``template``."""
        return np.full((len(self.open), *template.shape[1:]), np.nan)

    def overlaps_at(self, rows: Any) -> Overlaps:
        """Copy of the overlaps of some points."""
        return Overlaps(*(part[rows] for part in self.overlaps))

    def points_at(self, rows: Any) -> ridge.Points:
        """Some of the points as the ``Points`` of ridge regression."""
        conjugates = Conjugates(*(part[rows] for part in self.conjugates))
        errors = MeanSquaredErrors(self.test_error[rows], self.train_error[rows])
        account = self.residual, self.quadrature_error, self.iterations, self.status
        account = (column[rows] for column in account)
        return ridge.Points(self.overlaps_at(rows), conjugates, errors, *account)

    def flag(self, rows: Any, status: Any) -> None:
        """Give points up: set a status that says why, and NaN errors."""
        self.open[rows] = self.converged[rows] = False
        self.status[rows] = status
        for name in ERRORS:
            getattr(self, name)[rows] = np.nan

    def close(self, residual_tol: float) -> None:
        """Give up all points that are not within the tolerances."""
        self.flag(self.converged & ~(self.residual <= residual_tol), Status.NO_PROGRESS)
        self.flag(self.converged & self.open, Status.QUADRATURE)
        self.flag(~self.converged, self.status[~self.converged])
        self.status[self.converged] = Status.CONVERGED


def solve_on_growing_tables(
    found: Evaluation,
    rows: Indices,
    table_for: Callable[[int, Indices], Table | None],
    solve_on: Callable[[Table, Indices, Table | None], Indices],
    level: int = 0,
    last: Table | None = None,
) -> None:
    """Solve points on larger and larger tables, until no point needs a larger one.

    Parameters
    ----------
    found : Evaluation
        The results, in which points that take too long or too many nodes are flagged.
    rows : (R,)
    table_for : callable (level, rows) -> table, or an object with one
        None past the last level.  It may raise ``GivenUp``.
    solve_on : callable (table, rows, last table or None) -> rows
        Stores results in ``found`` and returns the points that need a larger table.  It may raise
        ``GivenUp`` or ``LinAlgError``.
    level, last : int, table
        Level of the first table, and the table before it.
    """
    while rows.size:
        try:
            table = table_for(level, rows)
            if table is None:
                return
            rows = solve_on(table, rows, last)
        except (GivenUp, np.linalg.LinAlgError) as error:
            status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            if status is not Status.TIME and rows.size > 1:  # half of the points need fewer nodes
                for half in np.array_split(rows, 2):
                    solve_on_growing_tables(found, half, table_for, solve_on, level, last)
            else:
                found.flag(rows[found.open[rows]], status)
            return
        level, last = level + 1, table

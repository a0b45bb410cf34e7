"""Points of one model to solve, and the loop that solves them on larger and larger tables."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Array, Indices, Status

from ..equivalence import tables
from ..problem import Model
from ..saddle_point import Evaluation, ridge
from .losses import Loss

Table = TypeVar("Table")  # or any other object with nodes


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

"""The theory of one model at many points: what is known of each, and which are refined further."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Array, Rows, Status

from ..equivalence import tables
from ..problem import Model
from ..saddle_point import Conjugates, Errors, Overlaps, ridge
from .label_tables import is_odd
from .losses import Loss

Table = TypeVar("Table")  # or what else knows the nodes
ERRORS = "test_error", "train_error", "loss_error", "train_loss", "classification_error"


class Task(NamedTuple):
    """P points of one model to be solved: ``alpha`` and ``lam`` are arrays (P,), and ``tol`` is the
    tolerance of the quadrature."""

    model: Model
    loss: Loss
    alpha: Array
    lam: Array
    tol: float = 1e-6

    @property
    def folded(self) -> bool:
        """Whether all is the same at opposite kappa, so that half of them will do."""
        return self.loss.symmetric and is_odd(self.model)

    def at(self, rows: Rows) -> "Task":
        """Some of the points."""
        return self._replace(alpha=self.alpha[rows], lam=self.lam[rows])

    def ridge(self) -> ridge.Points:
        """Ridge regression at these points, on the first of its tables."""
        return ridge.solve_points(next(tables(self.model)), self.alpha, self.lam)


class Evaluation:
    """The theory of one model at P points, as arrays over points: what ``Solution`` holds.

    Points are ``converged`` once they are solved on some table, and ``open`` until their quadrature
    error, too, is within the tolerance, or they are given up; those that are both may be refined.
    ``slope`` is that of the training objective in a common bias, where one is trained, and ``past``
    what Anderson's method has seen of the equations of a loss.
    """

    overlaps: Overlaps
    conjugates: Conjugates
    past: Array | None = None

    def __init__(self, count: int) -> None:
        self.open, self.converged = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        self.status = np.full(count, Status.NO_PROGRESS)
        self.residual, self.quadrature_error = np.full((2, count), np.inf)
        self.iterations, self.nodes = np.zeros((2, count), dtype=int)
        self.trained_bias, self.slope = np.zeros((2, count))
        self.test_error, self.train_error, *others = np.full((len(ERRORS), count), np.nan)
        self.loss_error, self.train_loss, self.classification_error = others

    @property
    def columns(self) -> dict[str, Array]:
        """What is known of each point, (P,), by the names that ``Solution`` has for it."""
        account = "converged", "residual", "quadrature_error", "iterations", "nodes", "status"
        names = "trained_bias", *ERRORS, *account
        return dict(zip(names, attrgetter(*names)(self), strict=True))

    def put(self, rows: Any, **known: Any) -> None:
        """Overwrite what is known of some points: arrays, or records of them, by name."""
        for name, value in known.items():
            if isinstance(value, tuple):
                if not hasattr(self, name):
                    setattr(self, name, type(value)(*map(self._empty, value)))
                for into, part in zip(getattr(self, name), value, strict=True):
                    into[rows] = part
            elif value is not None:
                if getattr(self, name) is None:
                    setattr(self, name, self._empty(value))
                getattr(self, name)[rows] = value

    def _empty(self, like: Array) -> Array:
        """Room for numbers of all points that are ``like`` those of some."""
        return np.full((len(self.open), *like.shape[1:]), np.nan)

    def overlaps_at(self, rows: Any) -> Overlaps:
        """Those of some of the points, by a copy."""
        return Overlaps(*(part[rows] for part in self.overlaps))

    def points_at(self, rows: Any) -> ridge.Points:
        """Some of the points as ridge regression has them."""
        conjugates = Conjugates(*(part[rows] for part in self.conjugates))
        errors = Errors(self.test_error[rows], self.train_error[rows])
        account = self.residual[rows], self.iterations[rows], self.status[rows]
        return ridge.Points(self.overlaps_at(rows), conjugates, errors, *account)

    def flag(self, rows: Any, status: Any) -> None:
        """Give points up: they have a status that says why, and no errors."""
        self.open[rows] = self.converged[rows] = False
        self.status[rows] = status
        for name in ERRORS:
            getattr(self, name)[rows] = np.nan

    def close(self, residual_tol: float) -> None:
        """Give up what is not known to the tolerances."""
        self.flag(self.converged & ~(self.residual <= residual_tol), Status.NO_PROGRESS)
        self.flag(self.converged & self.open, Status.QUADRATURE)
        self.flag(~self.converged, self.status[~self.converged])
        self.status[self.converged] = Status.CONVERGED


def on_growing_tables(
    found: Evaluation,
    rows: Rows,
    table_for: Callable[[int, Rows], Table | None],
    solve_on: Callable[[Table, Rows, Table | None], Rows],
    level: int = 0,
    last: Table | None = None,
) -> None:
    """Solve points on larger and larger tables, until none needs another one.

    Parameters
    ----------
    found : Evaluation
        Where points that take too long, or too many nodes, are flagged.
    rows : (R,)
    table_for : callable (level, rows) -> table, or what knows one
        None past the last level; may raise ``GivenUp``.
    solve_on : callable (table, rows, last table or None) -> rows
        Writes what it finds into ``found``, and tells which points go on; may raise ``GivenUp``,
        or find a singular matrix.
    level, last : of the first table, and the one before it.
    """
    while rows.size:
        try:
            table = table_for(level, rows)
            if table is None:
                return
            rows = solve_on(table, rows, last)
        except (GivenUp, np.linalg.LinAlgError) as error:
            status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            if status is not Status.TIME and rows.size > 1:  # fewer share fewer nodes
                for half in np.array_split(rows, 2):
                    on_growing_tables(found, half, table_for, solve_on, level, last)
            else:
                found.flag(rows, status)
            return
        level, last = level + 1, table

"""What attains the bounds on the test error: weighted least squares of h and g on the columns of a
table.  docs/theory.md 8"""

from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.results import Array

from ..equivalence import Table


class Fit(NamedTuple):
    """What attains a bound on a table: ``coefficients`` of its first columns, and psi (A, K')."""

    table: Table
    coefficients: Array
    psi: Array

    def error(self, table: Table | None = None) -> float:
        """The test error by the moments of another table, or of its own.  Eqs. (8.1)-(8.2)"""
        t = self.table if table is None else table
        along = (t.h - self.coefficients @ t.regressors[: len(self.coefficients)]) ** 2
        across = ((t.g - self.psi.T @ t.mu1) ** 2 - t.g**2).sum(axis=0)
        return float(t.weights @ (t.spread + along + across))


def lower_fit(table: Table) -> Fit:
    """The lower bound.  Eq. (8.2)"""
    coefficients = _weighted_fit(table, table.regressors, table.h[None])[0]
    return Fit(table, coefficients, _weighted_fit(table, table.mu1, table.g).T)


def upper_fit(table: Table) -> Fit:
    """The upper bound, without theta and psi.  Eq. (8.1)"""
    m = _weighted_fit(table, table.offsets, table.h[None])[0]
    return Fit(table, m, np.zeros((len(table.mu1), len(table.g))))


def _weighted_fit(table: Table, columns: Array, targets: Array) -> Array:
    """Coefficients (T, n) of ``columns`` (n, N) that fit ``targets`` (T, N) best in L2(kappa)."""
    root = np.sqrt(table.weights)
    design = np.broadcast_to((root * columns).T, (len(targets), root.size, len(columns)))
    return least_squares(design, root * targets)

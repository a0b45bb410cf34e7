"""What attains the bounds on the test error: weighted least squares of the target on what the
output may be made of.  docs/theory.md 8"""

from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import ridge


class Fit(NamedTuple):
    """What attains a bound on a table: m (F,), and the overlaps with special directions
    (A, K + K')."""

    table: Table
    m: Array
    special: Array

    def error(self, table: Table | None = None) -> float:
        """The test error by the moments of another table, or of its own.  Eqs. (8.1)-(8.2)"""
        t = self.table if table is None else table
        error = ridge.conditional_error(t, self.m[None], self.special[None])[0]
        return float(t.weights @ error - t.noise)


def lower_fit(table: Table) -> Fit:
    """The lower bound.  Eq. (8.2)"""
    m, special = np.split(_weighted_fit(table, table.regressors), [len(table.offsets)])
    return Fit(table, m, special.reshape(len(table.mu1), -1))


def upper_fit(table: Table) -> Fit:
    """The upper bound, without theta and psi.  Eq. (8.1)"""
    m, special = np.split(table.regressors, [len(table.offsets)])
    none = np.zeros(len(special)).reshape(len(table.mu1), -1)
    return Fit(table, _weighted_fit(table, m), none)


def _weighted_fit(table: Table, columns: Array) -> Array:
    """Coefficients (n,) of ``columns`` (n, (1 + K') N) that fit the target best."""
    root = np.sqrt(table.on_parts(table.weights))
    return least_squares((root * columns).T[None], (root * table.seen)[None])[0]

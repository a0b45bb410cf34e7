"""Responses of one group of neurons by the compiled core.  docs/theory.md 5, 16"""

import numpy as np

from solvers.results import Array, Result

from . import one_group
from .correlated import CorrelatedGroup
from .isotropic import Isotropic
from .responses import Responses


class _Compiled(Responses):
    """Responses of one group at real arguments: packed vectors are pairs (V1, V2)."""

    def solve(self, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
        """Solve (4.1)-(4.4) for V at every point, from no guess, to RESPONSE_TOLERANCE."""
        V = np.ones((len(alpha), 2))
        found = one_group.run(self.table, one_group.SOLVE, alpha, lam, V, V, V)
        residual, iterations, status = found[:, 2:].T
        statuses = one_group.STATUSES[status.astype(np.int64)]
        return Result(found[:, :2], residual, iterations.astype(np.int64), statuses)

    def from_conjugates(self, V_hat: Array, lam: Array, guess: Array | None = None) -> Array:
        """Responses (V1, V2) from their conjugates, near the guess.  Eqs. (5.3), (16.6)"""
        assert guess is not None
        task = one_group.IMAGE
        return one_group.run(self.table, task, lam, lam, guess, V_hat, V_hat)[:, :2]

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """Second moments (Q1, q2) of the readout at fixed conjugates.  Eqs. (5.3), (15.8)"""
        task = one_group.SECOND_MOMENTS
        return one_group.run(self.table, task, lam, lam, guess, V_hat, X)[:, :2]

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Second moments (Q1, q2) of the readout for sources that do not contain Q.  Eq. (4.10)"""
        task = one_group.NEWTON
        return one_group.run(self.table, task, alpha, lam, V, V, X)[:, 2:4]

    def newton_distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's step from V (P, 2) relative to V."""
        task = one_group.NEWTON
        return one_group.run(self.table, task, alpha, lam, V, V, V)[:, :2]


class CompiledIsotropic(_Compiled, Isotropic):
    """Compiled responses of isotropic rows."""


class CompiledCorrelated(_Compiled, CorrelatedGroup):
    """Compiled responses of a network's tabulated rows."""

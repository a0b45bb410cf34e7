"""The row covariances of groups of neurons with several readout values.  docs/theory.md 15"""

from dataclasses import dataclass

import numpy as np

from solvers.results import Array

from .row_covariance import RowCovariance
from .spectral_rule import spectral_rule


@dataclass(frozen=True, eq=False)
class GroupCovariance:
    """C_b = 1 + a_b^2 b B of A groups, on L levels of B.

    Attributes
    ----------
    levels : (L, A)
        C_b at each level.
    weights : (L,)
        Of the trace over d.
    pairs : (L, 3, 3)
        Between the vectors u, zeta and (1/n0) sum y^3 x.
    k : (A, 3)
        d times the covariance of a neuron's squared norm with its row, in these vectors.
    v : (A,)
        d times the variance of the squared norm.
    """

    levels: Array
    weights: Array
    pairs: Array
    k: Array
    v: Array

    @property
    def largest(self) -> Array:
        """The largest eigenvalue of every C_b, (A,)."""
        return np.asarray(self.levels.max(axis=0))


def group_covariance(unit: RowCovariance, readouts: Array) -> GroupCovariance:
    """The covariances of groups with first-step readouts (A,), from that of readout 1."""
    rule = spectral_rule(unit, float((readouts**2).max()))
    turn = unit.basis[[0, 2, 1]]  # u, zeta and the third vector
    y, (w, ws, _) = unit.batch.y, unit.batch.weights
    # (1/n0) sum y x = (E y s) w_* + (its noise) = N u
    N = np.sqrt((ws @ y) ** 2 + w @ y**2 / unit.alpha0)
    k = np.zeros((readouts.size, 3))
    k[:, 0] = unit.k[0] * N * readouts
    k[:, 2] = unit.k[1] * readouts**3
    return GroupCovariance(
        1 + readouts**2 * unit.b * rule.levels[:, None],
        rule.weights,
        turn @ rule.pairs @ turn.T,
        k,
        unit.v_even * readouts**4 + unit.v_odd * readouts**2,
    )

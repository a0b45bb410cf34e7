"""The row covariances of groups of neurons with several readout values.  docs/theory.md 15

Groups of readout a_b have C_b = 1 + a_b^2 b B: they commute, and all that the equations ask of
B are integrals of 1/(1 + t l), 0 <= t <= t_max, over its spectral measures: of the trace, and
between any two of the vectors w_*, the noise in (1/n0) sum y x, and (1/n0) sum y^3 x.  These
are smooth functions of log(1 + t_max l), so that a few tens of Chebyshev points in it, the levels,
stand for any measure; their weights are fitted to these transforms and to those of l/(1 + t l),
which ``row_covariance`` knows.
The fit is badly conditioned for the weights, not for what they are used for.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial.chebyshev import chebpts1

from solvers.quadrature import QuadratureError
from solvers.results import Array

from .row_covariance import RowCovariance

SIZES = (16, 24, 36, 54, 80, 120)  # levels that are tried
ACCURACY = 1e-12  # of every transform, relative to its own size at every t


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
    """The covariances of groups with first-step readouts (A,), from that of readout 1.

    Raises
    ------
    QuadratureError
        If no number of levels stands for the spectrum.
    """
    levels, weights, pairs = _fitted_levels(unit, float((readouts**2).max()))
    turn = unit.basis[[0, 2, 1]]  # u, zeta and the third vector
    y, (w, ws, _) = unit.batch.y, unit.batch.weights
    # (1/n0) sum y x = (E y s) w_* + (its noise) = N u
    N = np.sqrt((ws @ y) ** 2 + w @ y**2 / unit.alpha0)
    k = np.zeros((readouts.size, 3))
    k[:, 0] = unit.k[0] * N * readouts
    k[:, 2] = unit.k[1] * readouts**3
    return GroupCovariance(
        1 + readouts**2 * unit.b * levels[:, None],
        weights,
        turn @ pairs @ turn.T,
        k,
        unit.v_even * readouts**4 + unit.v_odd * readouts**2,
    )


@lru_cache(maxsize=64)
def _fitted_levels(unit: RowCovariance, largest: float) -> tuple[Array, Array, Array]:
    """Levels of B (L,), weights of the trace (L,), and (L, 3, 3) between w_*, the noise in
    (1/n0) sum y x and (1/n0) sum y^3 x, good for readouts up to a^2 = ``largest``."""
    of = replace(unit, b=unit.b * largest, k=np.array([0.0, 1.0]))
    reach = np.log1p(of.b * of.widest)
    if reach < 1e-11:  # C = 1: the vectors' own products are all there is
        return np.zeros(1), np.ones(1), of.resolvent(np.zeros(1), np.ones(1)).R
    for size in SIZES:
        levels = np.expm1(reach * np.append((chebpts1(size) + 1) / 2, [0.0])) / of.b
        # at C_e p from c, where t = 0, to almost 0, where t = b
        t, T, BT = _transforms(of, of.c * (1 + np.cos(np.linspace(0, np.pi, 3 * size)))[:-1] / 2)
        matrix = 1 / (1 + t[:, None] * levels)
        matrix = np.concatenate([matrix, matrix * levels])
        weights, error = np.zeros((levels.size, 4, 4)), 0.0
        for i, j in [(0, 0), *combinations_with_replacement((1, 2, 3), 2)]:
            target = np.concatenate([T[:, i, j], BT[:, i, j]])
            scale = np.concatenate([np.sqrt(S[:, i, i] * S[:, j, j]) for S in (T, BT)])
            if scale.any():  # else the vector is 0
                weights[:, i, j], off = _fit(matrix / scale[:, None], target / scale)
                weights[:, j, i], error = weights[:, i, j], max(error, off)
        # B T comes from C T - T, to rounding over b; and enters with b
        if error <= max(ACCURACY, 1e-14 / of.b):
            return levels, weights[:, 0, 0], weights[:, 1:, 1:]
    raise QuadratureError("the spectrum of the first batch is too wide to be represented")


def _transforms(of: RowCovariance, ratio: Array) -> tuple[Array, Array, Array]:
    """t (S,) where C_e p is ``ratio`` and, of the trace and between the vectors, as the diagonal
    blocks of (S, 4, 4): the transforms T = (1 + tB)^-1 and the moments B T."""
    x, C = of.at_ratio(ratio)
    p = ratio / C
    kappa = p + x
    r = of.resolvent(x, p)
    T, BT = np.zeros((2, ratio.size, 4, 4))
    T[:, 0, 0], BT[:, 0, 0] = kappa, kappa * (C - 1) / of.b
    T[:, 1:, 1:] = r.R * (kappa / p)[:, None, None]
    BT[:, 1:, 1:] = (r.CR - r.R) * (kappa / p / of.b)[:, None, None]
    return of.b * x / kappa, T, BT


def _fit(matrix: Array, target: Array) -> tuple[Array, float]:
    """Weights with ``matrix`` @ weights = ``target``, and the largest error that is left."""
    unit = np.linalg.norm(matrix, axis=0)
    weights = np.linalg.lstsq(matrix / unit, target, rcond=1e-16)[0] / unit
    return weights, float(np.abs(matrix @ weights - target).max())

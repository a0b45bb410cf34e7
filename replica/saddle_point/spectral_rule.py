"""Levels that stand for the spectrum of B, for groups of several readout values.  docs/theory.md 15

Groups of readout a_b have C_b = 1 + a_b^2 b B: they commute, and all that the equations ask of
B are integrals of 1/(1 + t l), 0 <= t <= t_max, over its spectral measures: of the trace, and
between any two of the vectors w_*, the noise in (1/n0) sum y x, and (1/n0) sum y^3 x.  These
are smooth functions of log(1 + t_max l), so that a few tens of Chebyshev points in it stand
for any measure; their weights are fitted to these transforms and to those of l/(1 + t l), which
``row_covariance`` knows.
The fit is badly conditioned for the weights, not for what they are used for.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1

from solvers.quadrature import QuadratureError
from solvers.results import Array

from .row_covariance import RowCovariance

SIZES = (16, 24, 36, 54, 80, 120)
ACCURACY = 1e-12  # of every transform, relative to its own size at every t


class SpectralRule(NamedTuple):
    """Levels l (L,) of B, weights (L,) of the trace, and (L, 3, 3) between the vectors."""

    levels: Array
    weights: Array
    pairs: Array


@lru_cache(maxsize=64)
def spectral_rule(of: RowCovariance, largest: float) -> SpectralRule:
    """Levels good for groups of readouts up to a^2 = ``largest``.

    Raises
    ------
    QuadratureError
        If the transforms are not met.
    """
    scaled = replace(of, b=of.b * largest, k=np.array([0.0, 1.0]))
    edge = of.widest
    if scaled.b * edge < 1e-11:  # C = 1: the vectors' own products are all there is
        return SpectralRule(np.zeros(1), np.ones(1), scaled.resolvent(np.zeros(1), np.ones(1)).R)
    reach = np.log1p(scaled.b * edge)
    for size in SIZES:
        levels = np.expm1(reach * np.append((chebpts1(size) + 1) / 2, [0.0])) / scaled.b
        # at shares x C_e from 0 to almost 1, where t = b
        share = (1 - np.cos(np.linspace(0, np.pi, 3 * size)))[:-1] / 2
        t, transforms, moments = _transforms(scaled, share)
        matrix = 1 / (1 + t[:, None] * levels)
        fits = [
            _fit(np.concatenate([matrix, matrix * levels]), *target)
            for target in _targets(transforms, moments)
        ]
        # B T comes from C T - T, to rounding over b; and enters with b
        if max(error for _, error in fits) <= max(ACCURACY, 1e-14 / scaled.b):
            break
    else:
        raise QuadratureError("the spectrum of the first batch is too wide to be represented")
    fitted = np.stack([weights for weights, _ in fits], axis=1)
    upper = np.triu_indices(3)
    pairs = np.empty((levels.size, 3, 3))
    pairs[:, *upper] = fitted[:, 1:]
    pairs[:, upper[1], upper[0]] = fitted[:, 1:]
    return SpectralRule(levels, fitted[:, 0], pairs)


def _transforms(of: RowCovariance, share: Array) -> tuple[Array, Array, Array]:
    """t (S,) and, of the trace and between the vectors, as the diagonal blocks of (S, 4, 4): the
    transforms T = (1 + tB)^-1 and the moments B T."""
    x = of.at_share(share)
    C = of.effective(x)[0]
    p = 1 - x * C
    kappa = p + x
    r = of.resolvent(x, p)
    T, BT = np.zeros((2, share.size, 4, 4))
    T[:, 0, 0], BT[:, 0, 0] = kappa, kappa * (C - 1) / of.b
    T[:, 1:, 1:] = r.R * (kappa / p)[:, None, None]
    BT[:, 1:, 1:] = (r.CR - r.R) * (kappa / p / of.b)[:, None, None]
    return of.b * x / kappa, T, BT


def _targets(T: Array, BT: Array) -> Iterator[tuple[Array, Array]]:
    """Values to fit and their sizes, T then BT, of the trace and of each pair of vectors."""
    vectors = [(i, j) for i in (1, 2, 3) for j in range(i, 4)]
    for i, j in [(0, 0), *vectors]:
        sizes = [np.sqrt(part[:, i, i] * part[:, j, j]) for part in (T, BT)]
        yield np.concatenate([T[:, i, j], BT[:, i, j]]), np.concatenate(sizes)


def _fit(matrix: Array, values: Array, size: Array) -> tuple[Array, float]:
    """Weights of the levels, and the largest error relative to ``size``."""
    if not size.any():
        return np.zeros(matrix.shape[1]), 0.0
    rows, target = matrix / size[:, None], values / size
    unit = np.linalg.norm(rows, axis=0)
    weights = np.linalg.lstsq(rows / unit, target, rcond=1e-16)[0] / unit
    return weights, float(np.abs(rows @ weights - target).max())

"""Levels that stand for the spectrum of B, for groups of several readout values.  THEORY 15

Groups of readout a_b have C_b = 1 + a_b^2 b B: they commute, and all that the equations ask of
B are integrals of 1/(1 + t l), 0 <= t <= t_max, over its spectral measures: of the trace, and
between any two of the vectors w_*, the noise in (1/n0) sum y x, and (1/n0) sum y^3 x.  These
are smooth functions of log(1 + t_max l), so that a few tens of Chebyshev points in it stand
for any measure; their weights are fitted to the transforms, which ``row_covariance`` knows.
The fit is badly conditioned for the weights, not for what they are used for.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1

from solvers.quadrature import QuadratureError
from solvers.results import Array

from .row_covariance import RowCovariance

SIZES = (16, 24, 36, 54, 80)
ACCURACY = 1e-12  # of the transforms, relative to the whole measure


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
    if scaled.b == 0:  # C = 1: the vectors' own products are all there is
        return SpectralRule(np.zeros(1), np.ones(1), scaled.resolvent(np.zeros(1), np.ones(1)).R)
    # B has no eigenvalue above this
    edge = float(scaled.batch.y.max() ** 2) * (1 + of.alpha0**-0.5) ** 2
    reach = np.log1p(scaled.b * edge)
    for size in SIZES:
        levels = np.expm1(reach * np.append((chebpts1(size) + 1) / 2, [0.0])) / scaled.b
        # the transforms at shares x C_e of 0 to almost 1, and 1 <-> t = b
        share = (1 - np.cos(np.linspace(0, np.pi, 3 * size)))[:-1] / 2
        x = scaled.at_share(share)
        p = 1 - x * scaled.effective(x)[0]
        kappa = p + x
        t = scaled.b * x / kappa
        T = scaled.resolvent(x, p).R * (kappa / p)[:, None, None]
        upper = np.triu_indices(3)
        values = np.column_stack([kappa, T[:, *upper]])
        matrix = 1 / (1 + t[:, None] * levels)
        scale = np.abs(values).max(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        fitted = np.linalg.lstsq(matrix, values / scale, rcond=1e-15)[0]
        if np.abs(matrix @ fitted - values / scale).max() <= ACCURACY:
            break
    else:
        raise QuadratureError("the spectrum of the first batch is too wide to be represented")
    fitted *= scale
    pairs = np.empty((levels.size, 3, 3))
    pairs[:, *upper] = fitted[:, 1:]
    pairs[:, upper[1], upper[0]] = fitted[:, 1:]
    return SpectralRule(levels, fitted[:, 0], pairs)

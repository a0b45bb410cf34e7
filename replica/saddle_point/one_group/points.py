"""All points of a table of one group, by Python or compiled.

A few points take Python itself less time than numba takes to be imported: they are compiled once
there has been more to do than ``WORTHWHILE``, or never where there is no numba.
"""

from functools import cache
from typing import Any

import numpy as np

from solvers.chebyshev import HalfLine
from solvers.results import Array, Status

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compiled, together
from .readout import readout
from .responses import NOT_FINITE, responses
from .violation import violation

STATUSES = np.array(
    [Status.CONVERGED, Status.NO_PROGRESS, Status.NOT_FINITE, Status.ITERATION_LIMIT]
)

# Points times nodes that Python does itself, 70 microseconds each, and of several directions numpy,
# 1.5: in all as long as numba takes to be imported and to load what it has compiled before.
WORTHWHILE, WORTHWHILE_OF_SEVERAL = 2**13, 2**19

work, work_of_several = [0], [0]  # points times nodes so far


@cache
def kernel() -> Any:
    """``solve`` compiled; itself where there is no numba."""
    return together(solve, OneGroup, SpecialDirections, HalfLine)


def worthwhile(points: int) -> bool:
    """Whether so many points times nodes of several directions are for this module: numpy is
    faster, until there has been as much to do as makes up for compiling."""
    work_of_several[0] += points
    return work_of_several[0] > WORTHWHILE_OF_SEVERAL and kernel() is not solve


def solved(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """What ``solve`` finds, by Python or, from some work on, compiled; of points that Python cannot
    do (it raises where a compiled division by 0 is infinite) without numba, NaN and its status."""
    work[0] += alpha.size * len(fine.weights)
    if work[0] <= WORTHWHILE or kernel() is solve:
        try:
            with np.errstate(all="ignore"):  # numpy warns where the functions are not compiled
                return solve(fine, coarse, alpha, lam, checked)
        except (ArithmeticError, ValueError):
            if kernel() is solve and alpha.size > 1:
                each = [slice(i, i + 1) for i in range(alpha.size)]
                parts = [solved(fine, coarse, alpha[i], lam[i], checked) for i in each]
                return np.concatenate(parts, axis=1)
            if kernel() is solve:
                unknown = np.full((22, 1), np.nan)
                unknown[13] = NOT_FINITE
                return unknown
    try:
        return kernel()(fine, coarse, alpha, lam, checked)
    except OSError:
        pass  # numba could not keep on the disk what it has compiled: it has it in memory
    except Exception:  # what it has kept is damaged: reading that may raise anything
        kernel()._cache.flush()
    return kernel()(fine, coarse, alpha, lam, checked)


@compiled
def solve(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """The points (alpha[i], lam[i]) on the table ``fine``, (16 + 2n, P) with n special directions:
    the first numbers of ``Point``; the largest relative violation of any equation on ``fine`` and
    on ``coarse``, both NaN unless checked; evaluations and status; and the parts of ``Signal``."""
    n = directions(fine.several)
    out = np.empty((16 + 2 * n, alpha.size))
    for i in range(alpha.size):
        W1, V2, iterations, status = responses(fine, alpha[i], lam[i])
        point = readout(fine, fine.one_spike, fine.several, alpha[i], lam[i], W1, V2)
        residual = error = np.nan
        if checked:
            residual = violation(fine, fine.one_spike, fine.several, alpha[i], lam[i], point)
            error = violation(coarse, coarse.one_spike, coarse.several, alpha[i], lam[i], point)
        for k, number in enumerate(point[:10]):
            out[k, i] = number
        out[10, i], out[11, i], out[12, i], out[13, i] = residual, error, iterations, status
        out[14, i], out[15, i] = point.signal.m, point.signal.m_hat
        for k in range(n):
            out[16 + k, i] = point.signal.special[k]
            out[16 + n + k, i] = point.signal.special_hat[k]
    return out


@compiled
def directions(several: SpecialDirections | None) -> int:
    """How many special directions there are: the spike, the norms and zeta, unless several."""
    return 3 if several is None else len(several.loadings)

"""Solution of many points of a table of one group, interpreted or compiled.

For a few points Python is faster than the import of numba.  The kernel is compiled once the total
work exceeds ``WORTHWHILE``, or never without numba.
"""

from functools import cache
from typing import Any

import numpy as np

from solvers.chebyshev import HalfLine
from solvers.results import Array, Status

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compile_together, compiled
from .readout import readout
from .responses import NOT_FINITE, responses
from .violation import violation

STATUSES = np.array(
    [Status.CONVERGED, Status.NO_PROGRESS, Status.NOT_FINITE, Status.ITERATION_LIMIT]
)

# Points times nodes that are not compiled, at 70 microseconds each in Python and, with several
# directions, 1.5 in numpy: in all as long as numba's import and the loading of a cached kernel.
WORTHWHILE, WORTHWHILE_OF_SEVERAL = 2**13, 2**19

work, work_of_several = [0], [0]  # points times nodes so far


@cache
def kernel() -> Any:
    """Compiled ``solve``, or ``solve`` itself without numba."""
    return compile_together(solve, OneGroup, SpecialDirections, HalfLine)


def worth_compiling(points: int) -> bool:
    """Whether this module should solve so many points times nodes with several directions.

    Otherwise numpy's general code is faster, until the total work makes up for compiling.
    """
    work_of_several[0] += points
    return work_of_several[0] > WORTHWHILE_OF_SEVERAL and kernel() is not solve


def solve_all(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """Results of ``solve``, interpreted or, from some total work on, compiled.

    Python raises an error where a compiled division by 0 is infinite.  Without numba such points
    have NaN and the status NOT_FINITE.
    """
    work[0] += alpha.size * len(fine.weights)
    if work[0] <= WORTHWHILE or kernel() is solve:
        try:
            with np.errstate(all="ignore"):  # numpy warns in interpreted functions
                return solve(fine, coarse, alpha, lam, checked)
        except (ArithmeticError, ValueError):
            if kernel() is solve and alpha.size > 1:
                each = [slice(i, i + 1) for i in range(alpha.size)]
                parts = [solve_all(fine, coarse, alpha[i], lam[i], checked) for i in each]
                return np.concatenate(parts, axis=1)
            if kernel() is solve:
                unknown = np.full((22, 1), np.nan)
                unknown[13] = NOT_FINITE
                return unknown
    try:
        return kernel()(fine, coarse, alpha, lam, checked)
    except OSError:
        pass  # numba could not write its cache: the function is in memory
    except Exception:  # a damaged cache: reading it may raise anything
        kernel()._cache.flush()
    return kernel()(fine, coarse, alpha, lam, checked)


@compiled
def solve(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """Solve the points (alpha[i], lam[i]) on the table ``fine``; (16 + 2n, P) with n special
    directions.

    The rows are: the first numbers of ``Point``; the largest relative violation of any equation on
    ``fine`` and on ``coarse``, both NaN unless ``checked``; evaluations and status; and the parts
    of ``Signal``.
    """
    n = direction_count(fine.several)
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
def direction_count(several: SpecialDirections | None) -> int:
    """Number of special directions: the spike, the norms and zeta, unless ``several``."""
    return 3 if several is None else len(several.loadings)

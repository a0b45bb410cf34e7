"""Compiled equations of the responses at many points, and when they are compiled."""

from functools import cache, partial
from typing import Any

import numpy as np

from solvers.chebyshev import HalfLine
from solvers.results import Array, Status

from ...equivalence import Table
from .compilation import compile_together, compiled
from .records import OneGroup
from .responses import from_conjugates, newton_step, responses, second_moments

STATUSES = np.array(
    [Status.CONVERGED, Status.NO_PROGRESS, Status.NOT_FINITE, Status.ITERATION_LIMIT]
)
SOLVE, IMAGE, SECOND_MOMENTS, NEWTON = range(4)

# Calls after which a process loads the core.  Importing numba and loading the cached kernel takes
# 1.4 s, which the core saves in 200 calls for a point each, or for 60 000 points at once.
CALLS_BEFORE_CORE, POINTS_PER_CALL = 200, 300
solved = [0.0]  # calls for one group so far, and their points over POINTS_PER_CALL


@cache
def kernel() -> Any:
    """Compiled ``solve_task``; None without numba."""
    found = compile_together(solve_task, OneGroup, HalfLine)
    return None if found is solve_task else found


def run(
    table: Table, task: int, alpha: Array, lam: Array, V: Array, V_hat: Array, X: Array
) -> Array:
    """Results of the compiled ``solve_task``, whatever the state of its cache on disk."""
    (a, b), c, rows = table.response_products, float(table.c[0]), table.covariance
    tabulated = None if rows is None else rows.table
    group = OneGroup(table.weights, a, b, c, float(table.beta), tabulated)
    # of one type and layout, as numba would compile others anew
    same_type = partial(np.ascontiguousarray, dtype=float)
    arrays = tuple(map(same_type, (alpha, lam, V, V_hat, X)))
    try:
        return np.asarray(kernel()(group, task, *arrays))
    except OSError:
        pass  # numba could not write its cache: the function is in memory
    except Exception:  # a damaged cache: reading it may raise anything
        kernel()._cache.flush()
    return np.asarray(kernel()(group, task, *arrays))


@compiled
def solve_task(
    t: OneGroup, task: int, alpha: Array, lam: Array, V: Array, V_hat: Array, X: Array
) -> Array:
    """Results (P, 5) of one of four tasks at points with alpha, lam (P,) and V, V_hat, X (P, 2).

    SOLVE: V1, V2, residual, evaluations and status.  IMAGE: (V1, V2) from V_hat, at V.
    SECOND_MOMENTS: (Q1, q2) from V_hat and X, at V.  NEWTON: the relative step from V, and (Q1, q2)
    from X with V_hat of (4.2).
    """
    out = np.zeros((len(alpha), 5))
    for i in range(len(alpha)):
        V1, V2, V1_hat, level = V[i, 0], V[i, 1], V_hat[i, 0], lam[i] + V_hat[i, 1]
        if task == SOLVE:
            out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = responses(t, alpha[i], lam[i])
        elif task == IMAGE:
            out[i, 0], out[i, 1] = from_conjugates(t, V2, V1_hat, level)
        elif task == SECOND_MOMENTS:
            out[i, 0], out[i, 1] = second_moments(t, V2, V1_hat, level, X[i, 0], X[i, 1])
        else:
            step, Q = newton_step(t, alpha[i], lam[i], V1, V2, X[i, 0], X[i, 1])
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = step[0], step[1], Q[0], Q[1]
    return out

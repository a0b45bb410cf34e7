"""Ridge regression as papers iterate it: all unknowns together, with damping 1/2.
docs/theory.md 4

Each step is half a ``sweep``, which need not converge: near alpha = beta and small lambda it takes
1/sqrt(lambda) steps, and for some ordinary parameters it diverges.  What it ends with is checked
like any other solution.  ``ridge`` solves the same equations at once.
"""

from functools import partial

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Rows

from ..equivalence import Table
from .local_field import Field, Scores, errors_of_ridge, scores_of_ridge
from .overlaps import Conjugates, Overlaps
from .responses import Susceptibility
from .ridge import Points, responses_of
from .signal import Signal, ridge_signal
from .sweep import sweep

MOST_SWEEPS = 5000  # a few times what ordinary parameters take; some seconds of a point


def solve_damped(table: Table, alpha: Array, lam: Array) -> Points:
    """The points (alpha, lam), arrays of shape (P,)."""
    responses, score = responses_of(table), partial(scores_of_ridge, table)
    A, K = table.loadings.shape[:2]
    unit, one = np.eye(A), np.ones(A)
    m, theta, psi = (
        np.full(shape, 0.1) for shape in (len(table.offsets), (A, K), (A, len(table.g)))
    )
    first = Overlaps(unit, one, m, theta, psi, unit, one)  # of every point
    ends = np.cumsum([part.size for part in first])[:-1]

    def unpack(x: Array) -> Overlaps:
        each = zip(np.split(x, ends, axis=1), first, strict=True)
        return Overlaps(*(part.reshape(len(x), *like.shape) for part, like in each))

    def image(x: Array, rows: Rows) -> tuple[Overlaps, Conjugates, Scores]:
        def signal(s: Scores, _: Field, V2: Array, M: Susceptibility) -> Signal:
            return ridge_signal(table, s.slope * table.weights, alpha[rows], V2, M)

        return sweep(responses, alpha[rows], lam[rows], unpack(x), score, signal)

    def damped(x: Array, rows: Rows) -> Array:
        after = [part.reshape(len(x), -1) for part in image(x, rows)[0]]
        return x / 2 + np.concatenate(after, axis=1) / 2

    def size(x: Array) -> Array:
        """Such that what a damped step changes is, relative to it, the undamped residual."""
        return np.maximum(np.abs(x), 1e-3 * may_vanish) / 2

    flat = np.concatenate([part.ravel() for part in first])
    start = np.tile(flat, (len(alpha), 1))
    may_vanish = flat < 1  # m, theta and psi, whose unit is 1, and what is between two groups
    with np.errstate(all="ignore"):  # rows that diverge are flagged
        found = fixed_point(damped, start, tol=1e-12, size=size, max_iterations=MOST_SWEEPS)
        _, conjugates, s = image(found.value, np.arange(len(alpha)))
        errors = errors_of_ridge(table, s)
    account = found.residual, found.iterations, found.status
    return Points(unpack(found.value), conjugates, errors, *account)

"""Damped iteration for ridge regression: all unknowns together, with damping 1/2, as in papers.
docs/theory.md 4

Each step is half a ``one_pass``, which need not converge: near alpha = beta and small lambda it
takes 1/sqrt(lambda) steps, and for some ordinary parameters it diverges.  Its result is checked
like any other solution.  ``ridge`` solves the same equations directly.
"""

from functools import partial

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Indices

from ..equivalence import Table
from .one_pass import one_pass
from .overlaps import Conjugates, Field, Overlaps, Scores, ridge_errors, ridge_scores
from .responses import Susceptibility
from .ridge import Points, Signal, responses_of, ridge_signal

MOST_SWEEPS = 5000  # a few times what ordinary parameters take; some seconds for a point


def solve_damped(table: Table, alpha: Array, lam: Array) -> Points:
    """Ridge regression at the points (alpha, lam), arrays (P,), by damped iteration."""
    responses, score = responses_of(table), partial(ridge_scores, table)
    A, K = table.loadings.shape[:2]
    unit, ones = np.eye(A), np.ones(A)
    m, theta, psi = (
        np.full(shape, 0.1) for shape in (len(table.offsets), (A, K), (A, len(table.g)))
    )
    initial = Overlaps(unit, ones, m, theta, psi, unit, ones)  # for every point
    ends = np.cumsum([array.size for array in initial])[:-1]

    def unpack(x: Array) -> Overlaps:
        pairs = zip(np.split(x, ends, axis=1), initial, strict=True)
        return Overlaps(*(array.reshape(len(x), *template.shape) for array, template in pairs))

    def image(x: Array, rows: Indices) -> tuple[Overlaps, Conjugates, Scores]:
        def signal(s: Scores, _: Field, M: Susceptibility) -> Signal:
            return ridge_signal(table, s.slope, M)

        return one_pass(responses, alpha[rows], lam[rows], unpack(x), score, signal)

    def damped(x: Array, rows: Indices) -> Array:
        updated = [array.reshape(len(x), -1) for array in image(x, rows)[0]]
        return x / 2 + np.concatenate(updated, axis=1) / 2

    def size(x: Array) -> Array:
        """Half the unit of each unknown, so that half a step over it is the undamped residual."""
        return np.maximum(np.abs(x), 1e-3 * may_vanish) / 2

    flat = np.concatenate([array.ravel() for array in initial])
    start = np.tile(flat, (len(alpha), 1))
    may_vanish = flat < 1  # m, theta and psi, whose unit is 1, and entries between two groups
    with np.errstate(all="ignore"):  # rows that diverge are flagged
        found = fixed_point(damped, start, tol=1e-12, size=size, max_iterations=MOST_SWEEPS)
        _, conjugates, s = image(found.value, np.arange(len(alpha)))
        errors = ridge_errors(table, s)
    unchecked = np.full(len(alpha), np.inf)
    account = found.residual, unchecked, found.iterations, found.status
    return Points(unpack(found.value), conjugates, errors, *account)

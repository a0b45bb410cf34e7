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
    unit_matrix, ones = np.eye(A), np.ones(A)
    m, theta, psi = (
        np.full(shape, 0.1) for shape in (len(table.offsets), (A, K), (A, len(table.g)))
    )
    initial = Overlaps(unit_matrix, ones, m, theta, psi, unit_matrix, ones)  # for every point
    overlap_ends = np.cumsum([overlap.size for overlap in initial])[:-1]

    def unpack_overlaps(x: Array) -> Overlaps:
        pairs = zip(np.split(x, overlap_ends, axis=1), initial, strict=True)
        return Overlaps(*(overlap.reshape(len(x), *template.shape) for overlap, template in pairs))

    def pass_image(x: Array, rows: Indices) -> tuple[Overlaps, Conjugates, Scores]:
        def signal(pass_scores: Scores, _: Field, M: Susceptibility) -> Signal:
            return ridge_signal(table, pass_scores.slope, M)

        return one_pass(responses, alpha[rows], lam[rows], unpack_overlaps(x), score, signal)

    def damped(x: Array, rows: Indices) -> Array:
        passed_arrays = [overlap.reshape(len(x), -1) for overlap in pass_image(x, rows)[0]]
        return x / 2 + np.concatenate(passed_arrays, axis=1) / 2

    def size(x: Array) -> Array:
        """Half the unit of each unknown, so that half a step over it is the undamped residual."""
        return np.maximum(np.abs(x), 1e-3 * may_vanish) / 2

    flat = np.concatenate([overlap.ravel() for overlap in initial])
    start = np.tile(flat, (len(alpha), 1))
    may_vanish = flat < 1  # m, theta and psi, whose unit is 1, and entries between two groups
    with np.errstate(all="ignore"):  # rows that diverge are flagged
        damped_result = fixed_point(damped, start, tol=1e-12, size=size, max_iterations=MOST_SWEEPS)
        _, conjugates, pass_scores = pass_image(damped_result.value, np.arange(len(alpha)))
        errors = ridge_errors(table, pass_scores)
    unchecked = np.full(len(alpha), np.inf)
    account = damped_result.residual, unchecked, damped_result.iterations, damped_result.status
    return Points(unpack_overlaps(damped_result.value), conjugates, errors, *account)

"""A pass of the saddle point: every unknown from its own equation.  docs/theory.md 4, 6

The loss enters through its score s alone, averaged given kappa: of the square, it is
(y - omega) / (1 + V).  Iterated, the pass solves a convex loss, and, damped, ridge regression as
papers do.  ``ridge.residual`` has the same equations for the square, where no score is needed.

Each step of the damped iteration is half a pass.  It need not converge: near alpha = beta and small
lambda it takes 1/sqrt(lambda) steps, and for some ordinary parameters it diverges.  Its result is
checked like any other solution.  ``ridge`` solves the same equations directly.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Indices

from ..equivalence import Table
from .evaluation import Points
from .overlaps import (
    Conjugates,
    Field,
    Overlaps,
    Scores,
    field_at_nodes,
    ridge_errors,
    ridge_scores,
)
from .responses import Responses, Susceptibility
from .ridge import Signal, responses_of, ridge_signal, unpacked

Score = Callable[[Field], Scores]
# From the averages, the local field and the susceptibility.
SignalStep = Callable[[Scores, Field, Susceptibility], Signal]


def one_pass(
    responses: Responses, alpha: Array, lam: Array, o: Overlaps, score: Score, step: SignalStep
) -> tuple[Overlaps, Conjugates, Scores]:
    """The overlaps that follow from overlaps ``o``, and on the way the conjugates and the scores.

    Parameters
    ----------
    responses : Responses
    alpha, lam : arrays (P,)
    o : Overlaps
    score : callable
        Averages of the score given kappa, for a local field.
    step : callable
        m, the overlaps with special directions and their conjugates, which solve (4.5) or (6.2) for
        these averages, or come nearer.
    """
    pass_field = field_at_nodes(responses, o)  # Eqs. (4.1), (6.1)
    pass_scores = score(pass_field)
    V_hat = responses.conjugates_from(pass_scores.slope, alpha)  # Eqs. (4.2), (6.2)
    V = responses.from_conjugates(V_hat, lam, responses.pack(o.V1, o.V2))  # Eqs. (4.3)-(4.4)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal = step(pass_scores, pass_field, susceptibility)  # Eqs. (4.5), (6.2)
    signal_hats = signal.m_hat, signal.special_hat
    signal_sources = responses.signal_sources(V, susceptibility, alpha, *signal_hats)
    X = responses.conjugates_from(pass_scores.square, alpha) + signal_sources.X  # Eqs. (4.8), (6.3)
    Q = responses.second_moments_at(V_hat, lam, X, V)  # Eq. (4.9)
    return *unpacked(responses, V, V_hat, signal, X, Q + signal_sources.Q), pass_scores


MOST_SWEEPS = 5000  # a few times what ordinary parameters take; some seconds for a point


def solve_damped(table: Table, alpha: Array, lam: Array) -> Points:
    """Ridge regression at the points (alpha, lam), arrays (P,), by damped iteration of all unknowns
    together, with damping 1/2, as in papers."""
    responses, score = responses_of(table), partial(ridge_scores, table)
    A, K = table.loadings.shape[:2]
    unit_matrix, ones = np.eye(A), np.ones(A)
    m, theta, psi = (
        np.full(shape, 0.1) for shape in (len(table.offsets), (A, K), (A, len(table.g)))
    )
    initial_overlaps = Overlaps(unit_matrix, ones, m, theta, psi, unit_matrix, ones)  # all points
    overlap_ends = np.cumsum([overlap.size for overlap in initial_overlaps])[:-1]

    def unpack_overlaps(x: Array) -> Overlaps:
        pairs = zip(np.split(x, overlap_ends, axis=1), initial_overlaps, strict=True)
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

    flat_overlaps = np.concatenate([overlap.ravel() for overlap in initial_overlaps])
    start = np.tile(flat_overlaps, (len(alpha), 1))
    may_vanish = flat_overlaps < 1  # m, theta, psi, of unit 1, and entries between two groups
    with np.errstate(all="ignore"):  # rows that diverge are flagged
        damped_result = fixed_point(damped, start, tol=1e-12, size=size, max_iterations=MOST_SWEEPS)
        _, conjugates, pass_scores = pass_image(damped_result.value, np.arange(len(alpha)))
        errors = ridge_errors(table, pass_scores)
    unchecked = np.full(len(alpha), np.inf)
    account = damped_result.residual, unchecked, damped_result.iterations, damped_result.status
    return Points(unpack_overlaps(damped_result.value), conjugates, errors, *account)

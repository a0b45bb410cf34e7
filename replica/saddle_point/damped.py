"""Ridge regression of one group as papers iterate it: all unknowns together, with damping 1/2.
docs/theory.md 4, 5

Each sweep takes the conjugates (4.2), (4.5)-(4.8) from the overlaps, and these from the conjugates
by (5.3), which need not converge: near alpha = beta and small lambda it takes 1/sqrt(lambda)
sweeps, and for some ordinary parameters it diverges.  What it ends with is checked like any other
solution.  ``ridge`` solves the same equations at once.
"""

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.marchenko_pastur import resolvent_averages
from solvers.results import Array, Rows

from ..equivalence import OneGroup
from .overlaps import Conjugates, Errors, Overlaps
from .ridge import Points, record_of_one

DAMPING = 0.5
MOST_SWEEPS = 5000  # a few times what ordinary parameters take; some seconds of a point
TOLERANCE = 1e-12  # of every unknown, relative
SMALLEST = 1e-3  # overlaps m, theta, psi may vanish; their unit is 1
START = np.array([1.0, 1.0, 0.1, 0.1, 0.1, 1.0, 1.0])  # V1, V2, m, theta, psi, Q1, q2


def solve_damped(t: OneGroup, alpha: Array, lam: Array) -> Points:
    """The points (alpha, lam), arrays of shape (P,), on a table of one group, in the limit of
    infinite dimension."""

    def damped(x: Array, rows: Rows) -> Array:
        return DAMPING * x + (1 - DAMPING) * _sweep(t, x, alpha[rows], lam[rows])[0]

    def size(x: Array) -> Array:
        """Such that what a damped step changes is, relative to it, the undamped residual."""
        return (1 - DAMPING) * np.maximum(np.abs(x), np.array([0, 0, 1, 1, 1, 0, 0]) * SMALLEST)

    start = np.tile(START, (len(alpha), 1))
    with np.errstate(all="ignore"):  # rows that diverge are flagged
        found = fixed_point(damped, start, tol=TOLERANCE, size=size, max_iterations=MOST_SWEEPS)
        _, conjugates, errors = _sweep(t, found.value, alpha, lam)
    overlaps = record_of_one(Overlaps, found.value.T)
    return Points(overlaps, conjugates, errors, found.residual, found.iterations, found.status)


def _sweep(t: OneGroup, x: Array, alpha: Array, lam: Array) -> tuple[Array, Conjugates, Errors]:
    """All unknowns (P, 7) from the conjugates of ``x``; these, and the errors at ``x``."""
    V1, V2, m, theta, psi, Q1, q2 = x.T
    w, ratio = t.weights, alpha / t.beta
    R = 1 / (1 + np.outer(V1, t.a) + np.outer(V2, t.b))  # Eq. (4.1)
    gap = np.outer(m, t.mu0) + np.outer(theta, t.loading) - t.h
    error = gap**2 - 2 * np.outer(psi, t.mu1g) + np.outer(Q1, t.a) + np.outer(q2, t.b)
    error += t.spread + t.noise  # Eq. (4.7)
    V1_hat, V2_hat = ratio * (R @ (w * t.a)), ratio * (R @ (w * t.b))  # Eq. (4.2)
    unbalanced = -(R * gap) @ (w * t.mu0)  # Eq. (4.5)
    theta_hat = -(R * gap) @ (w * t.loading)  # Eq. (4.5)
    p_hat = R @ (w * t.mu1g)  # Eq. (4.6)
    X1 = ratio * ((R**2 * error) @ (w * t.a) + alpha * p_hat**2)  # Eq. (4.8)
    X2 = ratio * ((R**2 * error) @ (w * t.b) + alpha * t.c * theta_hat**2)  # Eq. (4.8)
    r = resolvent_averages(lam + V2_hat, V1_hat, t.c, t.beta)
    gram = R @ (w * t.mu0**2)
    image = [
        r.weighted,  # Eq. (5.3)
        r.inverse,  # Eq. (5.3)
        m + np.divide(unbalanced, gram, out=np.zeros_like(m), where=gram > 0),  # Eq. (4.5)
        alpha * t.c * r.inverse * theta_hat,  # Eq. (4.5)
        alpha * r.weighted * p_hat,  # Eq. (4.6)
        r.weighted2 * X1 + r.mixed * X2,  # Eq. (5.3)
        r.mixed * X1 + r.inverse2 * X2,  # Eq. (5.3)
    ]
    hats = [V1_hat, V2_hat, np.zeros_like(m), theta_hat, p_hat, X1, X2]
    errors = Errors(error @ w - t.noise, (R**2 * error) @ w)  # Eq. (4.11)
    return np.stack(image, axis=1), record_of_one(Conjugates, np.stack(hats)), errors

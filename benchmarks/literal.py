"""A baseline: the ridge saddle point of [C] as one types it from the paper.

This is how the notebooks that go with such papers compute a point, and what the library is
measured against; the library never uses it.  Its habits, each of them natural:

* the limiting spectrum is replaced by that of one random draw W0 of dimension d = 2000;
* an average over z or tau is a Gauss-Hermite sum with 19 nodes, taken anew for every kappa
  and wherever it appears;
* an average over kappa is one call of scipy.integrate.quad for every order parameter;
* all order parameters are iterated together with damping 1/2, until none of them moves by
  more than 1e-4, relatively; if that never happens, nothing is said.

Equation numbers are those of docs/theory.md.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad

DRAWN_DIMENSION = 2000
HERMITE_NODES = 19
DAMPING = 0.5
STOPPING_CHANGE = 1e-4
MAX_ITERATIONS = 1000

Z, Z_WEIGHTS = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
Z_WEIGHTS = Z_WEIGHTS / Z_WEIGHTS.sum()


@dataclass(frozen=True)
class LiteralSolution:
    """What the iteration ended with.

    Attributes
    ----------
    test_error, train_error : float
    iterations : int
    residual : float
        Largest relative change of an order parameter under one more, undamped, step.
    """

    test_error: float
    train_error: float
    iterations: int
    residual: float


def spectrum(c, beta, *, dimension=DRAWN_DIMENSION, seed=0):
    """Eigenvalues (p,) of F F^T, F = sqrt(c) W0, for one draw of p = beta d rows on the sphere."""
    rng = np.random.default_rng(seed)
    W0 = rng.standard_normal((round(beta * dimension), dimension))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    F = np.sqrt(c) * W0
    return np.linalg.eigvalsh(F @ F.T)


def solve(model, *, alpha, lam, eigenvalues):
    """One point of the learning curve of ``model``, on the ``eigenvalues`` of one draw.

    Parameters
    ----------
    model : replica.SpikedRandomFeatures
        Its r, c and gamma are those of docs/theory.md 2.
    alpha, lam : float
    eigenvalues : array (p,)
        As from ``spectrum(model.c, model.beta)``.

    Returns
    -------
    LiteralSolution
    """
    overlaps = np.array([1.0, 1.0, 0.1, 0.1, 0.1, 1.0, 1.0])  # V1, V2, m, theta, psi, q1, q2
    iterations, change = 0, np.inf
    while change > STOPPING_CHANGE and iterations < MAX_ITERATIONS:
        image = step(model, alpha, lam, eigenvalues, overlaps)
        damped = DAMPING * overlaps + (1 - DAMPING) * image
        change = relative(damped, overlaps)
        overlaps, iterations = damped, iterations + 1
    image = step(model, alpha, lam, eigenvalues, overlaps)

    # Eq. (4.11)
    test = average(lambda kappa: conditional_error(model, overlaps, kappa)) - model.noise
    train = average(
        lambda kappa: (
            conditional_error(model, overlaps, kappa) / (1 + response(model, overlaps, kappa)) ** 2
        )
    )
    return LiteralSolution(float(test), float(train), iterations, relative(image, overlaps))


def step(model, alpha, lam, eigenvalues, overlaps):
    """All order parameters from their conjugates, and these from ``overlaps``."""
    m, c, ratio = overlaps[2], model.c, alpha / model.beta

    def mu0(kappa):
        return student(model, kappa)[0]

    def mu1(kappa):
        return student(model, kappa)[1]

    def mu2sq(kappa):
        return student(model, kappa)[2]

    def g(kappa):
        return target(model, kappa)[1]

    def damp(kappa):
        return 1 / (1 + response(model, overlaps, kappa))

    def misfit(kappa):
        return target(model, kappa)[0] - fit(model, overlaps, kappa)

    def error(kappa):
        return conditional_error(model, overlaps, kappa)

    # Eq. (4.2)
    V1_hat = ratio * average(lambda k: mu1(k) ** 2 * damp(k))
    V2_hat = ratio * average(lambda k: mu2sq(k) * damp(k))
    # Eqs. (4.5)-(4.6)
    m_gap = average(lambda k: mu0(k) * misfit(k) * damp(k))
    m_size = average(lambda k: mu0(k) ** 2 * damp(k))
    theta_hat = average(lambda k: k * mu1(k) * misfit(k) * damp(k))
    psi_hat = average(lambda k: mu1(k) * g(k) * damp(k))
    # Eq. (4.8)
    q1_hat = ratio * average(lambda k: mu1(k) ** 2 * error(k) * damp(k) ** 2)
    q2_hat = ratio * average(lambda k: mu2sq(k) * error(k) * damp(k) ** 2)
    X1 = q1_hat + alpha * ratio * psi_hat**2
    X2 = q2_hat + alpha * ratio * c * theta_hat**2

    # Traces of the paper, over the eigenvalues of the draw.  Eqs. (5.2)-(5.3)
    S = lam + V2_hat + V1_hat * eigenvalues
    return np.array(
        [
            np.mean(eigenvalues / S),
            np.mean(1 / S),
            m + m_gap / m_size,
            alpha * c * np.mean(1 / S) * theta_hat,
            alpha * np.mean(eigenvalues / S) * psi_hat,
            np.mean(eigenvalues**2 / S**2) * X1 + np.mean(eigenvalues / S**2) * X2,
            np.mean(eigenvalues / S**2) * X1 + np.mean(1 / S**2) * X2,
        ]
    )


def average(integrand):
    """E over kappa ~ N(0, 1), by adaptive quadrature."""
    value, _ = quad(lambda k: integrand(k) * np.exp(-(k**2) / 2), -np.inf, np.inf)
    return value / np.sqrt(2 * np.pi)


def student(model, kappa):
    """mu_0, mu_1, mu_2^2 at kappa.  Eq. (3.2)"""
    values = model.student(model.r * kappa + np.sqrt(model.c) * Z)
    mu0 = Z_WEIGHTS @ values
    mu1 = Z_WEIGHTS @ (Z * values) / np.sqrt(model.c)
    return mu0, mu1, Z_WEIGHTS @ values**2 - mu0**2 - model.c * mu1**2


def target(model, kappa):
    """h, g, k at kappa.  Eq. (3.3)"""
    values = model.target(model.gamma * kappa + np.sqrt(1 - model.gamma**2) * Z)
    return Z_WEIGHTS @ values, Z_WEIGHTS @ (Z * values), Z_WEIGHTS @ values**2


def response(model, overlaps, kappa):
    """V(kappa).  Eq. (4.1)"""
    _, mu1, mu2sq = student(model, kappa)
    return mu1**2 * overlaps[0] + mu2sq * overlaps[1]


def fit(model, overlaps, kappa):
    """C(kappa) of Eq. (4.5)."""
    mu0, mu1, _ = student(model, kappa)
    return mu0 * overlaps[2] + mu1 * kappa * overlaps[3]


def conditional_error(model, overlaps, kappa):
    """epsilon(kappa).  Eq. (4.7)"""
    _, _, _, _, psi, q1, q2 = overlaps
    _, mu1, mu2sq = student(model, kappa)
    h, g, k = target(model, kappa)
    C = fit(model, overlaps, kappa)
    bulk = mu1**2 * q1 + mu2sq * q2 - 2 * mu1 * psi * g
    return k - 2 * C * h + C**2 + bulk + model.noise


def relative(new, old):
    """Largest relative difference of two vectors of order parameters."""
    return float(np.max(np.abs(new - old) / np.maximum(np.abs(old), 1e-12)))

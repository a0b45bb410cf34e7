"""Eqs. (6.1)-(6.3) typed as they stand, for one group and labels that are a sign."""

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm

from replica.equivalence import tabulate
from solvers.rules import trapezoid
from tests.oracles.equations import response, responses


def original_residuals(model, alpha, lam, of, point, kappa=120):
    """(6.1)-(6.3), (4.3)-(4.6), (4.9) as docs/theory.md 6 prints them, for a margin loss:
    integrated over omega, with the law of (y, tau) given omega in closed form; kinks of the score
    are split by a fine rule instead."""
    table = tabulate(model, trapezoid(kappa))
    gamma, beta = model.gamma, model.beta
    rho = np.sqrt(1 - gamma**2)
    o, c = point.overlaps, model.c
    ratio = alpha / beta
    mu0, mu1, m2, kappa = table.offsets[0], table.mu1[0], table.mu2sq[0], table.kappa[0]
    C = mu0 * o.m[0] + mu1 * kappa * o.theta[0, 0]
    pull = mu1 * o.psi[0, 0]
    V = mu1**2 * o.V1[0, 0] + m2 * o.V2[0]
    sd = np.sqrt(mu1**2 * o.Q1[0, 0] + m2 * o.q2[0])
    fine, weights = trapezoid(4001)
    E = np.zeros((5, kappa.size))
    for j in range(kappa.size):
        omega = C[j] + sd[j] * fine
        centre = pull[j] * fine / sd[j]
        v = 1 - pull[j] ** 2 / sd[j] ** 2
        edge = (gamma * kappa[j] + rho * centre) / (rho * np.sqrt(v))
        for y in (1.0, -1.0):
            P = ndtr(y * edge)
            tau = centre * P + y * np.sqrt(v) * norm.pdf(edge)
            g, slope, _ = of.score(y * omega, np.full_like(omega, V[j]))
            s = y * g
            parts = P * s, P * slope, P * s**2, tau * s, P * (y * omega < 0)
            E[:, j] += np.array(parts) @ weights
    s, slope, square, along, wrong = E
    n = table.weights
    V1_hat = np.array([[-ratio * n @ (mu1**2 * slope)]])
    V2_hat = np.array([-ratio * n @ (m2 * slope)])
    V1, V2, G, tau_b = responses(table, o.V2, V1_hat, V2_hat, lam)
    theta_hat = n @ (kappa * mu1 * s)
    p_hat = n @ (mu1 * (along - pull * slope))
    X1 = np.array([[ratio * n @ (mu1**2 * square) + alpha * ratio * p_hat**2]])
    X2 = np.array([ratio * n @ (m2 * square) + alpha * ratio * c * theta_hat**2])
    Q1, q2 = response(table, o.V1, o.V2, V1_hat, X1, X2, G, tau_b)
    return {
        "V1": V1[0, 0] / o.V1[0, 0] - 1,
        "V2": V2[0] / o.V2[0] - 1,
        "m": n @ (mu0 * s) / np.sqrt(n @ (mu0**2) * (n @ square)),
        "theta": alpha * c * o.V2[0] * theta_hat - o.theta[0, 0],
        "psi": alpha * o.V1[0, 0] * p_hat - o.psi[0, 0],
        "Q1": Q1[0, 0] / o.Q1[0, 0] - 1,
        "q2": q2[0] / o.q2[0] - 1,
        "classification": n @ wrong / point.classification_error - 1,
    }

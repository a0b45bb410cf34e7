"""Eqs. (15.2)-(15.8) typed as they stand, one point at a time.

The row norms enter as in (15.9)-(15.13): one more coordinate of every neuron, of
variance v/d and covariance k/d with its row, on which Vh1 does not act.  ``of`` are the ``Rows`` of
``equations_rows``, of an odd student.
"""

import numpy as np
from scipy.optimize import brentq

from tests.oracles import equations_rows


def kappa_t(of, t):
    """(15.2)"""
    w, y2 = of.W, of.e**2

    def gap(kappa):
        return kappa * (1 + t * w @ (y2 / (1 + t * y2 * kappa / of.alpha0))) - 1

    return brentq(gap, 0, 1, xtol=1e-300, rtol=1e-15)


def T_block(of, t):
    """T = (1 + tB)^-1 on (w_*, g, k), (3, 3).  (15.3), with k = (1/n0) sum f(y) x."""
    y, w, ws, wss = of.e, of.W, of.W * of.s, of.W * of.s**2
    kappa = kappa_t(of, t)
    D = 1 + t * y**2 * kappa / of.alpha0
    star = 1 / (1 + t * wss @ (y**2 / D))
    f = [y, of.L + of.F]
    T = np.empty((3, 3))
    T[0, 0] = star
    for i, fi in enumerate(f, 1):
        T[0, i] = T[i, 0] = ws @ (fi / D) * star
        for j, fj in enumerate(f, 1):
            T[i, j] = kappa / of.alpha0 * (w @ (fi * fj / D))
            T[i, j] += (ws @ (fi / D)) * (ws @ (fj / D)) * star
    return T


def resolvent(of, beta, V1_hat, Lam):
    """V1, V2 of (15.5)."""

    def G(V2):
        q = beta * V2 * V1_hat
        t = q * of.b / (1 + q)
        return (1 - kappa_t(of, t) / (1 + q)) / (beta * V2)

    V2 = brentq(lambda V2: V2 * (Lam + G(V2)) - 1, 1e-12, 2 / Lam, xtol=1e-300, rtol=1e-15)
    return V2 * G(V2) / V1_hat, V2


def M_block(of, beta, V1_hat, Lam):
    """M' of (15.6) on (u, row norms, zeta)."""
    _, V2 = resolvent(of, beta, V1_hat, Lam)
    tau = beta * V2
    q = tau * V1_hat
    R = T_block(of, q * of.b / (1 + q)) / (1 + q)
    N = of.N
    rho = np.sqrt(1 - of.gamma**2)
    # u = g / N, zeta = (w_* - gamma u) / rho.  (15.4)
    turn = np.array([[0, 1 / N, 0], [0, 0, 1], [1 / rho, -of.gamma / N / rho, 0]])
    R = turn @ R @ turn.T
    M = (np.eye(3) - R) / V1_hat
    M[1] = M[:, 1] = tau * R[1]
    M[1, 1] = tau * (of.v - q * R[1, 1])
    e = 1 - V1_hat * M[0, 0]
    M = M + V1_hat * np.outer(M[0], M[0]) / e
    return M if of.norms else M[np.ix_([0, 2], [0, 2])]


def solve(of, table, alpha, lam):
    """Test and training error.  (15.7), (15.8)"""
    return equations_rows.solve(of, table, alpha, lam, V=resolvent, M=M_block)

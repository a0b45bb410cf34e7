"""Eqs. (4.1)-(4.12) typed as they stand, one point at a time, for any number of groups.

The tests compare the library's rearranged forms with these.  Arrays: m1, m2, m0 (A, N),
kappa (K, N), h, k (N,), g (K', N), weights w (N,).
"""

import numpy as np


def V_of_kappa(t, V1, V2):
    """(4.1)"""
    return np.einsum("an,ab,bn->n", t.mu1, V1, t.mu1) + V2 @ t.mu2sq


def hats(t, V1, V2, alpha):
    """(4.2)"""
    w = t.weights / (1 + V_of_kappa(t, V1, V2))
    ratio = alpha / t.beta
    return ratio * np.einsum("n,an,bn->ab", w, t.mu1, t.mu1), ratio * t.mu2sq @ w


def responses(t, V2, V1_hat, V2_hat, lam):
    """Right sides of (4.3)-(4.4): V1, V2, and G, tau."""
    tau = t.beta * t.c * V2
    G = V1_hat @ np.linalg.inv(np.eye(len(tau)) + np.diag(tau) @ V1_hat)
    V2_new = t.fractions / (lam + V2_hat + t.c * np.diag(G))
    V1_new = np.linalg.inv(np.diag(1 / tau) + V1_hat) / t.beta
    return V1_new, V2_new, G, tau


def response(t, V1, V2, V1_hat, X1, X2, G, tau):
    """(Q1, q2) by (4.10)."""
    c, pi, beta = t.c, t.fractions, t.beta
    P = np.linalg.inv(np.eye(len(tau)) + V1_hat @ np.diag(tau))
    D = np.diag(P @ X1 @ P.T)
    matrix = np.eye(len(tau)) - np.diag(V2**2 * c / pi) @ (G * G) @ np.diag(beta * c)
    dV2 = np.linalg.solve(matrix, -(V2**2 / pi) * (X2 + c * D))
    dV1 = beta * V1 @ (np.diag(beta * c * dV2 / tau**2) - X1) @ V1
    return -dV1, -dV2


def residuals(t, alpha, lam, o, errors):
    """Relative residuals of (4.1)-(4.11) at the overlaps ``o`` of one point."""
    ratio = alpha / t.beta
    V1_hat, V2_hat = hats(t, o.V1, o.V2, alpha)
    V1, V2, G, tau = responses(t, o.V2, V1_hat, V2_hat, lam)
    w = t.weights / (1 + V_of_kappa(t, o.V1, o.V2))
    C = o.m @ t.offsets + np.einsum("an,kn,ak->n", t.mu1, t.kappa, o.theta)
    gap = t.h - C
    stationary = t.offsets @ (w * gap)  # (4.5)
    theta_hat = np.einsum("n,kn,an->ak", w * gap, t.kappa, t.mu1)
    theta = alpha * (t.c * o.V2)[:, None] * theta_hat
    p_hat = np.einsum("n,an,kn->ak", w, t.mu1, t.g)
    psi = alpha * o.V1 @ p_hat  # (4.6)
    k = t.h**2 + t.spread
    error = (  # (4.7)
        k
        - 2 * C * t.h
        + C**2
        - 2 * np.einsum("an,ak,kn->n", t.mu1, o.psi, t.g)
        + np.einsum("an,ab,bn->n", t.mu1, o.Q1, t.mu1)
        + o.q2 @ t.mu2sq
        + t.noise
    )
    w2 = t.weights / (1 + V_of_kappa(t, o.V1, o.V2)) ** 2
    X1 = (
        ratio * np.einsum("n,an,bn->ab", w2 * error, t.mu1, t.mu1) + alpha * ratio * p_hat @ p_hat.T
    )
    X2 = ratio * t.mu2sq @ (w2 * error) + alpha * ratio * t.c * (theta_hat**2).sum(1)  # (4.8)
    Q1, q2 = response(t, o.V1, o.V2, V1_hat, X1, X2, G, tau)
    test, train = t.weights @ error - t.noise, w2 @ error  # (4.11)
    size = np.sqrt((t.offsets**2 @ w).max() * (t.h**2 @ w)) + 1e-300

    def gap_of(a, b):
        return np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-8)

    found = dict(V1=V1, V2=V2, theta=theta, psi=psi, Q1=Q1, q2=q2)
    gaps = {name: gap_of(value, getattr(o, name)) for name, value in found.items()}
    gaps |= {"test": gap_of(test, errors.test), "train": gap_of(train, errors.train)}
    return gaps | {"m": np.max(np.abs(stationary)) / size}


def free_energy(t, alpha, lam, V1, V2, V1_hat, V2_hat, tau, G):
    """(4.12), its term V2 c G written tau G / beta: equal at the solution, and only in this
    form is it stationary in each of its six arguments separately."""
    w = t.weights
    value = t.fractions @ np.log(lam + V2_hat + t.c * np.diag(G))
    value += np.linalg.slogdet(np.eye(len(tau)) + np.diag(tau) @ V1_hat)[1] / t.beta
    value -= tau @ np.diag(G) / t.beta + np.trace(V1_hat @ V1) + V2_hat @ V2
    return value + alpha / t.beta * w @ np.log1p(V_of_kappa(t, V1, V2))

"""Sections 20 and 22 as they are written, with every p x p matrix of every stratum, and N x N of
rows: what is compared with."""

from math import factorial

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval
from scipy.optimize import brentq
from scipy.special import erf


def layer_moments(weights, biases, student, directions, nodes, k_max=2):
    """mu (N, p) and S (N, p, p) of (20.1) for isotropic inputs, at ``nodes`` (N, K) of kappa."""
    loadings = weights @ directions
    B = weights @ weights.T - loadings @ loadings.T
    root = np.sqrt(np.diagonal(B))
    rho, s = B / np.outer(root, root), biases + nodes @ loadings.T
    z, w = hermegauss(80)
    w = w / w.sum()
    values = student(s[..., None] + root[:, None] * z)
    d = [
        (values * hermeval(z, np.eye(k + 1)[k]) * w).sum(axis=-1) / np.sqrt(factorial(k))
        for k in range(k_max + 1)
    ]
    rest = (values**2 * w).sum(axis=-1) - sum(x**2 for x in d)
    S = sum(d[k][:, :, None] * d[k][:, None] * rho**k for k in range(1, k_max + 1))
    # the closing degree of (20.9), which for repeated neurons has all that is left
    sign, closing = np.sign(d[k_max - k_max % 2]), k_max + 2 - k_max % 2
    D = sign * np.sqrt(np.maximum(rest, 0.0))
    beside = D[:, :, None] * D[:, None] * rho**closing * (1 - np.eye(len(weights)))
    return d[0], S + beside + rest[:, None] * np.eye(len(weights))


def ridge_errors(shares, mu, S, h, spread, e, noise, samples, lam):
    """Test and training error of (20.2)-(20.5), by plain iteration."""
    p, ratio = mu.shape[1], samples / mu.shape[1]
    M = S + mu[:, :, None] * mu[:, None]

    def trace(X):
        return np.tensordot(M, X, axes=2) / p

    V = trace(np.eye(p)) / lam
    for _ in range(2000):
        G = np.linalg.inv(lam * np.eye(p) + ratio * np.tensordot(shares / (1 + V), M, axes=1))
        V, before = trace(G), V
        if np.abs(V / before - 1).max() < 1e-13:
            break
    a = G @ ((shares / (1 + V)) @ (h[:, None] * mu + e)) * samples / np.sqrt(p)
    C = mu @ a / np.sqrt(p)
    seen = (h - C) ** 2 + spread + noise - 2 * e @ a / np.sqrt(p) + (S @ a) @ a / p
    error = seen
    for _ in range(5000):
        T = ratio * G @ np.tensordot(shares * error / (1 + V) ** 2, M, axes=1) @ G
        error, before = seen + trace(T), error
        if np.abs(error / before - 1).max() < 1e-13:
            break
    return shares @ error - noise, shares @ (error / (1 + V) ** 2)


def one_stratum(covariance, slope, noise, samples, lam):
    """Test and training error of ridge regression of y = slope.phi + noise on phi ~ N(0,
    covariance), with the penalty lam p in sums over samples."""
    sizes, vectors = np.linalg.eigh(covariance)
    along, penalty = vectors.T @ slope, lam * len(sizes) / samples

    def balance(kappa):
        return kappa * (1 - (sizes / (sizes + kappa)).sum() / samples) - penalty

    kappa = brentq(balance, penalty, penalty + sizes.sum() / samples, xtol=1e-15, rtol=1e-15)
    missed = (along**2 * sizes * (kappa / (sizes + kappa)) ** 2).sum()
    error = (missed + noise) / (1 - ((sizes / (sizes + kappa)) ** 2).sum() / samples)
    return error - noise, error * (penalty / kappa) ** 2


def ridge_rows(features, y, samples, lam):
    """Ridge regression on ``samples`` of the rows of ``features`` (N, p), by (22.1)-(22.7) as they
    are written, with matrices (N, N): test, training and class error, and mean variance."""
    N, p = features.shape
    f, V = samples / N, np.full(N, 0.5)
    for _ in range(2000):
        w = 1 / (1 + (1 - f) * V)
        G = np.linalg.inv(lam * np.eye(p) + f / p * (features.T * w) @ features)
        h = np.einsum("ij,jk,ik->i", features, G, features) / p
        before, V = V, 2 * h / ((1 - h) + np.sqrt((1 - h) ** 2 + 4 * (1 - f) * h))
        if np.abs(V - before).max() < 1e-14 * V.max():
            break
    left = 1 - f * V / (1 + V)
    a = G @ features.T @ (w * y) * f / p
    m = (features @ a - (1 - left) * y) / left
    R = features @ G @ features.T / p / np.outer(left, left) * (1 - np.eye(N))
    r, g = y - m, f * (1 - f) / (1 + V) ** 2
    u, alone = R @ (r / (1 + V)), R**4 @ g
    # v = R^2 g (r^2 + v) - f (1 - f) u^2 / N - alone g (r^2 + v)
    reach = R**2 * g - np.diag(alone * g)
    v = np.linalg.solve(np.eye(N) - reach, reach @ r**2 - f * (1 - f) / N * u**2)
    errors = r**2 + v
    wrong = (1 - erf(y * m / np.sqrt(2 * np.maximum(v, 1e-300)))) / 2
    return errors.mean(), (errors / (1 + V) ** 2).mean(), wrong.mean(), v.mean()

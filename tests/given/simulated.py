"""First layers and readouts drawn by numpy alone: what the theory of given layers is held
against."""

import numpy as np


def giant_step(rng, p, d, student, slope, target, directions, alpha0, eta, noise=0.0):
    """Rows (p, d) after one step (1.1) from the sphere, readout 1."""
    n0 = int(alpha0 * d)
    rows = rng.standard_normal((p, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    X = rng.standard_normal((n0, d))
    y = target(*(X @ directions).T) + np.sqrt(noise) * rng.standard_normal(n0)
    Z = X @ rows.T
    residual = y - student(Z).mean(axis=1)
    return rows + eta / n0 * (residual[:, None] * slope(Z)).T @ X


def ridge(Phi, y, lam):
    """Readout over sqrt(p) of (1.2)."""
    p = Phi.shape[1]
    return np.linalg.solve(Phi.T @ Phi / p + lam * np.eye(p), Phi.T @ y) / p


def logistic(Phi, y, lam):
    """The same for the logistic loss, by Newton's method."""
    p = Phi.shape[1]
    a = np.zeros(p)
    for _ in range(30):
        chance = 1 / (1 + np.exp(y * (Phi @ a)))
        gradient = lam * p * a - Phi.T @ (y * chance)
        curvature = (Phi.T * (chance * (1 - chance))) @ Phi + lam * p * np.eye(p)
        step = np.linalg.solve(curvature, gradient)
        a -= step
        if np.abs(step).max() < 1e-10 * np.abs(a).max():
            break
    return a


def mean_errors(draws, sample, fit, errors):
    """Means and standard errors over readouts of ``errors`` (k,): of fresh training data and test
    data from ``sample``."""
    found = np.array([errors(fit(*train), train, sample()) for train in (sample() for _ in draws)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))


def square_errors(a, train, test):
    """Test and training error."""
    return [np.mean((y - Phi @ a) ** 2) for Phi, y in (test, train)]


def class_errors(a, train, test):
    """Classification error, and the logistic loss in training."""
    Phi, y = test
    wrong = np.mean(y * (Phi @ a) < 0)
    Phi, y = train
    return [wrong, np.mean(np.logaddexp(0, -y * (Phi @ a)))]

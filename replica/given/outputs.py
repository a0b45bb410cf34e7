"""Several outputs of one readout, row by row: one for each class, or a vector.  docs/theory.md 22

All outputs have one response V.  Given the rows, the output for row i when it is not among the n
is N(m_i, v_i) in R^C; what is quadratic in labels is a matrix (C, C), and (22.3) is one linear
system for all its entries.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from solvers.results import Array

from .rows import RowEquations

MOST_ROWS = 3000  # of which the covariances are known, drawn from all of them: N^3
POINTS = 8  # 2^8 draws of the outputs for every row
BLOCK = 2**21  # numbers of these draws at a time, for memory


class Outputs(NamedTuple):
    """The law of C outputs for N rows, or for MOST_ROWS of them.

    Attributes
    ----------
    labels, mean : (N, C)
    covariance : (N, C, C)
    response : (N,)
        V.
    """

    labels: Array
    mean: Array
    covariance: Array
    response: Array

    @property
    def errors(self) -> Array:
        """E |y - f|^2 for every row, (N,)."""
        squares = ((self.labels - self.mean) ** 2).sum(axis=1)
        return np.asarray(squares + np.trace(self.covariance, axis1=1, axis2=2))

    def largest(self) -> Array:
        """P(output c is the largest) for every row, (N, C): by a Sobol sequence, shifted at random
        for each row."""
        from scipy.stats import qmc  # takes half a second

        count, C = self.mean.shape
        sizes, turns = np.linalg.eigh(self.covariance)
        least = 1e-24 * float(self.errors.mean())  # so that outputs that are equal share alike
        roots = turns * np.sqrt(np.maximum(sizes, least))[:, None, :]
        points = qmc.Sobol(C, scramble=False).random_base2(POINTS)
        shifts, shares = np.random.default_rng(0).random((count, 1, C)), np.empty((count, C))
        step = max(1, BLOCK // points.size)
        for start in range(0, count, step):
            rows = slice(start, start + step)
            normal = ndtri(np.clip((points + shifts[rows]) % 1, 1e-16, 1 - 1e-16))
            outputs = self.mean[rows, None, :] + normal @ roots[rows].swapaxes(1, 2)
            first = outputs.argmax(axis=2)
            shares[rows] = (first[..., None] == np.arange(C)).mean(axis=1)
        return shares

    def confusion(self, largest: Array) -> Array:
        """Shares (C, C) of the outputs that are ``largest`` (N, C), of the rows of each class: rows
        sum to 1.  Labels are 1 of the class and 0 of all others."""
        shares = self.labels.T @ largest
        return np.asarray(shares / self.labels.sum(axis=0)[:, None])


def law_of_outputs(equations: RowEquations, G: Any, V: Array) -> Outputs:
    """The outputs of ridge regression on labels (N, C), at the solution of (22.4)."""
    f, features, labels = equations.drawn, equations.strata.features, equations.labels.h
    (N, p), slope = features.shape, 1 / (1 + V)
    left = equations.left(slope, V)
    # Eq. (22.2)
    a = G @ (features.T * (f / p * slope / left)) @ labels
    mean = (features @ a - (1 - left)[:, None] * labels) / left[:, None]
    error, own, once = labels - mean, V / left, f * (1 - f)
    # Eq. (22.5)
    asked = slope[:, None] * error
    u = features @ (G @ (features.T / left) @ asked) / (p * left[:, None]) - own[:, None] * asked
    some = np.arange(N)
    if N > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).permutation(N)[:MOST_ROWS])
    scaled = features[some] / left[some, None]
    R2 = (scaled @ G @ scaled.T / p) ** 2 * (N / len(some))
    np.fill_diagonal(R2, 0.0)
    # Eqs. (22.3), (22.7): v = reach (r r^T + v) less what exactly n samples take
    g = once * slope[some] ** 2
    reach = R2 * g
    np.fill_diagonal(reach, -((R2**2 @ g) * g) * len(some) / N)
    i, j = np.triu_indices(labels.shape[1])
    r, u = error[some], u[some]
    right = reach @ (r[:, i] * r[:, j]) - once / N * u[:, i] * u[:, j]
    found = np.linalg.solve(np.eye(len(some)) - reach, right)
    covariance = np.empty((len(some), labels.shape[1], labels.shape[1]))
    covariance[:, i, j] = covariance[:, j, i] = found
    return Outputs(labels[some], mean[some], covariance, V[some])

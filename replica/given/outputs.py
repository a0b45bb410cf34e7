"""Several outputs of one readout, row by row: one for each class, or a vector.  docs/theory.md 22

All outputs have one response V.  Given the rows, the output for row i when it is not among the n
is N(m_i, v_i) in R^C; what is quadratic in labels is a matrix (C, C), and (22.3) is one linear
system for all its entries.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from solvers.resources import check_time
from solvers.results import Array

from .rows import RowEquations

POINTS = 8  # 2^8 draws of the outputs for every row
BLOCK = 2**21  # numbers of these draws at a time, for memory


class Outputs(NamedTuple):
    """The law of C outputs for N rows.

    Attributes
    ----------
    labels, mean : (N, C)
    roots : (N, C, C) or (N, 1, 1)
        Of the covariances, v = root root^T; of their trace where there are no classes.
    response : (N,)
        V.
    """

    labels: Array
    mean: Array
    roots: Array
    response: Array

    @property
    def variances(self) -> Array:
        """tr v, (N,)."""
        return np.asarray((self.roots**2).sum(axis=(1, 2)))

    @property
    def errors(self) -> Array:
        """E |y - f|^2 for every row, (N,)."""
        return np.asarray(((self.labels - self.mean) ** 2).sum(axis=1) + self.variances)

    def largest(self) -> Array:
        """P(output c is the largest) for every row, (N, C): by a Sobol sequence, shifted at random
        for each row.  Raises ``GivenUp`` past the deadline."""
        from scipy.stats import qmc  # takes half a second

        count, C = self.mean.shape
        points = qmc.Sobol(C, scramble=False).random_base2(POINTS)
        shifts, shares = np.random.default_rng(0).random((count, 1, C)), np.empty((count, C))
        # outputs that are equal share alike
        tie, step = 1e-12 * np.sqrt(self.errors.mean()), max(1, BLOCK // points.size)
        for start in range(0, count, step):
            check_time()
            rows = slice(start, start + step)
            normal = ndtri(np.clip((points + shifts[rows]) % 1, 1e-16, 1 - 1e-16))
            outputs = self.mean[rows, None, :] + normal @ self.roots[rows].swapaxes(1, 2)
            first = (outputs + tie * normal).argmax(axis=2)
            shares[rows] = (first[..., None] == np.arange(C)).mean(axis=1)
        return shares

    def confusion(self, largest: Array) -> Array:
        """Shares (C, C) of the outputs that are ``largest`` (N, C), of the rows of each class: rows
        sum to 1, and are NaN of a class without rows.  Labels are 1 of the class, else 0."""
        with np.errstate(invalid="ignore"):
            shares = self.labels.T @ largest / self.labels.sum(axis=0)[:, None]
        return np.asarray(shares)


def law_of_outputs(equations: RowEquations, G: Any, V: Array, classes: bool) -> Outputs:
    """The outputs of ridge regression on labels (N, C), at the solution of (22.4); covariances of
    ``classes``, else their trace.  Raises ``GivenUp`` past the deadline."""
    check_time()
    f, features, labels = equations.drawn, equations.strata.features, equations.labels.h
    (N, p), slope = features.shape, 1 / (1 + V)
    left = equations.left(slope, V)
    scaled = features / left[:, None]
    # Eq. (22.2)
    a = G @ (scaled.T @ (slope[:, None] * labels)) * f / p
    mean = (features @ a - (1 - left)[:, None] * labels) / left[:, None]
    R = scaled @ G @ scaled.T / p
    np.fill_diagonal(R, 0.0)
    error, once = labels - mean, f * (1 - f)
    u = R @ (slope[:, None] * error)
    i, j = np.triu_indices(labels.shape[1])

    def squares(x: Array) -> Array:
        """x x^T of every row, or its trace."""
        return x[:, i] * x[:, j] if classes else (x**2).sum(axis=1)[:, None]

    # Eqs. (22.3), (22.5), (22.7): v = reach (r r^T + v) less what exactly n samples take
    R *= R
    g = once * slope**2
    alone = (R * R) @ g
    R *= g
    reach = R
    np.fill_diagonal(reach, -alone * g)
    right = reach @ squares(error) - once / N * squares(u)
    np.negative(reach, out=reach)
    reach[np.diag_indices(N)] += 1.0
    found = np.linalg.solve(reach, right)
    if not classes:
        return Outputs(labels, mean, np.sqrt(np.maximum(found, 0.0))[..., None], V)
    covariance = np.empty((N, labels.shape[1], labels.shape[1]))
    covariance[:, i, j] = covariance[:, j, i] = found
    sizes, turns = np.linalg.eigh(covariance)  # some are 0, or below it by rounding
    return Outputs(labels, mean, turns * np.sqrt(np.maximum(sizes, 0.0))[:, None, :], V)

"""What the two methods for a convex loss share: the design, the objective and its minimum.

    P(a, b) = sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

for a readout a (p,) and an intercept b; Z' is the transpose of Z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from replica.convex import Loss
from solvers.results import Array

GAP = 1e-8  # relative, of the objective: lam/2 times the squared distance of the readout is less
MAX_STEPS = 100  # of either method; the gap says whether they were enough


@dataclass(frozen=True)
class Fitted:
    """A readout (p,) of a convex loss, and how near its objective is to the minimum: ``gap`` is a
    bound on the distance."""

    readout: Array
    intercept: float
    objective: float
    gap: float

    def within(self, tolerance: float) -> bool:
        """Whether the gap is at most ``tolerance`` of the objective, which may be 0."""
        return self.gap <= tolerance * self.objective


class Design:
    """The matrix Z (n, p) with solves of the weighted systems that both methods meet.

    They use the n x n matrix Z Z' where there are fewer samples than features, Z' diag Z
    otherwise.
    """

    def __init__(self, Z: Array) -> None:
        self.Z = Z

    @property
    def wide(self) -> bool:
        """Whether there are fewer samples than features: the n x n systems are the smaller ones."""
        return self.Z.shape[0] < self.Z.shape[1]

    @cached_property
    def gram(self) -> Array:
        """Z Z', (n, n)."""
        return self.Z @ self.Z.T

    def primal(self, weight: Array, lam: float, b: Array) -> Array:
        """(lam + Z' diag(weight) Z)^-1 b for b (p, k)."""
        root = np.sqrt(weight)
        if not self.wide:
            return _solve(self.Z.T @ (weight[:, None] * self.Z), lam, b)
        inner = _solve(root[:, None] * self.gram * root, lam, root[:, None] * (self.Z @ b))
        return (b - self.Z.T @ (root[:, None] * inner)) / lam

    def dual(self, weight: Array, lam: float) -> Callable[[Array], Array]:
        """b -> (Z Z' / lam + diag(1 / weight))^-1 b for b (n, k)."""
        root = np.sqrt(weight)[:, None]
        if self.wide:
            factor = _factor(root * self.gram * root.T, lam)
            return lambda b: lam * root * cho_solve(factor, root * b, check_finite=False)
        factor = _factor(self.Z.T @ (weight[:, None] * self.Z), lam)

        def solve(b: Array) -> Array:
            x = np.zeros_like(b)
            # Once, and twice more: the difference below cancels where weights are large.
            for _ in range(3):
                rest = b - (self.Z @ (self.Z.T @ x) / lam + x / weight[:, None])
                scaled = weight[:, None] * rest
                inner = cho_solve(factor, self.Z.T @ scaled, check_finite=False)
                x += scaled - weight[:, None] * (self.Z @ inner)
            return x

        return solve


def _solve(matrix: Array, shift: float, b: Array) -> Array:
    """(matrix + shift I)^-1 b for a symmetric matrix >= 0, which is overwritten."""
    return cho_solve(_factor(matrix, shift), b, check_finite=False)


def _factor(matrix: Array, shift: float) -> Any:
    """The Cholesky factor, for ``cho_solve``, of matrix + shift I; the matrix is overwritten."""
    matrix[np.diag_indices(len(matrix))] += shift
    return cho_factor(matrix, overwrite_a=True, check_finite=False)


def objective(y: Array, lam: float, loss: Loss, a: Array, f: Array) -> float:
    """P = sum l(y, f) + (lam / 2) |a|^2 at the readout a (p,) with the outputs f (n,)."""
    return float(loss(y, f).sum() + lam / 2 * a @ a)

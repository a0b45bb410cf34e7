"""The readout: ridge regression on n samples of p features, by Cholesky factorisation.

    (Phi^T Phi / p + lam I) a = Phi^T y / sqrt(p),  f(x) = phi(x) . a / sqrt(p)          (1.2)

Both systems below have the same solution; the smaller one is solved.  An unregularised output
intercept is fitted by centring features and labels; a bias common to all neurons by minimising
the training objective that is left.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpocon
from scipy.optimize import minimize_scalar

from replica.errors import InvalidArgument
from replica.trained_bias import RANGE
from solvers.results import Array

SCAN = np.linspace(-RANGE, RANGE, 33)  # as in the theory


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained readout: weights a (p,), output intercept, and the bias added to all neurons."""

    readout: Array
    intercept: float
    bias: float

    def predict(self, features: Array) -> Array:
        """f = Phi a / sqrt(p) + intercept, (n,), of features with ``bias`` in them."""
        return predict(features, self.readout[:, None])[:, 0] + self.intercept


def fit(
    features: Callable[[float], Array], y: Array, lam: Array, *, intercept: bool, train_bias: bool
) -> list[Fit]:
    """The readout at each penalty.

    Parameters
    ----------
    features : callable, bias -> Phi (n, p)
        The features with that bias added to all neurons.
    y : (n,)
    lam : (L,)
    intercept, train_bias : bool
        What is trained besides the readout.
    """
    if not train_bias:
        return _with_bias(features, y, lam, intercept, 0.0)

    def objective(bias: float, penalty: float) -> float:
        (found,) = _with_bias(features, y, np.array([penalty]), intercept, bias)
        residual = y - found.predict(features(bias))
        return float(residual @ residual + penalty * found.readout @ found.readout)

    fits = []
    for penalty in lam:
        start = min(SCAN, key=lambda bias: objective(bias, penalty))
        step = SCAN[1] - SCAN[0]
        bottom = minimize_scalar(
            objective, args=(penalty,), bounds=(start - step, start + step), method="bounded"
        )
        fits += _with_bias(features, y, np.array([penalty]), intercept, float(bottom.x))
    return fits


def _with_bias(
    features: Callable[[float], Array], y: Array, lam: Array, intercept: bool, bias: float
) -> list[Fit]:
    Phi = features(bias)
    if not intercept:
        return [Fit(a, 0.0, bias) for a in ridge(Phi, y, lam).T]
    centre, level = Phi.mean(axis=0), float(y.mean())
    readouts = ridge(Phi - centre, y - level, lam)
    levels = level - predict(centre[None], readouts)[0]
    return [Fit(a, float(b), bias) for a, b in zip(readouts.T, levels, strict=True)]


def ridge(features: Array, y: Array, lam: Array) -> Array:
    """Readouts (p, L) at penalties ``lam`` (L,), from features (n, p) and labels (n,).

    Raises
    ------
    InvalidArgument
        If a penalty is too small for the system to be solved in double precision.

    Examples
    --------
    >>> readouts = ridge(np.eye(2), np.array([1.0, 2.0]), np.array([0.5]))
    >>> predict(np.eye(2), readouts).round(12).tolist()
    [[0.5], [1.0]]
    """
    n, p = features.shape
    return (primal if n >= p else dual)(features, y, lam)


def primal(features: Array, y: Array, lam: Array) -> Array:
    """``ridge`` by the p x p system above."""
    p = features.shape[1]
    return solve_shifted(features.T @ features / p, features.T @ y / np.sqrt(p), lam)


def dual(features: Array, y: Array, lam: Array) -> Array:
    """``ridge`` by the n x n system: a = Phi^T (Phi Phi^T / p + lam I)^-1 y / sqrt(p)."""
    p = features.shape[1]
    return features.T @ solve_shifted(features @ features.T / p, y, lam) / np.sqrt(p)


def predict(features: Array, readouts: Array) -> Array:
    """f = Phi a / sqrt(p), (n, L), for readouts (p, L)."""
    return np.asarray(features @ readouts / np.sqrt(len(readouts)))


def solve_shifted(gram: Array, b: Array, shifts: Array) -> Array:
    """Columns (gram + shift I)^-1 b, one for each shift, for a symmetric ``gram`` >= 0."""
    norm = np.linalg.norm(gram, 1)
    columns = []
    for shift in shifts:
        system = gram.copy(order="F")
        np.fill_diagonal(system, np.diagonal(gram) + shift)
        try:
            factor, lower = cho_factor(system, overwrite_a=True, check_finite=False)
            reciprocal_condition, _ = dpocon(factor, norm + shift)
        except LinAlgError:
            reciprocal_condition = 0.0
        # The test scipy.linalg.solve makes: beyond it no digit of the solution is certain.
        if not reciprocal_condition > np.finfo(float).eps:
            raise InvalidArgument(
                "lam",
                float(shift),
                "larger for these features, whose Gram matrix is singular in double precision",
            )
        columns.append(cho_solve((factor, lower), b, check_finite=False))
    return np.stack(columns, axis=1)

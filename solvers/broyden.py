"""Broyden's method: a root whose neighbourhood, and the slopes there, are known roughly."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .linear import solve_rows
from .results import Array

SHORT = 1e-7  # step, over which F may change by rounding alone
TINY = 1e-300


class Root(NamedTuple):
    """x (k,), the largest modulus in F(x), evaluations of F, its slopes (k, k) as far as they
    were learnt there, and what else F gave."""

    value: Array
    residual: float
    iterations: int
    slopes: Array
    rest: Any


def broyden(
    function: Callable[[Array], tuple[Array, Any]],
    start: Array,
    slopes: Array,
    *,
    tol: float,
    enough: float,
    max_iterations: int,
) -> Root | None:
    """A root of F near ``start`` (k,), or None where steps cease to shorten before.

    Parameters
    ----------
    function : callable, x (k,) -> (F(x) (k,), anything)
    slopes : array (k, k)
        dF / dx, roughly: every step corrects them along itself.
    tol : float
        Steps shorter than that in every coordinate are not taken, once F is within ``enough``.
    enough : float
        Bound on the largest modulus in F.
    max_iterations : int

    Examples
    --------
    >>> root = broyden(lambda x: (x - np.cos(x), None), np.ones(1), np.eye(1), tol=1e-10,
    ...                enough=1e-9, max_iterations=10)
    >>> round(float(root.value[0]), 12), root.iterations
    (0.739085133215, 7)
    """
    slopes, step, length = slopes.copy(), np.zeros_like(start), np.inf
    best = Root(start, np.inf, 0, slopes, None)
    x, before = start, np.zeros_like(start)
    for iteration in range(1, max_iterations + 1):
        error, rest = function(x)
        residual = float(np.abs(error).max())
        if not np.isfinite(residual):
            break
        if length > SHORT:
            slopes = slopes + _correction(error - before, slopes, step)
        if residual < best.residual:
            best = Root(x, residual, iteration, slopes, rest)
        step, last = -solve_rows(slopes[None], error[None])[0], length
        length = float(np.abs(step).max())
        if not length < last or (length <= tol and residual <= enough):
            break
        x, before = x + step, error
    return best._replace(iterations=iteration) if best.residual <= enough else None


def _correction(change: Array, slopes: Array, step: Array) -> Array:
    """Of the slopes, for F to have changed by that much over the step."""
    return np.outer(change - slopes @ step, step) / max(float(step @ step), TINY)

"""Broyden's method: slopes corrected, noise left alone."""

import numpy as np
import pytest

from solvers.broyden import broyden


def swirl(x):
    """Three equations with the root (1, 2, 3)."""
    a, b, c = x
    return np.array([a * b - 2 + (c - 3) / 3, b + np.sin(c - 3) - 2 * a, c**2 + a - 10]), a


def test_broyden_corrects_rough_slopes():
    """Slopes too large by a half, kept, would leave a third of the distance at every step: 20
    steps to 1e-10."""
    exact = np.array([[2.0, 1.0, 1 / 3], [-2.0, 1.0, 1.0], [1.0, 0.0, 6.0]])
    start = np.array([1.05, 1.9, 3.1])
    root = broyden(swirl, start, 1.5 * exact, tol=1e-10, enough=1e-9, max_iterations=20)
    assert root.value == pytest.approx([1, 2, 3], abs=1e-9)
    assert root.residual <= 1e-9
    assert root.rest == root.value[0]  # of the evaluation that is returned
    assert root.iterations <= 12


def test_broyden_says_where_it_does_not_do():
    settings = dict(tol=1e-10, enough=1e-9, max_iterations=20)
    one = np.ones(1)
    assert broyden(lambda x: (np.exp(x), None), one, np.eye(1), **settings) is None  # no root
    assert broyden(lambda x: (x + np.nan, None), one, np.eye(1), **settings) is None
    assert broyden(lambda x: (x - 3, None), one, np.zeros((1, 1)), **settings) is None


def test_broyden_stops_at_the_noise():
    """Rounding of 1e-10 in F, with slopes that turn it into steps above ``tol``: accepted at what
    is enough, and the slopes are left alone by it."""
    noise = np.random.default_rng(0)

    def rounded(x):
        return 0.01 * (x - 3) + 1e-10 * noise.uniform(-1, 1, 1), None

    root = broyden(
        rounded, np.array([3.2]), np.array([[0.02]]), tol=1e-10, enough=1e-9, max_iterations=30
    )
    assert root.residual <= 1e-9
    assert root.slopes == pytest.approx(np.array([[0.01]]), rel=1e-2)


def test_broyden_learns_nothing_from_what_is_undefined():
    """The start is good enough, the point after it is not defined."""
    slopes = np.array([[2.0]])
    root = broyden(
        lambda x: (np.where(x == 1, 5e-10, np.nan), None),
        np.ones(1),
        slopes,
        tol=1e-10,
        enough=1e-9,
        max_iterations=9,
    )
    assert root.value == 1
    assert root.iterations == 2
    assert root.slopes == slopes

"""Fixed points and Newton: answers, honest residuals, honest refusals."""

import numpy as np
import pytest
from scipy.optimize import root

from solvers.fixed_point import fixed_point
from solvers.results import Status


def coupled(x, rows=None):
    """A contraction of rate about 0.6 in two unknowns."""
    return np.stack([np.cos(x[:, 1]), 0.9 * np.cos(x[:, 0])], axis=1)


def nothing(memory, rows=1, unknowns=1):
    """What Anderson's method has seen to begin with; None for the plain iteration."""
    return np.zeros((rows, memory, 2, unknowns)) if memory else None


EXACT = root(lambda x: coupled(x[None])[0] - x, [0.8, 0.6], tol=1e-14).x


def test_far_steps_are_not_extrapolated():
    """Newton's steps for log cosh(x) - .999 x, cut to 1, from far down its tail: constant steps
    tell Anderson's method nothing of where they end."""

    def cut(x, rows):
        with np.errstate(over="ignore"):
            return x + np.clip((0.999 - np.tanh(x)) * np.cosh(x) ** 2, -1, 1)

    start = np.full((1, 1), -20.0)
    wild = fixed_point(cut, start, history=nothing(1), max_iterations=60)
    options = dict(size=np.ones_like, max_iterations=60)
    tame = fixed_point(cut, start, history=nothing(1), linear_below=0.9, **options)
    assert not wild.converged[0]
    assert tame.converged[0]
    assert tame.value[0, 0] == pytest.approx(np.arctanh(0.999), rel=1e-10)


def test_combined_steps_have_a_longest():
    """A line, where two steps combined lead to the fixed point at once, 100 away."""
    visited = []

    def line(x, rows):
        visited.append(x[0, 0])
        return 0.99 * x + 1

    options = dict(max_iterations=60, size=np.ones_like)
    for bound, far in ((np.inf, 98.0), (4.0, 4.0)):
        visited.clear()
        result = fixed_point(
            line, np.zeros((1, 1)), history=nothing(2), longest_step=bound, **options
        )
        assert result.value[0, 0] == pytest.approx(100)
        assert np.abs(np.diff(visited)).max() == pytest.approx(far, abs=1)


@pytest.mark.parametrize("memory", range(4))
def test_fixed_point(memory):
    result = fixed_point(coupled, np.ones((3, 2)), history=nothing(memory, 3, 2))
    assert result.converged.all()
    assert result.value == pytest.approx(np.tile(EXACT, (3, 1)), rel=1e-12)
    again = np.abs(coupled(result.value) / result.value - 1).max(axis=1)
    assert result.residual == pytest.approx(again, abs=1e-16)  # at the very point returned


def test_rows_that_end_do_not_disturb_others():
    """One row becomes infinite and leaves; nothing warns of it (warnings are errors here)."""

    def one_explodes(x, rows):
        with np.errstate(over="ignore"):
            return np.where(rows[:, None] == 0, np.exp(x**2 + 9), coupled(x))

    result = fixed_point(one_explodes, np.ones((2, 2)), history=nothing(2, 2, 2))
    assert list(result.status) == [Status.NOT_FINITE, Status.CONVERGED]
    assert result.value[1] == pytest.approx(EXACT, rel=1e-12)


def test_slow_is_not_mistaken_for_converged():
    """Rate 1 - 1e-6 from 1: after 500 steps the step is 1e-6 but the distance still ~1."""

    def slow(x, rows):
        return (1 - 1e-6) * x + 1e-6 * 2

    result = fixed_point(slow, np.ones((1, 1)), tol=1e-5, max_iterations=500)
    assert result.residual[0] < 1e-5
    assert result.status[0] is Status.ITERATION_LIMIT
    assert fixed_point(slow, np.ones((1, 1)), patience=100).status[0] is Status.SLOW


def test_growth_by_decades_is_not_mistaken_for_slow():
    """Doubling, and then of rate 1/2 on the way to 1e6: each step of the first part is as long."""

    def grows(x, rows):
        return np.minimum(2 * x, (x + 1e6) / 2)

    result = fixed_point(grows, np.ones((1, 1)), patience=60, linear_below=0.1)
    assert result.value[0, 0] == pytest.approx(1e6, rel=1e-12)
    assert fixed_point(grows, np.ones((1, 1)), patience=60).status[0] is Status.SLOW


def test_residual_at_the_iteration_limit_is_that_of_the_point():
    result = fixed_point(coupled, np.ones((1, 2)), max_iterations=4)
    again = np.abs(coupled(result.value) / result.value - 1).max()
    assert result.residual[0] == pytest.approx(again, rel=1e-12)
    assert not result.converged[0]


def test_rows_are_independent():
    """A row's answer does not depend on its company."""
    scale = np.array([0.1, 0.5, 0.9, 0.99])
    together = fixed_point(lambda x, rows: np.cos(scale[rows, None] * x), np.ones((4, 1)))
    for i in range(4):
        alone = fixed_point(lambda x, rows, i=i: np.cos(scale[i] * x), np.ones((1, 1)))
        assert alone.value[0] == together.value[i]
        assert alone.iterations[0] == together.iterations[i]

"""Fixed points and Newton: answers, honest residuals, honest refusals."""

import numpy as np
import pytest
from scipy.optimize import root

from solvers.broyden import broyden
from solvers.fixed_point import Anderson, Leave, Limits, fixed_point
from solvers.newton import newton
from solvers.results import ConvergenceError, Status


def coupled(x, rows=None):
    """A contraction of rate about 0.6 in two unknowns."""
    return np.stack([np.cos(x[:, 1]), 0.9 * np.cos(x[:, 0])], axis=1)


EXACT = root(lambda x: coupled(x[None])[0] - x, [0.8, 0.6], tol=1e-14).x


def test_far_steps_are_not_extrapolated():
    """Newton's steps for log cosh(x) - .999 x, cut to 1, from far down its tail: constant steps
    tell Anderson's method nothing of where they end."""

    def cut(x, rows):
        with np.errstate(over="ignore"):
            return x + np.clip((0.999 - np.tanh(x)) * np.cosh(x) ** 2, -1, 1)

    start = np.full((1, 1), -20.0)
    wild = fixed_point(cut, start, anderson=Anderson(3), limits=Limits(60))
    near = Anderson(3, near=0.9)
    tame = fixed_point(cut, start, size=np.ones_like, anderson=near, limits=Limits(60))
    assert not wild.converged[0]
    assert tame.converged[0]
    assert tame.value[0, 0] == pytest.approx(np.arctanh(0.999), rel=1e-10)


def test_combined_steps_have_a_longest():
    """A line, where two steps combined lead to the fixed point at once, 100 away."""
    visited = []

    def line(x, rows):
        visited.append(x[0, 0])
        return 0.99 * x + 1

    options = dict(limits=Limits(60), size=np.ones_like)
    for longest, far in ((np.inf, 98.0), (4.0, 4.0)):
        visited.clear()
        anderson = Anderson(2, longest=longest)
        result = fixed_point(line, np.zeros((1, 1)), anderson=anderson, **options)
        assert result.value[0, 0] == pytest.approx(100)
        assert np.abs(np.diff(visited)).max() == pytest.approx(far, abs=1)


@pytest.mark.parametrize("memory", [0, 1, 2, 3])
def test_fixed_point(memory):
    result = fixed_point(coupled, np.ones((3, 2)), anderson=Anderson(memory))
    assert result.converged.all()
    assert result.value == pytest.approx(np.tile(EXACT, (3, 1)), rel=1e-12)
    again = np.abs(coupled(result.value) / result.value - 1).max(axis=1)
    assert result.residual == pytest.approx(again, abs=1e-16)  # at the very point returned


def test_anderson_is_faster():
    plain = fixed_point(coupled, np.ones((1, 2)))
    mixed = fixed_point(coupled, np.ones((1, 2)), anderson=Anderson(2))
    assert mixed.iterations[0] < plain.iterations[0] / 3


def test_slow_is_not_mistaken_for_converged():
    """Rate 1 - 1e-6 from 1: after 500 steps the step is 1e-6 but the distance still ~1."""

    def slow(x, rows):
        return (1 - 1e-6) * x + 1e-6 * 2

    result = fixed_point(slow, np.ones((1, 1)), tol=1e-5, limits=Limits(500))
    assert result.residual[0] < 1e-5
    assert result.status[0] is Status.ITERATION_LIMIT
    assert fixed_point(slow, np.ones((1, 1)), limits=Limits(patience=100)).status[0] is Status.SLOW


def test_rows_may_be_left_when_close():
    """Each is asked for once, when its residual has fallen; what is left is the point asked of, and
    the others go on as they would alone."""
    asked = []

    def second(x, image, rows):
        asked.extend(rows.tolist())
        assert image == pytest.approx(coupled(x))
        assert (np.abs(image - x) <= 0.01 * np.abs(x)).all()
        return rows == 1

    start = np.array([[1.0, 1.0], [0.2, 2.0], [0.7, 0.6]])
    limits = Limits(leave=Leave(0.01, second))
    result = fixed_point(coupled, start, anderson=Anderson(2), limits=limits)
    assert sorted(asked) == [0, 1, 2]
    assert result.status.tolist() == [Status.CONVERGED, Status.LEFT, Status.CONVERGED]
    again = np.abs(coupled(result.value) / result.value - 1).max(axis=1)
    assert result.residual == pytest.approx(again, abs=1e-16)
    assert 1e-6 < result.residual[1] <= 0.01
    alone = fixed_point(coupled, start[[0, 2]], anderson=Anderson(2))
    assert result.value[[0, 2]] == pytest.approx(alone.value, rel=1e-15)


def test_residual_at_the_iteration_limit_is_that_of_the_point():
    result = fixed_point(coupled, np.ones((1, 2)), limits=Limits(4))
    again = np.abs(coupled(result.value) / result.value - 1).max()
    assert result.residual[0] == pytest.approx(again, rel=1e-12)
    assert not result.converged[0]


def test_divergence_is_flagged():
    with np.errstate(over="ignore"):
        result = fixed_point(lambda x, rows: np.exp(x) + 1, np.ones((2, 1)))
    assert list(result.status) == [Status.NOT_FINITE] * 2


def test_rows_are_independent():
    """A row's answer does not depend on its company."""
    scale = np.array([0.1, 0.5, 0.9, 0.99])
    together = fixed_point(lambda x, rows: np.cos(scale[rows, None] * x), np.ones((4, 1)))
    for i in range(4):
        alone = fixed_point(lambda x, rows, i=i: np.cos(scale[i] * x), np.ones((1, 1)))
        assert alone.value[0] == together.value[i]
        assert alone.iterations[0] == together.iterations[i]


def test_bad_options():
    with pytest.raises(ValueError, match="memory"):
        fixed_point(coupled, np.ones((1, 2)), anderson=Anderson(-1))


def power_balance(x, rows):
    """x y^2 = 4, x^3 / y = 2, in logarithms: linear, so Newton needs one step."""
    u, v = np.log(x).T
    F = np.stack([u + 2 * v - np.log(4), 3 * u - v - np.log(2)], axis=1)
    return F, np.tile([[1.0, 2.0], [3.0, -1.0]], (len(x), 1, 1))


def test_newton_over_decades():
    start = np.array([[1e-9, 1e7], [1.0, 1.0], [1e12, 1e-12]])
    result = newton(power_balance, start)
    assert result.converged.all()
    x, y = result.value.T
    assert x * y**2 == pytest.approx(4, rel=1e-12)
    assert x**3 / y == pytest.approx(2, rel=1e-12)


def test_newton_without_a_root_is_flagged():
    result = newton(lambda x, rows: (1 + np.log(x) ** 2, 2 * np.log(x)[..., None]), [[3.0]])
    assert not result.converged[0]
    assert result.status[0].value.startswith("not converged")


def test_newton_singular_row_does_not_spoil_the_others():
    def system(x, rows):
        F, J = power_balance(x, rows)
        J[rows == 1] = 0
        return F, J

    result = newton(system, np.ones((3, 2)))
    assert list(result.converged) == [True, False, True]


def test_newton_refuses_a_bad_start():
    with pytest.raises(ValueError, match="positive"):
        newton(power_balance, [[0.0, 1.0]])


def test_convergence_error_carries_the_result():
    assert ConvergenceError("no", 42).result == 42


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

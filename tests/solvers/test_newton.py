"""Newton's method in logarithms and in the complex plane: answers, refusals."""

import numpy as np
import pytest

from solvers.newton import newton, newton_complex


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


def test_newton_in_the_complex_plane_gives_up():
    """x^2 + 1 from far away on the real axis: no root within reach."""

    def system(x, rows):
        return x**2 + 1, (2 * x)[..., None]

    _, settled, _ = newton_complex(system, np.array([[0.5 + 0j], [1j]]), reach=0.3)
    assert settled.tolist() == [False, True]

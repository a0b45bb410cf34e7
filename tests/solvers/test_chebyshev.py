"""Tables of functions on the half line."""

import numpy as np
import pytest

from solvers.chebyshev import HalfLine, coefficient_matrix

NEAR, FAR = 1e5, 1e-6


def f(q):
    """Smooth in log q, and with a singularity at -1 alone."""
    return np.stack([1 / (1 + q), np.log1p(q) / (1 + q)])


def slope(q):
    return np.stack([-1 / (1 + q) ** 2, (1 - np.log1p(q)) / (1 + q) ** 2])


@pytest.fixture(scope="module")
def table():
    q, _ = HalfLine.panel_points(12, 16, NEAR, FAR)
    return HalfLine(f(q) @ coefficient_matrix(16).T, NEAR, FAR)


def test_values_and_slopes_over_all_decades(table):
    q = np.append(0.0, np.geomspace(1e-9, 1e3, 200))
    value, derivative = table.evaluate(q)
    # 16 points a panel of length 2.1: rho = 6 of the singularity at i pi, 6^-16 = 4e-13
    np.testing.assert_allclose(value, f(q), atol=1e-12)
    np.testing.assert_allclose(derivative, slope(q), atol=1e-10)

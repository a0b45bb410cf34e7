"""Averages over the Marchenko-Pastur law: no cancellation."""

import mpmath as mp
import pytest

from solvers import marchenko_pastur as law

BETAS = [0.05, 0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 2.0, 20.0]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("level", [1e-9, 1e-2, 1e4])
def test_resolvent_averages(beta, level):
    """(5.2) as printed, in 60-digit arithmetic."""
    v, c = 0.7, 1.3
    found = law.resolvent_averages(level, v, c, beta)
    with mp.workdps(60):
        L, V, C, B = (mp.mpf(x) for x in (level, v, c, beta))
        z = -L / (C * V)
        root = mp.sqrt((1 - B - z) ** 2 - 4 * B * z)
        m = 2 / ((1 - B - z) + root)
        slope = -(B * m**2 + m) / (2 * B * z * m + z - 1 + B)
        one, two = m / (C * V), slope / (C * V) ** 2
        last = (1 - 2 * L * one + L**2 * two) / V**2
        exact = one, (1 - L * one) / V, two, (one - L * two) / V, last
    tolerance = 1e-13 if abs(beta - 1) > 1e-3 or beta == 1 else 1e-9
    for value, target in zip(found, exact, strict=True):
        assert float(value) == pytest.approx(float(target), rel=tolerance)


def test_no_slope_is_a_constant():
    found = law.resolvent_averages(2.0, 0.0, 1.5, 0.7)
    assert [float(x) for x in found] == pytest.approx(
        [0.5, 0.75, 0.25, 0.375, 1.5**2 * 1.7 / 4]  # E D = c, E D^2 = c^2 (1 + beta)
    )

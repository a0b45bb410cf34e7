"""The Marchenko-Pastur law: mass, moments, branch, no cancellation."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from solvers import marchenko_pastur as law

BETAS = [0.05, 0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 2.0, 20.0]


def integral(f, beta):
    """Over the continuous part, by x = y^2 and y = the cosine map: smooth, but for a layer near
    the lower edge when beta is close to 1, which the break points resolve."""
    low, high = np.sqrt(law.edges(beta))

    def integrand(angle):
        y = low + (high - low) * np.sin(angle / 2) ** 2
        return f(y**2) * law.density(y**2, beta) * 2 * y * (high - low) / 2 * np.sin(angle)

    breaks = [0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, np.pi]
    return sum(
        quad(integrand, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in itertools.pairwise(breaks)
    )


@pytest.mark.parametrize("beta", BETAS)
def test_mass_and_mean(beta):
    """Atom + continuous part = 1; the mean of the law is 1.

    Rounding near a thin layer leaves 1e-10."""
    assert law.atom(beta) + integral(lambda x: 1.0, beta) == pytest.approx(1, abs=1e-9)
    assert integral(lambda x: x, beta) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("z", [-1e-14, -1e-6, -1.0, -1e6])
def test_stieltjes_to_thirty_digits(beta, z):
    """The closed form in 60-digit arithmetic, to rounding: nothing cancels."""
    with mp.workdps(60):
        B, Z = mp.mpf(beta), mp.mpf(z)
        root = mp.sqrt((1 - B - Z) ** 2 - 4 * B * Z)
        exact = (1 - B - Z - root) / (2 * B * Z)
        slope = -(B * exact**2 + exact) / (2 * B * Z * exact + Z - 1 + B)
    # near beta = 1 the root has relative condition ~ |1 - beta| / distance, hence 1e-9 there
    tolerance = 1e-14 if abs(beta - 1) > 1e-3 or beta == 1 else 1e-9
    assert float(law.stieltjes(z, beta)) == pytest.approx(float(exact), rel=tolerance)
    assert float(law.stieltjes_derivative(z, beta)) == pytest.approx(float(slope), rel=tolerance)


@pytest.mark.parametrize("beta", BETAS)
def test_complex_branch(beta):
    """Im m has the sign of Im z; m ~ -1/z far away; the density is Im m / pi at the axis."""
    low, high = law.edges(beta)
    x = np.linspace(-1, high + 1, 41)
    for sign in (1, -1):
        z = x + sign * 1j * np.array([[1e-6], [1e-2], [1.0], [1e4]])
        m = law.stieltjes(z, beta)
        assert (np.sign(m.imag) == sign).all()
        assert np.abs(beta * z * m**2 - (1 - beta - z) * m + 1).max() < 1e-9
    assert complex(law.stieltjes(1e8j, beta)) == pytest.approx(1j / 1e8, rel=1e-6)
    inside = np.linspace(low, high, 13)[1:-1]
    m = law.stieltjes(inside + 1e-12j, beta)
    assert m.imag / np.pi == pytest.approx(law.density(inside, beta), rel=1e-6)


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
        exact = (
            one,
            (1 - L * one) / V,
            two,
            (one - L * two) / V,
            (1 - 2 * L * one + L**2 * two) / V**2,
        )
    tolerance = 1e-13 if abs(beta - 1) > 1e-3 or beta == 1 else 1e-9
    for value, target in zip(found, exact, strict=True):
        assert float(value) == pytest.approx(float(target), rel=tolerance)


def test_no_slope_is_a_constant():
    found = law.resolvent_averages(2.0, 0.0, 1.5, 0.7)
    assert [float(x) for x in found] == pytest.approx(
        [0.5, 0.75, 0.25, 0.375, 1.5**2 * 1.7 / 4]  # E D = c, E D^2 = c^2 (1 + beta)
    )

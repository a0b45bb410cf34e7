"""Student's t with Gaussian noise: tabulated densities and moments, and averages over them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import poch

from solvers.rules import composite
from solvers.student import blurred, lagrange, mixture, octaves

NUS = [2.05, 2.5, 3.0, 5.0, 30.0, 1e9]


@pytest.mark.parametrize("nu", NUS)
def test_mixture_of_gaussians(nu):
    """Against scipy's law: the trapezoidal rule leaves 1e-12, and the variances that are left
    out, beyond exp(60), 1e-13 of the mean modulus at nu = 2.05."""
    variances, shares = mixture(nu, 60.0)
    x = np.array([[0.01], [0.9], [30.0]])
    mixed = stats.norm.cdf(x, scale=np.sqrt(variances)) @ shares
    assert mixed == pytest.approx(stats.t.cdf(x[:, 0], nu), abs=1e-12)
    modulus = 2 * np.sqrt(nu / np.pi) * poch(nu / 2, 0.5) / (nu - 1)
    assert np.sqrt(2 / np.pi) * shares @ np.sqrt(variances) == pytest.approx(modulus, rel=1e-11)


@pytest.mark.parametrize("nu", NUS)
def test_without_a_gaussian_it_is_students(nu):
    """At s = 0, where the tables are worst, against scipy's law; far out relative to it."""
    law = blurred(nu, 1.0, np.zeros(1))
    z = np.concatenate([np.linspace(-6, 6, 41), [-1e9, -300.0, 20.0, 1e3, 1e7]])
    assert law.scale == pytest.approx(1.0)
    assert law.density(z[None])[0] == pytest.approx(stats.t.pdf(z, nu), abs=2e-10)
    below, first, second = (x[0] for x in law.integrals(z[None]))
    assert below == pytest.approx(stats.t.cdf(z, nu), abs=3e-11)
    assert law.second[0, 0] == pytest.approx(nu / (nu - 2), rel=2e-9)
    # E t 1(t < z) = -(nu + z^2) p(z) / (nu - 1)
    assert first == pytest.approx(-(nu + z**2) / (nu - 1) * stats.t.pdf(z, nu), abs=1e-10)
    if nu < 10:
        far = np.array([[-1e7, -1e4, -300.0]])
        assert law.density(far)[0] == pytest.approx(stats.t.pdf(far[0], nu), rel=1e-8)
        assert law.integrals(far)[0][0] == pytest.approx(stats.t.cdf(far[0], nu), rel=1e-8)
    assert second[np.argmax(z)] == pytest.approx(law.second[0, 0], rel=1 if nu < 2.9 else 1e-6)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    nu=st.floats(2.05, 60.0),
    log_ratio=st.floats(-6.0, 5.0),
    z=st.floats(-8.0, 8.0),
)
def test_convolution(nu, log_ratio, z):
    """Against the integral over the Gaussian, of width up to 150 sigma, on 4 000 panels: the
    tables' 2e-10."""
    sigma, s = 0.7, 0.7 * np.exp(log_ratio)
    law = blurred(nu, sigma, np.array([s**2]))
    assert law.scale[0] == pytest.approx(np.hypot(sigma, s))
    at, weights = composite(8, np.linspace(-9.0, 9.0, 4001))
    weights = weights * stats.norm.pdf(at)
    other, away = stats.t(nu, scale=sigma), z * law.scale[0] - s * at
    z = np.array([[z]])
    assert law.density(z)[0, 0] == pytest.approx(
        law.scale[0] * (weights @ other.pdf(away)), abs=2e-10
    )
    assert law.integrals(z)[0][0, 0] == pytest.approx(weights @ other.cdf(away), abs=1e-10)


@pytest.mark.parametrize("nu", NUS)
def test_moments_agree_with_each_other(nu):
    """Tails add up to 1 and to E r^2, which are known, at every s: the tables' 1e-10."""
    sigma = 0.3
    s2 = sigma**2 * np.concatenate([[0.0], np.logspace(-4, 8, 30)])
    law = blurred(nu, sigma, s2)
    below, _, second = law.integrals(np.full((s2.size, 1), 1e-300))
    assert below == pytest.approx(0.5, abs=1e-10)
    exact = (s2 + sigma**2 * nu / (nu - 2)) / law.scale**2
    # to the cells' 1e-9 of every octave of the tail, of which there are many close to nu = 2
    assert law.second[:, 0] == pytest.approx(exact, rel=2e-9 if nu < 2.2 else 1e-10)
    assert second[:, 0] == pytest.approx(law.second[:, 0] / 2, rel=1e-12)
    ends = law.integrals(np.full((s2.size, 1), np.inf))
    for end, all_of_it in zip(ends, (1.0, 0.0, law.second[:, 0]), strict=True):
        assert end[:, 0] == pytest.approx(all_of_it, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("width", [0.1, 3.0, 40.0])
def test_mixtures_near_and_far(width):
    """A few components that stand for many, far away or where all are close: 1e-10 of the
    density in the middle, and of itself far out."""
    rng = np.random.default_rng(0)
    law = blurred(3.0, 0.5, np.array([0.1, 2.0]))
    mean = 1.0 + width * rng.uniform(-1, 1, (2, 50))
    weights = rng.uniform(-1, 1, (2, 3, 50))
    weights[:, 0] = np.abs(weights[:, 0])
    far = np.array([[0.9, 5.0, 40.0, 170.0, 1e3, -1e5]] * 2)
    length = np.full(far.shape, 0.3)
    length[0, 0] = 0.0
    scale = law.scale[:, None]
    each = [law.density(np.ascontiguousarray((far[:, k, None] - mean) / scale)) for k in range(6)]
    exact = np.stack([np.einsum("rt,rkt->rk", x, weights) / scale for x in each], axis=2)
    found = law.blur(far, length, mean, weights)
    assert (found[0, :, 0] == 0).all()
    exact *= length[:, None]
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-10 * np.abs(exact).max())


def test_lagrange():
    """Polynomials of degree 6 through 7 nodes, exactly, and at a node."""
    nodes = np.cos(np.pi * (np.arange(7) + 0.5) / 7)
    x = np.array([-1.0, 0.3, nodes[2], 1.0])
    assert lagrange(7, x) @ nodes**6 == pytest.approx(x**6, abs=1e-14)


def test_octaves_grow_where_tails_are_heavy():
    assert octaves(2.1) > octaves(3.0) > octaves(30.0) >= 4

"""Hermite coefficients: oracle, closed forms, residuals, the order that a data spread needs."""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite_e
from scipy.special import factorial

from replica import hermite
from validation.mixtures import EquivalenceWarning, expand, needed_order, proved

ORACLES = {
    "relu": lambda x: x if x > 0 else mpmath.mpf(0),
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
}


def mpmath_coefficients(name, b, order):
    """h_j and (h_l*)^2 by mpmath's own quadrature at 30 digits."""
    function = ORACLES[name]
    with mpmath.workdps(30):
        b = mpmath.mpf(b)
        edges = [-16, -8, -4, -2, 0, 2, 4, 8, 16]

        def mean(f):
            weight = mpmath.sqrt(2 * mpmath.pi)
            return mpmath.quad(lambda z: f(z) * mpmath.exp(-z * z / 2) / weight, edges)

        def he(j, z):
            return sum(int(c) * z**i for i, c in enumerate(hermite_e.herme2poly([0] * j + [1])))

        h = [mean(lambda z, j=j: he(j, z) * function(b * z)) for j in range(order)]
        rest = mean(lambda z: function(b * z) ** 2)
        rest -= sum(c**2 / mpmath.factorial(j) for j, c in enumerate(h))
        return np.array([float(c) for c in h]), float(mpmath.sqrt(rest))


@pytest.mark.parametrize(
    ("name", "b", "order"),
    [
        ("tanh", 1.0, 4),
        *(pytest.param(*case, 11, marks=pytest.mark.slow)
          for case in (("relu", 0.6), ("tanh", 1.0), ("sigmoid", 0.9))),
    ],
)  # fmt: skip
def test_coefficients_agree_with_mpmath(name, b, order):
    """Degrees below ``order`` to 1e-12, relative where the coefficient is above 1."""
    found = expand(name, order=order, b=b)
    expected, rest = mpmath_coefficients(name, b, order)
    error = np.abs(found.coefficients - expected) / np.maximum(1, np.abs(expected))
    assert error.max() < 1e-12, error
    # A square root of a variance known to 1e-13 of E sigma^2.
    assert found.residual == pytest.approx(rest, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("b", [0.6, 1.0])
def test_sine_to_degree_20(b):
    """E He_j(z) sin(b z) = b^j exp(-b^2/2) sin(j pi/2)."""
    j = np.arange(21)
    expected = b**j * np.exp(-(b**2) / 2) * np.array([0, 1, 0, -1])[j % 4]
    size = np.sqrt(factorial(j))  # the norm of He_j, in units of which rounding is
    found = expand("sin", order=21, b=b)
    np.testing.assert_allclose(found.coefficients / size, expected / size, atol=1e-14)
    np.testing.assert_allclose(found.coefficients[:11], expected[:11], atol=1e-12)


def test_relu_to_degree_20():
    """E He_j relu(b z) = b He_{j-2}(0) / sqrt(2 pi) from j = 2 on, with He_{2k}(0) = (-1)^k
    (2k - 1)!!; below, b / sqrt(2 pi) and b / 2."""
    h = np.zeros(21)
    h[:2] = 1 / np.sqrt(2 * np.pi), 0.5
    for k in range(10):
        h[2 * k + 2] = (-1) ** k * np.prod(np.arange(1, 2 * k, 2.0)) / np.sqrt(2 * np.pi)
    found, size = expand("relu", order=21, b=0.8), np.sqrt(factorial(np.arange(21)))
    # in units of the norm of He_j: rounding of the integrals
    np.testing.assert_allclose(found.coefficients / size, 0.8 * h / size, atol=1e-13)
    left = 0.32 - ((0.8 * h / size) ** 2).sum()  # a hundredth of E sigma^2
    assert found.residual**2 == pytest.approx(left, rel=1e-11)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(-2, 2), min_size=1, max_size=9).filter(lambda a: max(map(abs, a)) > 0.01),
    st.floats(0.3, 1.5),
)
def test_polynomials_are_exact(coefficients, b):
    """The polynomial itself and nothing left, at any b, with terms up to degree 20 allowed."""
    found = expand(hermite(coefficients), order=21, b=b)
    x = np.linspace(-2, 2, 9)
    expected = hermite_e.hermeval(x, coefficients)
    size = np.abs(found.coefficients / np.sqrt(factorial(np.arange(21)))).max()
    # Terms of degree 20 multiply rounding by He_20 / sqrt(20!), at most 2e3 for |x / b| < 7.
    np.testing.assert_allclose(found.polynomial(x), expected, atol=1e-9 * size)
    assert found.residual <= 1e-12 * size + 1e-13


def test_residual_is_what_is_left():
    """Parseval: residuals of all orders against the coefficients, and no digits lost."""
    full = expand("tanh", order=21, b=0.9)
    size = full.coefficients**2 / factorial(np.arange(21))
    for order in (1, 2, 5, 10, 20):
        found = expand("tanh", order=order, b=0.9)
        assert found.order == order
        left = full.residual**2 + size[order:].sum()
        assert found.residual**2 == pytest.approx(left, rel=1e-9)


def test_features_have_the_moments_of_the_activation():
    found = expand("tanh", order=3, b=0.9)
    x = 0.9 * np.random.default_rng(0).standard_normal(200_000)
    noise = np.random.default_rng(1).standard_normal(x.shape)
    features, sigma = found.student(x) + found.residual * noise, np.tanh(x)
    # Standard errors of means of 2e5: 2e-3 at most.
    assert (features**2).mean() == pytest.approx((sigma**2).mean(), abs=6e-3)
    assert (features * x).mean() == pytest.approx((sigma * x).mean(), abs=6e-3)


@pytest.mark.parametrize(
    ("spread", "order"), [(0.01, 2), (0.49, 2), (0.51, 3), (0.66, 3), (0.74, 4), (0.76, 5)]
)
def test_order_of_a_spread(spread, order):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert needed_order(spread) == order
    assert (order - 2) / (order - 1) < spread < (order - 1) / order


@pytest.mark.parametrize("spread", [0.0, 0.5, 2 / 3, 0.75, 0.8, 1.0])
def test_boundaries_are_outside_the_theorem(spread):
    assert not proved(spread)
    with pytest.warns(EquivalenceWarning, match="not proved there"):
        needed_order(spread)


def test_orders_above_the_largest_are_cut_and_said():
    with pytest.warns(EquivalenceWarning, match=r"of an order l up to 5"):
        assert needed_order(0.895, largest=5) == 5

"""Rules for Gaussian expectations: exactness, kinks, refusal."""

import numpy as np
import pytest
from scipy.special import ndtr

from solvers.quadrature import QuadratureError, expectation
from solvers.rules import gauss_hermite, gauss_legendre, graded_breaks, tensor_rule, trapezoid

MOMENTS = {0: 1, 2: 1, 4: 3, 6: 15, 8: 105}


RULES = [gauss_hermite(12), gauss_hermite(1000), trapezoid(128, 10), gauss_legendre(20, [0.3], 10)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.nodes.size))
def test_moments(rule):
    assert rule.weights.sum() == pytest.approx(1, abs=1e-14)
    for power, value in MOMENTS.items():
        # x^8 beyond |x| = 10 weighs 1e-14 of the whole; rounding is of the same order
        assert rule.weights @ rule.nodes**power == pytest.approx(value, rel=1e-12)


def average_of(function, breaks=(), rule="trapezoid, gauss-legendre"):
    """E function(z) to 1e-12."""

    def average(rule):
        return (function(rule.nodes) * rule.weights).sum(axis=-1), 1.0

    return expectation(average, np.asarray(breaks), rule=rule, tol=1e-12).value


def test_kinks_are_split():
    """E relu(z - 0.3) in closed form; with the kink declared, rounding is all that is left."""
    exact = np.exp(-0.045) / np.sqrt(2 * np.pi) - 0.3 * ndtr(-0.3)
    found = average_of(lambda z: np.maximum(z - 0.3, 0), [0.3], "gauss-legendre")
    assert float(found) == pytest.approx(exact, abs=1e-13)


def test_moving_kinks():
    """One row of breaks an integrand: P(z > t) for several t, a jump in each."""
    t = np.array([-2.0, 0.0, 0.7, 20.0])
    found = average_of(lambda z: (z > t[:, None]).astype(float), t[:, None], "gauss-legendre")
    assert found == pytest.approx(ndtr(-t), abs=1e-13)


def test_undeclared_kink_is_refused():
    with pytest.raises(QuadratureError, match="as at kinks or jumps"):
        average_of(lambda z: np.abs(z - 0.3))


def test_polynomials_by_gauss_hermite():
    assert float(average_of(lambda z: z**6, rule="gauss-hermite")) == pytest.approx(15, rel=1e-13)


def test_tensor_product():
    rule = tensor_rule(gauss_hermite(8), gauss_hermite(6), gauss_hermite(4))
    assert rule.nodes.shape == (192, 3)
    x, y, z = rule.nodes.T
    assert rule.weights @ (x**4 * y**2 * z**2) == pytest.approx(3, rel=1e-12)


def test_graded_panels_resolve_a_thin_layer():
    """A layer of width 1e-5 at an awkward place, to 1e-10."""
    rule = gauss_legendre(20, graded_breaks([0.123]))
    value = rule.weights @ np.tanh((rule.nodes - 0.123) / 1e-5)
    assert value == pytest.approx(1 - 2 * ndtr(0.123), abs=1e-10)

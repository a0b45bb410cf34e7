"""Moments of activations and targets, and the closed forms of the named activations' moments.
Eqs. (3.2)-(3.3)

Each function maps (s, c) to the Moments of sigma(s + sqrt(c) z); the variance is
arranged such that no term subtracted is much larger than the result.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike
from scipy.special import erf, factorial, ndtr

from solvers.results import Array
from solvers.rules import composite_legendre, gauss_hermite, gaussian_density


class Moments(NamedTuple):
    """Moments of an activation at s + sqrt(c) z, arrays of the shape of s.

    Mean E sigma, first moment E z sigma, and the variance of sigma - E sigma - z E z sigma.
    """

    mean: Array
    first: Array
    variance: Array


class ConditionalMoments(NamedTuple):
    """Moments of a target, or of E[y | x], conditional on z, at N places.  Eq. (3.3)

    h (N,), g (q, N) and spread = k - h^2 (N,).
    """

    h: Array
    g: Array
    spread: Array


class Averages(NamedTuple):
    """Averages of labels y and inputs x on which a first gradient step depends.
    Eqs. (2.1), (19.1)

    E y, E y^2, E x y (D,), E x (D,) and E x x^T (D, D), with x the D coordinates of the input on
    which labels may depend.
    """

    mean: float
    power: float
    first: Array
    inputs: Array
    second: Array


def _standardised(s: Array, c: Array) -> Array:
    """The ratio s / sqrt(c); where c = 0 it is +-inf, or 0 at s = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        standardised_shift = s / np.sqrt(c)
    return np.asarray(np.where(np.isnan(standardised_shift), 0.0, standardised_shift))


def _saturated_variance(x: Array, angle: Array) -> Array:
    """Variance of the remainder of erf and sign, an integral over the angle a.

        (2/pi) e^{-2 x^2} int_0^angle [expm1(2 x^2 sin a / (1 + sin a)) + 2 sin^2(a/2)] da

    For erf and sign, f(t) = E sigma'(X) sigma'(Y) is known at every correlation t of X and Y, and
    the variance is c int_0^1 (f(t) - f(0)) dt.  With sin a proportional to t both terms of the
    integrand are positive.
    """
    x2 = np.minimum(x**2, 300.0)  # beyond this the variance underflows
    angle_integral = np.zeros_like(x2 * angle)
    # node by node, as a layer has millions of pairs (x, angle); within 1e-12 at all of them
    for angle_node, weight_a in zip(*composite_legendre(48, np.array([0.0, 1.0])), strict=True):
        a, sine = angle_node * angle, np.sin(angle_node * angle)
        angle_integral += weight_a * (np.expm1(2 * x2 * sine / (1 + sine)) + 2 * np.sin(a / 2) ** 2)
    return np.asarray(2 / np.pi * np.exp(-2 * x2) * angle * angle_integral)


def erf_moments(s: Array, c: Array) -> Moments:
    """Moments of erf; the mean is erf(x) at x = s / sqrt(1 + 2c)."""
    x = s / np.sqrt(1 + 2 * c)
    erf_first = 2 * np.sqrt(c / np.pi / (1 + 2 * c)) * np.exp(-(x**2))
    return Moments(erf(x), erf_first, _saturated_variance(x, np.arcsin(2 * c / (1 + 2 * c))))


def sin_moments(s: Array, c: Array) -> Moments:
    """Moments of sin; the variance is e^-c [ (sinh c - c) cos^2 s + (cosh c - 1) sin^2 s ]."""
    sin_damping = np.exp(-c / 2)
    small_c = np.minimum(c, 0.3)  # larger c do not take the series
    series = small_c**3 / 6 * (1 + small_c**2 / 20 * (1 + small_c**2 / 42 * (1 + small_c**2 / 72)))
    sinh_part = np.where(c < 0.3, np.exp(-c) * series, -np.expm1(-2 * c) / 2 - c * np.exp(-c))
    cosh_part = np.expm1(-c) ** 2 / 2
    sin_variance = sinh_part * np.cos(s) ** 2 + cosh_part * np.sin(s) ** 2
    return Moments(sin_damping * np.sin(s), sin_damping * np.sqrt(c) * np.cos(s), sin_variance)


def relu_moments(s: Array, c: Array) -> Moments:
    """Moments of relu; the variance over c is even in t = s / sqrt(c), and evaluated at -|t|."""
    root_c = np.sqrt(c)
    t = _standardised(s, c)
    relu_mean = s * ndtr(t) + root_c * gaussian_density(t)
    u = -np.minimum(np.abs(t), 40.0)  # beyond 40 the variance underflows
    P, f = ndtr(u), gaussian_density(u)
    relu_variance = c * ((1 + u**2) * P * (1 - P) + u * f * (1 - 2 * P) - f**2)
    return Moments(relu_mean, root_c * ndtr(t), np.maximum(relu_variance, 0.0))


def sign_moments(s: Array, c: Array) -> Moments:
    """Moments of sign, the limit of erf for steep slopes; t = s / sqrt(c)."""
    t = _standardised(s, c)
    x = t / np.sqrt(2)
    sign_variance = _saturated_variance(x, np.full_like(x, np.pi / 2))
    return Moments(erf(x), 2 * gaussian_density(t), sign_variance)


def hermite_moments(coefficients: Array, s: Array, c: Array) -> Moments:
    """Moments of sum_k a_k He_k, by a Gauss-Hermite rule that is exact for it.

    The variance is sum_{j >= 2} c^j / j! (E sigma^(j))^2, a sum of positive terms.
    """
    hermite_degree = max(coefficients.size - 1, 1)
    z, z_weights = gauss_hermite(hermite_degree + 1)
    x = s[..., None] + np.sqrt(c)[..., None] * z
    hermite_means = [
        (hermite_e.hermeval(x, hermite_e.hermeder(coefficients, j)) * z_weights).sum(axis=-1)
        for j in range(hermite_degree + 1)
    ]
    terms = [c**j / factorial(j) * hermite_means[j] ** 2 for j in range(2, hermite_degree + 1)]
    return Moments(
        hermite_means[0], np.sqrt(c) * hermite_means[1], np.sum(terms, axis=0) + np.zeros_like(s)
    )


def relu_hermite_coefficients(degrees: Array, s: ArrayLike, c: ArrayLike) -> Array:
    """Hermite coefficients E He_k(z) relu(s + sqrt(c) z) / sqrt(k!), (n, *shape of s), for the n
    ``degrees`` k, 2 or more: sqrt(c) He_{k-2}(-t) phi(t) / sqrt(k!) with t = s / sqrt(c), as the
    second derivative of relu is a point mass."""
    s, c = np.broadcast_arrays(s, c)
    t = np.clip(_standardised(s, c), -40.0, 40.0)  # where phi vanishes
    he = hermite_e.hermevander(-t, int(degrees.max()) - 2)[..., degrees - 2]
    coefficients = he * (np.sqrt(c) * gaussian_density(t))[..., None] / np.sqrt(factorial(degrees))
    return np.moveaxis(coefficients, -1, 0)

"""The conditional Gaussian model: (3.1) as written."""

from dataclasses import replace

import numpy as np
import pytest

from replica import SpikedRandomFeatures
from validation.draws import draw, draw_gaussian

MODEL = SpikedRandomFeatures(
    student="relu", target="sin", r=[1.0, -0.5], c=[1.2, 0.8], bias=[0.3, 0], gamma=0.8,
    fractions=[0.25, 0.75],
)  # fmt: skip


def test_bulk_is_that_of_the_srf():
    gaussian, spiked = draw_gaussian(MODEL, dimension=40, rng=3), draw(MODEL, dimension=40, rng=3)
    difference = spiked.W - gaussian.W
    np.testing.assert_allclose(difference[:10, 0], 1.0, atol=1e-15)
    np.testing.assert_allclose(difference[10:, 0], -0.5, atol=1e-15)
    assert not difference[:, 1:].any()
    np.testing.assert_allclose((gaussian.W[:10] ** 2).sum(axis=1), 1.2, rtol=1e-12)


def test_features_have_the_moments_of_equation_3_2():
    """At fixed kappa, over the rest of the input and xi: by quadrature on a fine grid."""
    layer = draw_gaussian(MODEL, dimension=60, rng=0)
    rng = np.random.default_rng(1)
    count, kappa, shift = 40_000, 0.7, 0.2
    X = rng.standard_normal((count, 60))
    X[:, 0] = kappa
    Phi = layer.features(X, shift, rng)
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    rows = {0: (1.0, 1.2, 0.3), 30: (-0.5, 0.8, 0.0)}  # a neuron of each group: r, c, bias
    for neuron, (r, c, bias) in rows.items():
        sigma = np.maximum(r * kappa + bias + shift + np.sqrt(c) * z, 0)
        mu0, mu1 = weight @ sigma, weight @ (z * sigma) / np.sqrt(c)
        mu2 = np.sqrt(weight @ sigma**2 - mu0**2 - c * mu1**2)
        bulk = X @ layer.W[neuron]
        xi = (Phi[:, neuron] - mu0 - mu1 * bulk) / mu2
        # Moments of 40 000 standard Gaussians; five standard errors each.
        assert xi.mean() == pytest.approx(0, abs=5 / np.sqrt(count))
        assert xi.var() == pytest.approx(1, abs=5 * np.sqrt(2 / count))
        assert np.mean(xi**4) == pytest.approx(3, abs=5 * np.sqrt(96 / count))
        assert np.corrcoef(xi, bulk)[0, 1] == pytest.approx(0, abs=5 / np.sqrt(count))


def test_noise_of_neurons_is_independent():
    layer = draw_gaussian(MODEL, dimension=30, rng=0)
    X = np.zeros((50_000, 30))
    Phi = layer.features(X, 0.0, np.random.default_rng(0))
    correlation = np.corrcoef(Phi.T) - np.eye(30)
    # 435 pairs with a standard error of 0.0045: five of these.
    assert np.abs(correlation).max() < 0.023


def test_sigma_never_sees_the_bulk():
    """A student that fails away from kappa's part of its field is evaluated on nodes alone."""
    layer = draw_gaussian(replace(MODEL, r=0.0), dimension=30, rng=0)

    class Watch:
        def __init__(self, student):
            self.student = student

        def moments(self, shift, c):
            assert np.ptp(shift[:, 0]) == 0  # r = 0: nothing of the input is left
            return self.student.moments(shift, c)

    watched = replace(layer, student=Watch(layer.student))
    X = np.random.default_rng(0).standard_normal((10, 30))
    assert watched.features(X, 0.0, np.random.default_rng(0)).shape == (10, 30)

"""Adaptive quadrature: what the rules integrate, and what halving their panels leaves."""

import numpy as np
import pytest
from scipy.special import ndtr

from solvers.adaptive_panels import GAUSS_WEIGHTS, KRONROD_WEIGHTS, halve_panels, panels_between
from solvers.rules import gaussian_density

UNIT = panels_between(np.array([[0.0, 1.0]]))


def adapted(function, start, tol, most=400):
    """Panels for integrands (k, n, 15) of (owner, x), and the integrals."""

    def values(panels):
        return function(panels.owner[:, None], panels.nodes) / gaussian_density(panels.nodes)

    return halve_panels(values, start, tol, most)


@pytest.mark.parametrize("degree", range(0, 26, 2))
def test_degrees_that_are_exact(degree):
    """Kronrod's rule to 22 and Gauss's to 13, and odd ones by symmetry: to rounding of x^n over
    (-1, 1); the next are off by 3e-8 and 3e-4."""
    panel = panels_between(np.array([[-1.0, 1.0]]))
    exact = 2 / (degree + 1)
    for weights, last in ((KRONROD_WEIGHTS, 22), (GAUSS_WEIGHTS, 13)):
        off = abs((panel.half_width * weights * panel.nodes**degree).sum() - exact)
        assert off < 1e-15 if degree <= last else off > 1e-9


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (lambda x: 1.0 * (x > 1 / 3), 2 / 3),
        # the panels begin at the only places where the peak shows
        (lambda x: 1e-4 / ((x - 0.5) ** 2 + 1e-8), 2 * np.arctan(0.5e4)),
        (lambda x: np.abs(x - 0.3) ** -0.5, 2 * (np.sqrt(0.3) + np.sqrt(0.7))),
    ],
    ids=["jump", "peak", "root"],
)
def test_hard_integrands(function, exact):
    tol = 1e-6
    panels, integral = adapted(lambda owner, x: function(x)[None], UNIT, tol)
    assert integral == pytest.approx(exact, abs=tol)
    assert panels.low[1:] == pytest.approx(panels.high[:-1], abs=0)  # in order, without a gap


def test_every_integral_has_panels_of_its_own():
    """A peak each, and one that needs none: as alone."""
    width = np.array([1e-4, 1.0, 1e-2])

    def peaks(owner, x):
        return 1 / (1 + (x / width[owner]) ** 2) / width[owner]

    start = panels_between(np.tile([0.0, 1.0], (3, 1)))
    panels, integrals = adapted(lambda owner, x: np.stack([peaks(owner, x), 0 * x]), start, 1e-9)
    assert integrals == pytest.approx(np.stack([np.arctan(1 / width), 0 * width]), abs=1e-9)
    count = np.bincount(panels.owner)
    assert count[1] == 1
    alone, _ = adapted(lambda owner, x: peaks(owner + 2, x)[None], UNIT, 1e-9)
    assert alone.low.tolist() == panels.select(panels.owner == 2).low.tolist()


@pytest.mark.parametrize("weights", [KRONROD_WEIGHTS, GAUSS_WEIGHTS], ids=["kronrod", "gauss"])
def test_rules_for_a_gaussian_on_panels_of_several_integrals(weights):
    """E |x - a|, on panels that are short around a: more of them for one integral than another."""
    place = np.array([0.0, 1.3])

    def distance(panels):
        return np.abs(panels.nodes - place[panels.owner, None])[None]

    start = panels_between(np.tile([-9.0, 0.0, 9.0], (2, 1)))
    panels, averages = halve_panels(distance, start, np.array([1e-9, 1e-10]), 400)
    assert np.diff(np.bincount(panels.owner)) > 0
    exact = 2 * gaussian_density(place) + place * (2 * ndtr(place) - 1)
    assert averages[0] == pytest.approx(exact, abs=1e-9)
    nodes, weights = panels.rule(weights)
    assert nodes.shape == weights.shape
    found = (weights * np.abs(nodes - place[:, None])).sum(axis=1)
    assert found == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("function", [lambda x: np.sin(1e6 * x), lambda x: np.nan * x])
def test_no_panels_where_so_many_would_not_do(function):
    assert adapted(lambda owner, x: function(x)[None], UNIT, 1e-6, 50) is None

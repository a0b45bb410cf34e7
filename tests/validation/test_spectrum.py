"""Simulated eigenvalues against the spectrum."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GradientStep
from replica.spectra.density import SpectralDensity
from tests.marks import slow
from tests.problems import PUBLISHED as ONE
from validation.cli.commands import outlier_text, outliers_of
from validation.measure import eigenvalues

THREE = GradientStep(student="tanh", target="sin", alpha0=20, eta=2.0, readout=[-1, 0.5, 1.5])
SHAPES = [(1.5, 0.7), (0.6, 2.0)]  # beta on both sides of 1, n < p and n > p


def off_by(step, beta, alpha, dimension, seeds, z):
    """Relative errors of the transform at z, and of the leading eigenvalue."""
    model = step.srf(beta=beta)
    found = replica.spectrum(model, alpha)
    values = eigenvalues(model, alpha=alpha, dimension=dimension, seeds=seeds, rng=3)
    simulated = (1 / (values[..., None] - z)).mean(axis=(0, 1))
    leading = values[:, -1].mean() / (values.shape[1] * found.outliers[0])
    return np.abs(simulated / found.stieltjes(z) - 1), abs(leading - 1), values, found


SMALL = 400, 3, np.array([0.05 + 0.05j, 0.3 + 0.1j, 1 + 0.1j]), 0.03, 0.1
LARGE = (
    1200,
    8,
    np.array([0.05 + 0.02j, 0.1 + 0.05j, 0.3 + 0.05j, 1 + 0.1j, 3.5 + 0.02j]),
    0.01,
    0.02,
)


@pytest.mark.parametrize(
    ("step", "size"),
    [(ONE, SMALL), *slow((THREE, SMALL), (ONE, LARGE), (THREE, LARGE))],
)  # fmt: skip
@pytest.mark.parametrize(("beta", "alpha"), SHAPES)
def test_simulated_eigenvalues(step, size, beta, alpha):
    """d = 400, three draws: 3 % is three times what corrections of order 1/d leave at d = 1200;
    the leading eigenvalue fluctuates like n^(-1/2)."""
    dimension, seeds, z, apart, top = size
    transform, leading, values, found = off_by(step, beta, alpha, dimension, seeds, z)
    assert transform.max() < apart
    assert leading < top
    assert np.mean(values < 1e-9) == pytest.approx(found.atom, abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eta", "dimension", "seeds"),
    [(3.0, 200, 20), (0.5, 300, 20), (0.2, 1200, 8)],
)
def test_simulated_outliers(eta, dimension, seeds):
    """Far from the bulk and near it, where leading order, (9.2) at n -> inf, puts it within or a
    fifth off; 6 standard errors or 6 %, for terms of order 1/d."""
    model = replace(ONE, eta=eta).network(beta=1.0)
    found = replica.spectrum(model, 1.0)
    values = eigenvalues(model.step, alpha=1.0, beta=1.0, dimension=dimension, seeds=seeds, rng=0)
    (drawn,) = found.outliers_among(values).T
    assert np.isfinite(drawn).all()
    (expected,) = found.outliers_at(dimension)
    error = drawn.std(ddof=1) / np.sqrt(seeds)
    assert abs(drawn.mean() - expected) < max(6 * error, 0.06 * expected)
    if eta < 1:
        assert abs(drawn.mean() / (found.outliers[0] * dimension) - 1) > 0.2


def test_an_outlier_of_the_theory_is_compared_with_the_largest_eigenvalue_of_every_draw():
    """Also where that is clear of the bulk in some draws or none, whose mean alone is biased; a
    second outlier with the second largest eigenvalue."""
    bulk = {"edges": np.array([[0.1, 2.0]]), "sharp": np.ones((1, 2), dtype=bool), "atom": 0.0}
    law = SpectralDensity(**bulk, outliers=np.array([2.3, 2.1]))
    drawn = np.ones((4, 100))
    drawn[:, 3], drawn[:, 7] = (1.9, 1.9, 2.0, 2.0), (2.2, 2.1, 3.0, 2.1)
    threshold = 2 * (1 + 4 * (2 / 10) ** (1 / 3) / 20)  # p = 100 eigenvalues above 0
    first, second = outliers_of(law, drawn)
    assert first["threshold"] == second["threshold"] == pytest.approx(threshold)
    assert (first["theory"], first["draws"], first["simulated"]) == (2.3, 1, 3.0)
    assert first["largest"] == pytest.approx(2.35)
    assert first["largest_stderr"] == pytest.approx(np.std([2.2, 2.1, 3.0, 2.1], ddof=1) / 2)
    assert (second["theory"], second["draws"]) == (2.1, 0)
    assert second["largest"] == pytest.approx(1.95)
    assert outlier_text(first, 1, 4) == (
        "outlier: theory at 2.3, simulated largest eigenvalue at 2.35 ± 0.22 (standard error), the "
        "mean over all draws; clear of the bulk (above 2.234) in 1 of 4 draws"
    )
    assert "eigenvalue 2 from the largest on at 1.95 ± " in outlier_text(second, 2, 4)
    (alone,) = outliers_of(replace(law, outliers=np.empty(0)), drawn)
    assert outlier_text(alone, 1, 4) == (
        "outlier: theory none, simulated at 3 in the 1 of 4 draws that have one clear of the bulk "
        "(above 2.234)"
    )


@pytest.mark.slow
def test_no_outlier_where_there_is_none():
    """Without a step there is a bulk alone, and of few samples an outlier is within it."""
    still = replace(ONE, eta=0.0)
    values = eigenvalues(still, alpha=1.0, beta=1.0, dimension=100, seeds=40, rng=0)
    assert replica.spectrum(still.srf(beta=1.0), 1.0).outliers_among(values).shape == (40, 0)
    small = replica.spectrum(replace(ONE, eta=0.3).network(beta=1.0), 1.0)
    assert small.outliers_at(150).size == 0 < small.outliers_at(170).size  # from n = 160.5
    assert small.outliers_at(170)[0] == pytest.approx(small.edges.max(), rel=1e-2)


@pytest.mark.slow
def test_network_is_closer_than_its_srf():
    """Small alpha0: the network's own rows make the histogram, and its theory follows it."""
    step = GradientStep(student="tanh", target="tanh", alpha0=0.3, eta=6.0)
    values = eigenvalues(step, alpha=2.0, beta=1.0, dimension=300, seeds=3, rng=1)
    z = np.array([0.02 + 0.1j, 0.1 + 0.1j, 0.5 + 0.1j, 1 + 0.1j])
    simulated = (1 / (values[..., None] - z)).mean(axis=(0, 1))
    own, published = (
        np.abs(replica.spectrum(model, 2.0).stieltjes(z) / simulated - 1)
        for model in (step.network(beta=1.0), step.srf(beta=1.0))
    )
    assert own.max() < 0.04  # of order 1/d
    assert (published > 0.1).all()
    assert (own < published / 4).all()


@pytest.mark.slow
def test_a_smaller_outlier_may_leave_the_bulk_first():
    step = GradientStep(student="relu", target="he1+he2/2", alpha0=2, eta=1.41, readout=[-1, 1])
    found = replica.spectrum(step, beta=1.0, alpha=2.0, theory="network", time_limit=600)
    large, small = found.outliers_from
    assert small < large
    assert found.outliers[0] > found.outliers[1]
    (alone,) = found.outliers_at(int((small + large) / 4))  # the smaller one, at n = 2 p
    assert alone < min(found.outliers_at(10))

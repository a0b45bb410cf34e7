"""Which outliers of a spectrum are eigenvalues of their own at the size of a simulation."""

import numpy as np
import pytest

import replica
from validation.measure import eigenvalues


@pytest.mark.slow
def test_outliers_from_is_where_simulated_ones_leave_the_bulk():
    step = replica.GradientStep(
        student="relu", target="sin", alpha0=4, eta=1.0, readout=[-1, 0.5, 2]
    )
    model = step.srf(beta=1.0)
    found = replica.spectrum(model, 2.0)
    assert found.outliers_from[0] < found.outliers_from[1] < 400 < found.outliers_from[2]
    values = eigenvalues(model, alpha=2.0, dimension=200, seeds=2, rng=0, beta=None)
    # the top of the bulk itself moves by n^(-2/3), 2 %
    assert ((values > 1.05 * found.edges.max()).sum(axis=1) == 2).all()


def test_just_above_its_size_an_outlier_lies_just_above_the_bulk():
    model = replica.SpikedRandomFeatures(student="tanh", target="sin", r=0.2, c=1.0, gamma=0.9)
    found = replica.spectrum(model, 2.0)
    (n,) = found.outliers_from
    assert 80 < n < 92
    largest = [
        eigenvalues(model, alpha=2.0, dimension=d, seeds=6, rng=0, beta=None).max(axis=1).mean()
        for d in (20, 200)
    ]
    top = found.edges.max()
    assert largest[0] < 1.02 * top  # n = 40
    assert 1.8 < largest[1] / top < 2.0  # n = 400, where (9.2) has its root at 1.89


@pytest.mark.slow
def test_a_tail_that_ends_at_no_sharp_edge_holds_no_outlier():
    """He_3 gives the network's bulk a tail: it falls below 1e-10 at 426 alone, and an eigenvalue of
    110 among 250 is far beyond the last of it.
    Terms of order 1/d leave 10 %, 4.4 standard errors of 40 draws (1 % at d = 500)."""
    step = replica.GradientStep(student="tanh", target="he1 + he2 + he3/2", alpha0=2, eta=2.0)
    found = replica.spectrum(step.network(beta=1.0), 2.0)
    assert not found.sharp[-1, 1]
    assert found.edges.max() > 400
    values = eigenvalues(step, alpha=2.0, beta=1.0, dimension=250, seeds=40, rng=0)
    (drawn,) = found.outliers_among(values).T
    (expected,) = found.outliers_at(250)
    assert np.isfinite(drawn).all()
    assert abs(drawn.mean() - expected) < 6 * drawn.std(ddof=1) / np.sqrt(40)
    assert found.outliers_from < 100 < found.edges.max()


def test_outliers_within_a_tail():
    """Sizes grow with the place.  The expected ones are of averages over kappa on a contour off the
    real line, where no pole is near; 2 % is what a place off the real line costs at 24."""
    model = replica.SpikedRandomFeatures(student="x + x**2/2", target="sin", r=1, c=1, gamma=0.9)
    found = replica.spectrum(model, 2.0)
    assert not found.sharp[-1, 1]
    sizes = [found._samples_at(x, 1)[0] for x in np.linspace(18, 45, 30)]
    assert (np.diff(sizes) > 0).all()
    for x, expected in ((24, 9.46), (30, 14.81), (40, 23.18)):
        assert found._samples_at(x, 1)[0] == pytest.approx(expected, rel=0.02)

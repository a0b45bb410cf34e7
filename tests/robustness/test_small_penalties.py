"""Readouts at penalties so small that the Gram matrix over lam has few digits left."""

import numpy as np
import pytest

from replica import loss
from replica.fit import fit_convex_readout
from solvers.results import ConvergenceError


def design(n, p):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p))
    hidden = x @ rng.standard_normal((p, p)) / np.sqrt(p) + x[:, :1]
    return np.tanh(hidden), np.sin(x[:, 0]) + 0.1 * rng.standard_normal(n)


def fit(Phi, y, name, lam):
    sizes, penalties = np.array([len(y)]), np.array([lam])
    return fit_convex_readout(lambda: [(Phi, y)], sizes, penalties, loss(name)).readouts[:, 0, 0]


@pytest.mark.parametrize(
    ("name", "lam"), [("quantile:0.3", 1e-4), ("absolute", 1e-6), ("huber:1", 1e-9)]
)
def test_fewer_samples_than_features_are_interpolated_with_the_least_norm(name, lam):
    """The limit lam -> 0 of every such loss: met exactly from a small lam on by those with a kink,
    up to lam over the least eigenvalue of Z Z', 1e-3, by the others."""
    Phi, y = design(40, 60)
    least = np.linalg.lstsq(Phi / np.sqrt(60), y, rcond=None)[0]
    assert np.abs(fit(Phi, y, name, lam) - least).max() < 1e-5 * np.abs(least).max()


@pytest.mark.parametrize("name", ["quantile:0.3", "absolute", "huber:1"])
@pytest.mark.parametrize("n", [60, 120])
def test_a_thousandth_of_a_small_penalty_changes_the_loss_by_little(name, n):
    """The loss at the minimum is concave and increasing in lam: between two penalties it lies below
    lam |a|^2 / 2 of the smaller one's readout."""
    Phi, y = design(n, 60)
    small, smaller = (fit(Phi, y, name, lam) for lam in (1e-4, 1e-5))
    losses = [loss(name)(y, Phi @ a / np.sqrt(60)).sum() for a in (small, smaller)]
    price = 1e-4 / 2 * (smaller @ smaller - small @ small)
    # 1e-8 of the objective, a few, is what a readout is known to
    assert -1e-7 * max(losses[0], 1.0) <= losses[0] - losses[1] <= price + 1e-7


@pytest.mark.parametrize("lam", [1e-10, 1e-13, 1e-20, 1e-30])
def test_separable_labels_give_the_widest_margin_or_none(lam):
    """It does not depend on lam.  Judged by a rounded objective, any readout that separates would
    do: at 1e-20 one that is a third off."""
    Phi, y = design(14, 12)
    y = np.sign(y)
    widest = fit(Phi, y, "hinge", 1e-6)
    try:
        found = fit(Phi, y, "hinge", lam)
    except ConvergenceError:
        assert lam <= 1e-13
    else:  # 1e-8 of the objective is 1e-4 of the readout
        assert np.abs(found - widest).max() < 1e-4 * np.abs(widest).max()


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n", [1, 20])
def test_labels_of_one_sign_are_met_by_the_intercept(name, n):
    """The objective is 0 there, and nothing is known relative to it."""
    Phi, _ = design(n, 12)
    of = fit_convex_readout(
        lambda: [(Phi, np.ones(n))], np.array([n]), np.array([0.1]), loss(name), intercept=True
    )
    assert np.abs(of.readouts).max() < 1e-6
    assert of.intercepts[0, 0] >= 1 - 1e-6

"""Ridge on nested designs: n x n and p x p systems against the equation they solve."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from replica import InvalidArgument
from replica.fit import fit_readout, fit_ridge, predict

LAM = np.array([1e-3, 0.1, 10.0])
P = 50
SIZES = np.array([80, 20, 50, 20, 65])  # neither sorted nor distinct


def design(seed=0, offset=0.0, rows=100):
    """Features with a mean, their labels, and both in uneven blocks."""
    rng = np.random.default_rng(seed)
    Phi, y = rng.standard_normal((rows, P)) + offset, rng.standard_normal(rows) + offset
    edges = [0, 17, 50, 51, rows]
    blocks = [(Phi[i:j], y[i:j]) for i, j in pairwise(edges)]
    return Phi, y, lambda: blocks


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "p"), [(900, 600), (600, 900)])
def test_fits_hold_as_many_matrices_as_are_allowed_for(n, p, intercept):
    """At most 2 of p x p, or of n x n beside the features, an intercept's one more, at any number
    of penalties: ``bytes_needed``; blocks of 100 samples and readouts take .2 of one."""
    Phi = np.random.default_rng(0).standard_normal((n, p))

    def blocks():
        return ((Phi[i : i + 100], Phi[i : i + 100, 0]) for i in range(0, n, 100))

    tracemalloc.start()
    fit_ridge(blocks, np.array([n]), np.array([0.1, 0.2, 0.3]), intercept=intercept)
    peak = tracemalloc.get_traced_memory()[1] / 8
    tracemalloc.stop()
    allowed = (2 + intercept) * min(n, p) ** 2 + (n * p if n < p else 0)
    assert peak < allowed + 0.3 * min(n, p) ** 2


@pytest.mark.parametrize("intercept", [False, True])
def test_readouts_solve_the_normal_equations(intercept):
    Phi, y, blocks = design(offset=1.0)
    found = fit_ridge(blocks, SIZES, LAM, intercept=intercept)
    assert found.readouts.shape == (P, len(SIZES), len(LAM))
    for i, n in enumerate(SIZES):
        for j, lam in enumerate(LAM):
            a, b = found.readouts[:, i, j], found.intercepts[i, j]
            residual = y[:n] - Phi[:n] @ a / np.sqrt(P) - b
            # (1.2) as a gradient.  Condition numbers stay below 1e5 and labels are of order 1.
            np.testing.assert_allclose(Phi[:n].T @ residual / np.sqrt(P), lam * a, atol=1e-10)
            assert found.train[i, j] == pytest.approx((residual**2).mean(), rel=1e-10)
            # Beyond n = p, the n x n weights have a part 1 / lam = 1e3 larger that cancels here.
            assert residual.sum() == pytest.approx(0, abs=1e-9) if intercept else b == 0


def test_small_training_errors_keep_their_digits():
    """Residuals 1e9 times smaller than the labels, and squares 1e18: nothing is subtracted."""
    Phi, y, blocks = design(seed=2)
    n, lam = np.array([30]), np.array([1e-8])
    exact = lam * np.linalg.solve(Phi[:30] @ Phi[:30].T / P + 1e-8 * np.eye(30), y[:30])
    found = fit_ridge(blocks, n, lam)
    # The condition number of the system is below 1e3.
    np.testing.assert_allclose(found.train.item(), (exact**2).mean(), rtol=1e-10)


@pytest.mark.parametrize("p", [3, 5])
def test_a_singular_system_is_refused(p):
    ones = [(np.ones((4, p)), np.ones(4))]
    with pytest.raises(InvalidArgument, match="singular in double precision") as caught:
        fit_ridge(lambda: ones, np.array([4]), np.array([0.1, 1e-18]))
    assert (caught.value.name, caught.value.value) == ("lam", 1e-18)


def test_predictions():
    Phi, _, blocks = design(seed=4)
    found = fit_ridge(blocks, SIZES, LAM, intercept=True)
    expected = Phi @ found.readouts[:, 1, 2] / np.sqrt(P) + found.intercepts[1, 2]
    np.testing.assert_allclose(predict(Phi, found)[:, 1, 2], expected, rtol=1e-12)


def test_trained_bias_minimises_the_objective():
    """No bias of a fine grid has a lower objective than the one found, at any point."""
    rng = np.random.default_rng(1)
    Z, y = rng.standard_normal((40, 15)), rng.standard_normal(40) + 1
    sizes, lam = np.array([40, 20]), np.array([0.2, 2.0])

    def features(bias):
        return lambda: [(np.tanh(Z + bias), y)]

    def objective(n, penalty, bias):
        Phi = np.tanh(Z[:n] + bias)
        system = Phi.T @ Phi / 15 + penalty * np.eye(15)
        readout = np.linalg.solve(system, Phi.T @ y[:n] / np.sqrt(15))
        residual = y[:n] - Phi @ readout / np.sqrt(15)
        return residual @ residual + penalty * readout @ readout

    found = fit_readout(features, sizes, lam, intercept=False, train_bias=True)
    for (i, j), bias in np.ndenumerate(found.bias):
        n, penalty = sizes[i], lam[j]
        lowest = min(objective(n, penalty, t) for t in np.linspace(-8, 8, 400))
        # The minimum is found to 1e-6 of the bias, where the objective is flat to 1e-11.
        assert objective(n, penalty, bias) <= lowest + 1e-9
        residual = y[:n] - predict(features(bias)()[0][0], found)[:n, i, j]
        assert found.train[i, j] == pytest.approx((residual**2).mean(), rel=1e-10)

    # ten samples under that penalty are better fitted by a constant: a bias without bound
    few = fit_readout(features, np.array([10]), lam[1:], intercept=False, train_bias=True)
    assert np.isnan(few.train).all()
    assert np.isnan(predict(features(0.0)()[0][0], few)).all()

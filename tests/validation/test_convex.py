"""Readouts of convex losses: optimality, and agreement of theory and simulation."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from replica import loss
from replica.fit import fit_convex_readout, predict
from replica.fit.convex_readout import minimise_objective
from solvers.results import ConvergenceError
from tests.problems import FLIPPED, OUTLIERS
from validation import ladder, simulate
from validation.run.cells import draw_layer

NAMES = ["huber:0.3", "absolute", "quantile:0.3", "logistic", "hinge", "squared_hinge"]


def data(n, p, binary):
    """Correlated features and labels that they partly explain."""
    rng = np.random.default_rng(n + p)
    Phi = np.tanh(rng.standard_normal((n, 20)) @ rng.standard_normal((20, p)) / 4)
    y = 2 * Phi[:, 0] + 0.7 * rng.standard_normal(n) + 0.2
    return Phi, np.where(y > 0, 1.0, -1.0) if binary else y


def fitted(Phi, y, lam, of):
    """The readout of all samples at one penalty."""
    return fit_convex_readout(lambda: [(Phi, y)], np.array([len(y)]), np.array([lam]), of)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(90, 60), (40, 60)])
@pytest.mark.parametrize("intercept", [False, True])
def test_objective_is_minimal(name, shape, intercept):
    """The gap is below 1e-8, and no random direction leads down, to that gap."""
    of = loss(name)
    Phi, y = data(*shape, of.kind == "margin")
    Z = Phi / np.sqrt(shape[1])
    found = minimise_objective(Z, y, 0.05, of, intercept)
    assert found.gap < 1e-8 * found.objective

    def objective(a, b):
        return of(y, Z @ a + b).sum() + 0.025 * a @ a

    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        a = found.readout + size * rng.standard_normal(shape[1])
        b = found.intercept + intercept * size * rng.standard_normal()
        assert objective(a, b) >= found.objective * (1 - 1e-8)


def test_logistic_against_a_general_minimiser():
    """scipy's L-BFGS to a gradient of 1e-10; readouts agree to the square root of that gap."""
    Phi, y = data(80, 30, binary=True)
    of, Z = loss("logistic"), Phi / np.sqrt(30)

    def objective(a):
        t = y * (Z @ a)
        return of.value(t).sum() + 0.05 * a @ a, Z.T @ (y * of.derivative(t)) + 0.1 * a

    reference = minimize(objective, np.zeros(30), jac=True, tol=1e-14, options={"gtol": 1e-10})
    found = fitted(Phi, y, 0.1, of)
    assert found.readouts[:, 0, 0] == pytest.approx(reference.x, abs=1e-5)


def test_absolute_loss_tends_to_a_linear_program():
    """At a small penalty the least sum of residuals, by scipy's simplex."""
    Phi, y = data(60, 10, binary=False)
    Z = Phi / np.sqrt(10)
    n, p = Z.shape
    rows = np.block([[Z, -np.eye(n)], [-Z, -np.eye(n)]])
    bounds = [(None, None)] * p + [(0, None)] * n
    program = linprog([0] * p + [1] * n, rows, np.concatenate([y, -y]), bounds=bounds)
    for lam in (1e-4, 1e-8):
        found = fitted(Phi, y, lam, loss("absolute"))
        # the penalty itself is lam/2 |a|^2, and 1e-8 of the objective is left
        excess = np.abs(y - predict(Phi, found)[:, 0, 0]).sum() - program.fun
        assert -1e-8 < excess < lam * (found.readouts**2).sum() + 1e-8 * program.fun


def test_a_readout_that_is_not_shown_optimal_is_refused():
    """Samples that are all met at a vanishing penalty: rounding is as large as the objective."""
    Phi, y = data(40, 60, binary=False)
    with pytest.raises(ConvergenceError, match="within"):
        fitted(Phi, y, 1e-16, loss("absolute"))


# In the shared Monte Carlo


OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.05, 0.5], dimension=40, seeds=3, rng=5)


def test_designs_are_nested_and_shared():
    """Every alpha takes the first rows of the largest design: alone, beside it and in any order."""
    options = OPTIONS | {"test_samples": 300, "loss": "absolute"}
    both = simulate(OUTLIERS, **options)
    turned = simulate(OUTLIERS, **(options | {"alpha": [1.5, 0.5]}))
    alone = simulate(OUTLIERS, **(options | {"alpha": [1.5]}))
    for name in ("test_error", "train_error"):
        # fits are known to 1e-8 of the objective only, but the same numbers go in
        first, other, one = (found.errors[name] for found in (both, turned, alone))
        np.testing.assert_allclose(other[:, ::-1], first, rtol=1e-12)
        np.testing.assert_allclose(one[:, 0], first[:, 1], 1e-12)


def test_a_wide_huber_is_ridge_regression():
    """Huber's loss with delta above all residuals: another solver on the same draws."""
    ridge, wide = (simulate(OUTLIERS, **OPTIONS, loss=of) for of in (None, "huber:1e6"))
    # the objective is known to 1e-11 (newton's own tolerance), the readout to the root of it
    np.testing.assert_allclose(wide.test_error, ridge.test_error, rtol=1e-4)
    np.testing.assert_allclose(wide.train_error, ridge.train_error, rtol=1e-4)
    np.testing.assert_allclose(
        wide.errors["train_loss"], ridge.errors["train_error"] / 2, rtol=1e-4
    )
    assert {*ridge.errors} == {"test_error", "train_error"}


def test_measured_values():
    """What a cell measures, from its draws anew."""
    found = simulate(FLIPPED, **OPTIONS, loss="logistic", test_samples=200)
    experiment = found.experiment
    _, inputs, _, noise, test, _, fresh = experiment.seed(1).spawn(7)
    layer = draw_layer(experiment, 1)
    X = np.random.default_rng(inputs).standard_normal((60, 40))
    Phi, y = layer.features(X), layer.labels(X, np.random.default_rng(noise))
    of = loss("logistic")
    fits = fit_convex_readout(lambda: [(Phi, y)], experiment.sizes, found.lam, of)
    new = np.random.default_rng(test).standard_normal((200, 40))
    labels = layer.labels(new, np.random.default_rng(fresh))[:, None, None]
    f = predict(layer.features(new), fits)
    expected = {
        "loss_error": of(labels, f).mean(axis=0),
        "classification_error": ((labels * f < 0) + 0.5 * (f == 0)).mean(axis=0),
        "train_loss": [of(y[:n, None], predict(Phi[:n], fits)[:, i]).mean(axis=0)
                       for i, n in enumerate(experiment.sizes)],
    }  # fmt: skip
    for name, value in expected.items():
        # the same floating-point operations but for their order
        np.testing.assert_allclose(found.errors[name][1], value, rtol=1e-12)
    dataset = found.dataset()
    assert dataset.loss == "logistic"
    assert dataset.classification_error_by_seed.dims[0] == "seed"


def test_ladder_of_a_loss():
    """The limit of three sizes; allowance and standard errors as for ridge regression."""
    found = ladder(OUTLIERS, alpha=1.0, lam=0.3, dimensions=[40, 80, 120], seeds=6, rng=0,
                   loss="huber:0.3")  # fmt: skip
    assert found.agrees, found.verdict

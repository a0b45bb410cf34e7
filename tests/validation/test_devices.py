"""The Monte Carlo in arrays of another library: the array standard's, torch's, a GPU's."""

import importlib.util
from functools import partial

import numpy as np
import pytest

from replica import GradientStep, InvalidArgument, SpikedRandomFeatures
from replica.fit import fit_ridge
from solvers import arrays
from validation import simulate

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, intercept=True)
SMALL = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=40, seeds=2, rng=3)


@pytest.fixture
def strict(monkeypatch):
    """A device whose arrays know the array standard and nothing else."""
    xp = pytest.importorskip("array_api_strict")
    host = arrays.to_device
    monkeypatch.setattr(
        arrays,
        "to_device",
        lambda x, device: xp.asarray(x) if device == "strict" else host(x, device),
    )
    monkeypatch.setattr("validation.run.monte_carlo.check_device", lambda device: device)
    return xp


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_in_standard_arrays(strict, intercept):
    rng = np.random.default_rng(0)
    Phi, y = rng.standard_normal((30, 15)) + 0.5, rng.standard_normal(30)
    sizes, lam = np.array([10, 30]), np.array([0.01, 1.0])
    options = dict(intercept=intercept)
    host = fit_ridge(lambda: [(Phi, y)], sizes, lam, **options)
    moved = [(strict.asarray(Phi), strict.asarray(y))]
    found = fit_ridge(lambda: moved, sizes, lam, **options)
    for mine, theirs in zip(host, found, strict=True):
        # Condition numbers below 1e5: different algorithms agree to 1e-10.
        np.testing.assert_allclose(arrays.to_host(theirs), mine, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("student", ["tanh", "relu", "erf", "sin"])
@pytest.mark.parametrize("simulated", ["network", "gaussian"])
def test_simulation_in_standard_arrays(strict, student, simulated):
    step = GradientStep(student=student, target="sin", alpha0=2, eta=1.0)
    options = SMALL | dict(beta=1.0, simulated=simulated)
    host = simulate(step, **options)
    found = simulate(step, device="strict", **options)
    # The same draws; rounding grows by condition numbers below 1e5.
    np.testing.assert_allclose(found.errors["test_error"], host.errors["test_error"], rtol=1e-9)
    np.testing.assert_allclose(found.errors["train_error"], host.errors["train_error"], rtol=1e-9)


def test_singular_systems_are_refused_in_standard_arrays(strict):
    for p in (3, 5):
        ones = strict.ones((4, p)), strict.ones(4)
        with pytest.raises(InvalidArgument, match="singular"):
            fit_ridge(partial(iter, [ones]), np.array([4]), np.array([1e-18]))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("device", ["cpu:0", "cuda"])
def test_simulation_in_torch(device):
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch.cuda.is_available() is False")
    host = simulate(MODEL, **SMALL)
    found = simulate(MODEL, device=device, **SMALL)
    # The same draws; rounding grows by condition numbers below 1e5.
    np.testing.assert_allclose(found.errors["test_error"], host.errors["test_error"], rtol=1e-9)
    np.testing.assert_allclose(found.errors["train_error"], host.errors["train_error"], rtol=1e-9)

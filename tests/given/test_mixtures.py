"""Inputs of a Gaussian mixture, and labels of its components."""

from dataclasses import replace

import numpy as np
import pytest

from replica import FirstLayer, GaussianMixture, solve
from solvers.results import Status
from validation import compare


def layer(d=60, **changes):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((d, d)) / np.sqrt(d)
    weights[:, 0] += rng.standard_normal(d)
    known = {"weights": weights, "student": "relu", "target": "sin(2*z1)", "noise": 0.1}
    return FirstLayer(**known | {"directions": np.eye(d)[1]} | changes)


def mixture(d=60):
    means = 1.5 * np.eye(d)[[0, 0]]
    means[1] *= -1
    covariances = [np.eye(d), np.diag(np.linspace(0.3, 1.7, d))]
    return GaussianMixture(means=means, covariances=covariances, fractions=[2, 3])


@pytest.mark.parametrize("d", [60, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "of",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"target": "classes:1,-1", "directions": None, "noise": 0.0},
    ],
    ids=["sin", "classes"],
)
def test_theory_and_simulation_agree_on_a_mixture(d, of):
    at = {"samples": [d // 2, 2 * d], "lam": 0.1, "seeds": 60, "rng": 0, "workers": 1}
    compared = compare(layer(d, inputs=mixture(d), **of), **at)
    for check in compared.checks.values():
        # of 16 means; the theory itself is off by some 1 / n
        allowed = 3.5 * check.stderr + check.theory / at["samples"][0]
        assert (np.abs(check.simulated - check.theory) < allowed).all()


@pytest.mark.parametrize(
    "inputs",
    [
        GaussianMixture(means=[[0.0]], covariances=[[1.0]]),
        GaussianMixture(means=np.zeros((2, 60)), covariances=np.eye(60), fractions=[1, 3]),
        GaussianMixture(means=[[2.0], [0.0]], fractions=[0, 1]),
    ],
)
def test_components_that_are_alike_are_one(inputs):
    plain, mixed = layer(), layer(inputs=inputs)
    errors = [solve(one, samples=90, lam=0.1).test_error for one in (plain, mixed)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-8)


def test_special_directions_are_those_along_which_pre_activations_vary():
    """A direction in which rows are a little alike, and inputs wide."""
    d, rng = 160, np.random.default_rng(0)
    weights = rng.standard_normal((120, d)) / np.sqrt(d)
    weights[:, 3] += 0.1
    wide = np.ones(d)
    wide[3] = 25.0
    law = GaussianMixture(means=np.zeros((1, d)), covariances=np.diag(wide))
    shapes = [
        layer(d, weights=weights, inputs=inputs).special.shape[1]
        for inputs in (None, law, GaussianMixture(means=np.zeros((1, d)), covariances=np.eye(d)))
    ]
    assert shapes == [1, 2, 1]
    assert abs(layer(d, weights=weights, inputs=law).special[3, 1]) > 0.8


def test_inputs_that_are_their_means_alone():
    """Classes told apart without noise: the error vanishes with the penalty."""
    means = 3 * np.eye(20)[[0, 0]] * [[1], [-1]]
    law = GaussianMixture(means=means, covariances=np.zeros((20, 20)))
    of = {"target": "classes:1,-1", "directions": None, "noise": 0.0}
    point = solve(layer(20, inputs=law, **of), samples=4000, lam=1e-2)
    assert point.converged
    assert point.classification_error < 1e-6
    assert point.test_error < 1e-6


def half_trained(means, covariances=None, fractions=None, steps=200, rate=0.3):
    """A tanh layer, d = 120, p = 160, after steps of gradient descent on 256 fresh inputs each."""
    d, p, rng = 120, 160, np.random.default_rng(2)
    law = GaussianMixture(means=means, covariances=covariances, fractions=fractions).within(d)
    outputs = 1 if len(means) == 2 else len(means)
    weights, bias = rng.standard_normal((p, d)) / np.sqrt(d), 0.3 * rng.standard_normal(p)
    readout = rng.standard_normal((p, outputs)) / np.sqrt(p)
    for _ in range(steps):
        x, component = law.draw(256, rng)
        y = 1.0 - 2 * component[:, None] if outputs == 1 else np.eye(outputs)[component]
        features = np.tanh(x @ weights.T + bias)
        residual = features @ readout - y
        backwards = residual @ readout.T * (1 - features**2)
        weights -= rate * backwards.T @ x / 256
        bias -= rate * backwards.mean(axis=0)
        readout -= 0.05 * features.T @ residual / 256
    target = "classes:1,-1" if outputs == 1 else "classes"
    return FirstLayer(weights=weights, bias=bias, student="tanh", target=target, inputs=law)


UNEQUAL = dict(
    means=[[1.5, 0], [-1, 1]],
    covariances=[[[1, 0.4], [0.4, 1.5]], [[0.6, 0], [0, 1]]],
    fractions=[0.4, 0.6],
)


@pytest.mark.parametrize(
    ("samples", "lam", "simulated", "stderr"),
    [
        (800, 0.02, 0.06892, 0.00023),
        pytest.param(800, 0.3, 0.06531, 0.00021, marks=pytest.mark.slow),
    ],
)
def test_classes_of_a_half_trained_layer(samples, lam, simulated, stderr):
    """Fits of 100 readouts, tested on 20000 inputs each.  Outputs that were Gaussian in each class
    would have .0426 at lam = .02, less than Bayes' error, .0525 +- .0004."""
    trained = half_trained(**UNEQUAL)
    point = solve(trained, samples=samples, lam=lam)
    assert point.converged
    # the theory is off by some 1 / p
    assert abs(point.classification_error - simulated) < 3 * stderr + 0.025 * simulated
    plain = solve(replace(trained, beside=1), samples=samples, lam=lam)
    assert plain.status is Status.OUTPUTS
    assert np.isnan(plain.classification_error)


@pytest.mark.parametrize(
    ("steps", "is_flagged"), [(0, False), pytest.param(280, True, marks=pytest.mark.slow)]
)
def test_several_classes_of_a_half_trained_layer(steps, is_flagged):
    """Simulated at .298 +- .001 after 300 steps (20 readouts), where outputs that were Gaussian in
    each class would have .276; without a step at .3487 +- .0016 (10), in theory .3482."""
    means = 2 * np.eye(6, 120)
    point = solve(half_trained(means, steps=steps, rate=1.0), samples=1500, lam=0.02)
    assert point.converged != is_flagged
    if not is_flagged:
        assert point.classification_error == pytest.approx(0.3487, abs=3 * 0.0016)


@pytest.mark.parametrize(
    ("apart", "simulated", "stderr"),
    [(3.5, 6.0e-4, 0.2e-4), (4.0, np.nan, np.nan)],
)
def test_classes_that_few_drawn_inputs_are_wrong_of(apart, simulated, stderr):
    """Outputs that were Gaussian in each class would have 1.2e-4 and 8e-6, less than Bayes' errors
    2.3e-4 and 3.2e-5; simulated by 8 readouts on 1e5 inputs each."""
    means = apart * np.array([[1], [-1]]) * np.eye(60)[:1]
    weights = np.random.default_rng(1).standard_normal((100, 60)) / np.sqrt(60)
    of = {"target": "classes:1,-1", "inputs": GaussianMixture(means=means)}
    point = solve(FirstLayer(weights=weights, student="tanh", **of), samples=20000, lam=0.02)
    assert point.converged != np.isnan(simulated)
    if point.converged:
        assert abs(point.classification_error - simulated) < 4 * stderr


def test_directions_of_the_target_do_not_tell_components_apart_again():
    v = np.linalg.qr(np.random.default_rng(3).standard_normal((60, 1)))[0]
    inputs = GaussianMixture(means=1.5 * np.array([v[:, 0], -v[:, 0]]))
    alike = layer(target="sign", directions=v, noise=0.0, inputs=inputs)
    assert alike.component_directions.size == 0
    beside = layer(target="classes:1,-1", directions=None, noise=0.0, inputs=inputs)
    assert abs(v[:, 0] @ beside.component_directions[:, 0]) == pytest.approx(1)

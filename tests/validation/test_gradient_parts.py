"""The parts of the first gradient on mixtures: sizes, and exponents in the dimension."""

import numpy as np
import pytest

from validation.mixtures import gradient_parts, mixture, predicted_slopes, regression


def task_of_exponent(s):
    return lambda n, rng: regression(mixture(n, eigenvalues=float(n) ** s), aligned=True, rng=rng)


def test_parts_add_up_to_the_gradient():
    task = task_of_exponent(0.4)(200, 0)
    found = gradient_parts(task, student="tanh", width=150, samples=180, rng=3)
    layer, inputs = map(np.random.default_rng, np.random.SeedSequence(3).spawn(2))
    F = layer.standard_normal((150, 200)) / np.sqrt(task.trace)
    w = layer.standard_normal(150) / np.sqrt(150)
    X, y = task.draw(180, inputs)
    h = np.mean(1 - np.tanh(np.random.default_rng(0).standard_normal(10**6)) ** 2)
    spike = h * np.outer(w, X.T @ y) / 180 / np.sqrt(150)
    fields = F @ X.T
    residual = y - w @ np.tanh(fields) / np.sqrt(150)
    whole = (w[:, None] * residual * (1 - np.tanh(fields) ** 2)) @ X / 180 / np.sqrt(150)
    # b = .98 rather than 1, and a sampled slope: a percent.
    assert found.spike == pytest.approx(np.linalg.norm(spike, 2), rel=0.02)
    assert found.bulk == pytest.approx(np.linalg.norm(whole - spike, 2), rel=0.05)
    assert found.bulk < found.spike / 3


@pytest.mark.parametrize(("student", "s"), [("tanh", 0.0), ("relu", 0.0), ("tanh", 0.8)])
def test_gradient_exponents(student, s):
    """Measured at n = m = k = 100 to 800 against the predicted exponents."""
    widths, norms = [100, 200, 400, 800], []
    for n, root in zip(widths, np.random.SeedSequence(0).spawn(4), strict=True):
        draws = [child.spawn(2) for child in root.spawn(4)]
        sizes = {"student": student, "width": n, "samples": n}
        parts = [
            gradient_parts(task_of_exponent(s)(n, own), rng=rng, **sizes) for own, rng in draws
        ]
        norms.append(np.mean(parts, axis=0))
    spike, bulk = np.polyfit(np.log(widths), np.log(norms), 1)[0]
    predicted = predicted_slopes(student, spike_exponent=s)
    # Logarithms of the largest of k Gaussian weights take some .1 off the bulk's, and theta is
    # n^s + O(1): measured within .06 and .13 up to n = 1200.
    assert spike == pytest.approx(predicted.spike, abs=0.1)
    assert bulk == pytest.approx(predicted.bulk, abs=0.16)


def test_predicted_exponents():
    assert predicted_slopes("relu", spike_exponent=0.8).bulk == pytest.approx(-0.2)
    assert predicted_slopes("sigmoid", spike_exponent=0.8).bulk == pytest.approx(-0.3)
    assert predicted_slopes("he1", spike_exponent=0.8).bulk == pytest.approx(-0.6)

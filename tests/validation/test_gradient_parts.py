"""The parts of the first gradient on mixtures: sizes, and exponents in the dimension."""

import numpy as np
import pytest

from replica import activation
from tests.marks import slow
from validation.mixtures import expand, mixture, regression
from validation.mixtures.hermite_model import bulk_scale, initial, stepped


def gradient_parts(task, *, student, width, samples, rng):
    """Operator norms of u v^T and of Delta, the two parts of the gradient of one draw."""
    layer, inputs = np.random.SeedSequence(rng).spawn(2) if isinstance(rng, int) else rng.spawn(2)
    F, w = initial(task, width, layer)
    X, y = batch = task.draw(samples, np.random.default_rng(inputs))
    b = bulk_scale(task)
    slope = expand(student, order=2, b=b).coefficients[1] / b  # E z sigma(b z) = b E sigma'(b z)
    u, v = slope * w / np.sqrt(width), X.T @ y / samples
    rest = stepped(F, w, batch, activation(student), 1.0) - F - np.outer(u, v)
    return float(np.linalg.norm(u) * np.linalg.norm(v)), float(np.linalg.norm(rest, 2))


def predicted_slopes(student, s):
    """Exponents of both norms in n, for labels that excite all degrees.  docs/theory.md 12"""
    h = expand(student, order=8).coefficients
    # a smaller coefficient is none, but for rounding
    j = next((j for j in range(2, 8) if abs(h[j]) > 1e-10), np.inf)
    return (s - 1) / 2, max(s / 2 - 1, j * (s - 1) / 2)


def task_of_exponent(s):
    return lambda n, rng: regression(mixture(n, eigenvalues=float(n) ** s), aligned=True, rng=rng)


def test_parts_add_up_to_the_gradient():
    task = task_of_exponent(0.4)(200, 0)
    norm_spike, norm_bulk = gradient_parts(task, student="tanh", width=150, samples=180, rng=3)
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
    assert norm_spike == pytest.approx(np.linalg.norm(spike, 2), rel=0.02)
    assert norm_bulk == pytest.approx(np.linalg.norm(whole - spike, 2), rel=0.05)
    assert norm_bulk < norm_spike / 3


@pytest.mark.parametrize(
    ("student", "s"),
    [
        ("tanh", 0.0),
        *slow(("relu", 0.0), ("tanh", 0.8)),
    ],
)
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
    predicted_spike, predicted_bulk = predicted_slopes(student, s)
    # Logarithms of the largest of k Gaussian weights take some .1 off the bulk's, and theta is
    # n^s + O(1): measured within .06 and .13 up to n = 1200.
    assert spike == pytest.approx(predicted_spike, abs=0.1)
    assert bulk == pytest.approx(predicted_bulk, abs=0.16)

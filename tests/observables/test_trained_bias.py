"""The trained bias: the slope of the training objective, and where that is lowest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import replica
from replica import GradientStep, MultiIndex, SpikedRandomFeatures
from replica.convex import training_objective
from replica.observables.evaluate_model import evaluate_at_bias

ONE = SpikedRandomFeatures(student="relu", target="sign", r=1.5, c=1.3, gamma=0.8)
THREE = SpikedRandomFeatures(
    student="tanh", target="sin", r=(1.5, -0.7, 0.3), c=(1.3, 1.1, 1.0), fractions=(0.5, 0.3, 0.2),
    gamma=0.8, noise=0.1, intercept=True, beta=0.7,
)  # fmt: skip
OPPOSITE = replace(THREE, r=(1.5, -1.5), c=(1.3, 1.3), fractions=(0.5, 0.5), intercept=False)
PLANE = SpikedRandomFeatures(
    student="softplus", target=MultiIndex(lambda x, y: x * np.tanh(y), 2, name="x tanh(y)"),
    r=((0.9, 0.4),), c=1.1, gamma=((0.8, 0.1), (0.2, 0.7)), noise=0.2,
)  # fmt: skip
EVEN = SpikedRandomFeatures(student="tanh", target="he2", r=1.0, c=1.2, gamma=0.9)
LINEAR = SpikedRandomFeatures(student="linear", target="sin", r=1, c=1.2, gamma=0.7, intercept=True)
# Nearly linear: a narrow basin next to a wide one, whose bottom is 10 to 30 % higher, behind a
# low barrier.
ERF = SpikedRandomFeatures(
    student="erf", target="relu", r=0.11669, c=1.58311, gamma=0.584988, beta=2
)
STEEP = replace(ERF, student="tanh", r=0.02289, c=1.5947, gamma=0.6593, beta=1)
SMALL = replace(ERF, student="tanh", r=0.0322, c=0.077, gamma=0.215, beta=1)


def at(model, bias, alpha, lam, loss, tol=None):
    """The objective and its slope of points (alpha, lam), at one bias."""
    there = model.with_bias(bias, train_bias=True)
    one = evaluate_at_bias(there, alpha, lam, replica.loss(loss), tol)
    value = training_objective(one.train_loss, one.overlaps, alpha, lam, model.beta)
    return value, one.slope


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (ONE, "square"),
        (ONE, "logistic"),
        (replace(ONE, label_noise="flip:0.1"), "square"),
        (THREE, "huber:0.5"),
        (OPPOSITE, "square"),
        pytest.param(
            replace(THREE, student="relu", dimension=500.0), "square", marks=pytest.mark.slow
        ),
        pytest.param(
            replace(OPPOSITE, label_noise="student:4:0.5"), "huber:0.5", marks=pytest.mark.slow
        ),
        pytest.param(PLANE, "square", marks=pytest.mark.slow),
        pytest.param(PLANE, "huber:0.5", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("bias", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_slope_of_the_objective(model, loss, bias):
    """dE/dt against a difference of order 4 of E itself, whose step leaves it 1e-7; what tables
    leave changes little over the step, as long as they are of one size: the least that there is
    for PLANE.  OPPOSITE's groups respond alike where the bias is 0, and E is even."""
    alpha, lam, step = np.array([1.7, 2.0]), np.array([0.03, 1.0]), 0.02
    tol = 1e-10 if loss == "square" else 1e-5 if model is PLANE else 1e-7
    values = [at(model, bias + k * step, alpha, lam, loss, tol)[0] for k in (-2, -1, 1, 2)]
    by_difference = np.dot([1 / 12, -2 / 3, 2 / 3, -1 / 12], values) / step
    slope = at(model, bias, alpha, lam, loss, tol)[1]
    assert slope == pytest.approx(by_difference, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("model", "alpha", "lam", "loss"),
    [
        (ONE, 2.0, 0.1, "square"),
        (EVEN, 2.0, 0.1, "square"),
        (ERF, 2.231, 0.089, "square"),
        pytest.param(replace(ERF, bias=0.25), 2.231, 0.089, "square", marks=pytest.mark.slow),
        pytest.param(STEEP, 3.857, 0.0073, "square", marks=pytest.mark.slow),
        pytest.param(SMALL, 1.5205, 0.00676, "square", marks=pytest.mark.slow),
        pytest.param(ERF, 2.231, 0.089, "huber:0.5", marks=pytest.mark.slow),
        pytest.param(ONE, 2.0, 0.1, "logistic", marks=pytest.mark.slow),
        pytest.param(ONE, 2.0, 0.1, "hinge", marks=pytest.mark.slow),
    ],
)
def test_no_bias_is_better(model, alpha, lam, loss):
    """Against a search on values, from the lowest of a scan that sees the narrow basins: it finds
    the place to the root of what values are known to, 1e-10 or 1e-6."""
    a, penalty = np.array([alpha]), np.array([lam])

    def value(bias):
        found = at(model, float(bias), a, penalty, loss)[0].item()
        return found if np.isfinite(found) else np.inf

    scan = np.sinh(np.linspace(-2.6, 2.7, 31 if loss == "square" else 19))  # finest around 0
    best = int(np.argmin([value(t) for t in scan]))
    searched = minimize_scalar(value, bounds=scan[[best - 1, best + 1]], method="bounded")
    point = replica.solve(replace(model, train_bias=True), alpha=alpha, lam=lam, loss=loss)
    assert point.converged
    of_square = loss == "square"
    assert value(point.trained_bias) <= searched.fun * (1 + (1e-10 if of_square else 1e-6))
    sign = np.sign(searched.x) if model is EVEN else 1.0  # of two equal ones it is the positive
    expected = pytest.approx(sign * searched.x, abs=2e-5 if of_square else 5e-3)
    assert point.trained_bias == expected


def test_a_bias_that_makes_no_difference():
    """To a linear student with an intercept."""
    point = replica.solve(replace(LINEAR, train_bias=True), alpha=1.5, lam=0.1)
    assert point.converged
    assert point.trained_bias == 0


def test_a_bias_at_the_edge_of_the_search_is_flagged():
    """A softplus student of a linear target wants an ever larger bias."""
    model = replace(ONE, student="softplus", target="linear", r=1, c=1, gamma=0.9, train_bias=True)
    point = replica.solve(model, alpha=2, lam=0.1)
    assert not point.converged
    assert "edge" in point.status.value
    assert np.isnan([point.test_error, point.trained_bias]).all()


@pytest.mark.slow
def test_points_of_a_curve_train_a_bias_each():
    """The scan is of all points at once, what follows it of each."""
    step = GradientStep(student="relu", target="tanh", alpha0=3, eta=1.0, train_bias=True)
    model = step.srf(beta=1.0)
    curve = replica.learning_curve(model, alpha=[0.5, 1.5], lam=0.1)
    for alpha, bias in zip((0.5, 1.5), curve.trained_bias.values.ravel(), strict=True):
        alone = replica.solve(model, alpha=alpha, lam=0.1)
        assert bias == pytest.approx(alone.trained_bias, abs=1e-8)  # it is found to 1e-10

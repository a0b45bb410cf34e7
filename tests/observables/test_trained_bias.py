"""The trained bias: the slope of the training objective, estimates of it, and its minimum."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GradientStep, MultiIndex, SpikedRandomFeatures, solve
from replica.convex.common_bias import objective
from replica.observables import evaluate as evaluate_module
from replica.observables.bias_walk import scan_biases
from replica.observables.solution import evaluate

ONE = SpikedRandomFeatures(student="relu", target="sign", r=1.5, c=1.3, gamma=0.8)


THREE = SpikedRandomFeatures(
    student="tanh",
    target="sin",
    r=(1.5, -0.7, 0.3),
    c=(1.3, 1.1, 1.0),
    fractions=(0.5, 0.3, 0.2),
    gamma=0.8,
    noise=0.1,
    intercept=True,
    beta=0.7,
)


OPPOSITE = replace(THREE, r=(1.5, -1.5), c=(1.3, 1.3), fractions=(0.5, 0.5), intercept=False)


PLANE = SpikedRandomFeatures(
    student="softplus",
    target=MultiIndex(lambda x, y: x * np.tanh(y), 2, name="x tanh(y)"),
    r=((0.9, 0.4),),
    c=1.1,
    gamma=((0.8, 0.1), (0.2, 0.7)),
    noise=0.2,
)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (ONE, "square"),
        (ONE, "logistic"),
        (ONE, "squared_hinge"),
        (replace(ONE, label_noise="flip:0.1"), "square"),
        (THREE, "square"),
        (THREE, "huber:0.5"),
        (replace(THREE, student="relu", dimension=500.0), "square"),
        (OPPOSITE, "square"),
        (OPPOSITE, "huber:0.5"),
        (replace(OPPOSITE, label_noise="student:4:0.5"), "huber:0.5"),
        pytest.param(PLANE, "square", marks=pytest.mark.slow),
        pytest.param(PLANE, "huber:0.5", marks=pytest.mark.slow),
    ],
    ids=lambda part: getattr(part, "name", None),
)
@pytest.mark.parametrize("bias", [0.0, 0.4])
def test_slope_of_the_objective(model, loss, bias):
    """dE/dt against a difference of order 4 of E itself, whose step leaves it 1e-7; what tables
    leave changes little over the step, as long as they are of one size: the least that there is
    for PLANE.  OPPOSITE's groups respond alike where the bias is 0, and E is even."""
    alpha, lam, step = np.array([1.7, 2.0]), np.array([0.03, 1.0]), 0.02
    tol = 1e-5 if model is PLANE else 1e-7

    def at(t):
        there = model.with_bias(t, train_bias=True)
        of = replica.loss(loss)
        quadrature_tol = 1e-10 if evaluate_module.is_ridge(model, of) else tol
        one = evaluate_module.evaluate_at_bias(there, alpha, lam, of, quadrature_tol)
        assert one.converged.all()
        return objective(one.losses.train, one.points.overlaps, alpha, lam, model.beta), one.slope

    values = [at(bias + k * step)[0] for k in (-2, -1, 1, 2)]
    by_difference = np.dot([1 / 12, -2 / 3, 2 / 3, -1 / 12], values) / step
    assert at(bias)[1] == pytest.approx(by_difference, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (ONE, "logistic"),
        pytest.param(ONE, "hinge", marks=pytest.mark.slow),
        pytest.param(
            replace(ONE, target="sin", label_noise="outliers:0.1:9"),
            "absolute",
            marks=pytest.mark.slow,
        ),
        pytest.param(OPPOSITE, "huber:0.5", marks=pytest.mark.slow),
    ],
)
def test_looks_tell_how_far_they_are_off(model, loss):
    """At every third bias that was seen and has a solution; most biases are."""
    alpha, lam = np.array([2.0]), np.array([0.1])
    seen = scan_biases(replace(model, train_bias=True), replica.loss(loss), alpha, lam)
    places = np.flatnonzero(np.isfinite(seen.values))
    assert places.size > 20
    checked = 0
    for place in places[::3]:
        there = model.with_bias(float(seen.at[place]))
        one = evaluate(there, alpha, lam, loss=loss)
        if one.converged[0]:
            exact = objective(one.losses.train, one.points.overlaps, alpha, lam, model.beta)[0]
            assert abs(seen.values[place] - exact) <= seen.doubt(int(place)), seen.at[place]
            checked += 1
    assert checked > 6


@pytest.mark.parametrize(
    ("fields", "alpha", "lam", "loss"),
    [
        (dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2), 2.231, 0.089, "square"),
        (
            dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2, bias=0.25),
            2.231,
            0.089,
            "square",
        ),
        (
            dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2),
            2.231,
            0.089,
            "huber:0.5",
        ),
        (dict(student="tanh", r=0.02289, c=1.5947, gamma=0.6593), 3.857, 0.0073, "square"),
        (dict(student="tanh", r=0.0322, c=0.077, gamma=0.215), 1.5205, 0.00676, "square"),
    ],
)
def test_no_fixed_bias_is_lower(fields, alpha, lam, loss):
    """Nearly linear students have a narrow basin next to a wide one, behind a low barrier; the
    wide one's bottom is 10 to 30 % higher."""
    model = SpikedRandomFeatures(target="relu", train_bias=True, **fields)
    a, penalty = np.array([alpha]), np.array([lam])

    def value(there):
        one = evaluate(there, a, penalty, loss=loss)
        return objective(one.losses.train, one.points.overlaps, a, penalty, model.beta)[0], one

    least, found = value(model)
    assert found.converged.all()
    fixed = [value(model.with_bias(float(t)))[0] for t in np.linspace(-1, 1, 21)]
    assert least <= np.nanmin(fixed) * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_the_slope_vanishes_at_the_trained_bias(loss):
    """To what the last step of the search leaves, 1e-5, times a curvature of order one."""
    model = replace(ONE, train_bias=True)
    one = evaluate(model, np.array([2.0]), np.array([0.1]), loss=loss)
    assert one.converged.all()
    assert abs(one.slope[0]) < 1e-5
    assert one.bias[0] > 0


def test_a_bias_at_the_edge_of_the_search_is_flagged():
    """A softplus student of a linear target wants an ever larger bias."""
    model = SpikedRandomFeatures(
        student="softplus", target="linear", r=1, c=1, gamma=0.9, train_bias=True
    )
    point = replica.solve(model, alpha=2, lam=0.1)
    assert not point.converged
    assert "edge" in point.status.value
    assert np.isnan(point.test_error)


@pytest.mark.slow
def test_trained_bias_beats_every_fixed_one():
    """The bias found has the lowest training objective of a fine grid, which it lies on."""
    step = GradientStep(student="relu", target="tanh", alpha0=3, eta=1.0, train_bias=True)
    point = replica.solve(step.srf(beta=1.0), alpha=1.5, lam=0.1)

    def objective(p):
        return 1.5 * p.train_error + 0.1 * float(p.overlaps.q2.sum())

    fixed = [
        SpikedRandomFeatures(
            student="relu", target="tanh", r=m.r, c=m.c, gamma=m.gamma, bias=float(t)
        )
        for m in [step.srf(beta=1.0)]
        for t in np.linspace(-6, 6, 31)
    ]
    values = [objective(replica.solve(model, alpha=1.5, lam=0.1)) for model in fixed]
    # at -6 almost no neuron is ever active, and the point is flagged
    assert objective(point) <= np.nanmin(values) + 1e-12
    assert abs(point.trained_bias - np.linspace(-6, 6, 31)[np.nanargmin(values)]) < 0.4


@pytest.mark.slow
def test_trained_bias_minimises_the_loss():
    """The bias found is no worse than its neighbours."""
    step = replica.GradientStep(student="relu", target="softplus", alpha0=3, eta=1.0)
    model = replace(step.srf(beta=1.0), train_bias=True, noise=0.1)
    point = solve(model, alpha=1.5, lam=0.1, loss="huber:0.5", quadrature_tol=1e-5)

    def objective(bias):
        fixed = replace(model, train_bias=False, bias=bias)
        found = solve(fixed, alpha=1.5, lam=0.1, loss="huber:0.5", quadrature_tol=1e-5)
        return 1.5 * found.train_loss + 0.05 * found.overlaps.q2.sum()

    low = objective(point.trained_bias)
    assert low <= min(objective(point.trained_bias + shift) for shift in (-0.05, 0.05)) + 1e-9

"""Losses and laws of labels: proximal maps, Gaussian averages, parsing, refusals."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from replica import InvalidArgument, Loss, SpikedRandomFeatures, loss, solve
from tests.convex.problems import by_nodes

NAMES = [
    "square", "huber:0.5", "absolute", "quantile:0.3", "logistic", "hinge", "squared_hinge",
]  # fmt: skip
PIECEWISE = [name for name in NAMES if name != "logistic"]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(name=st.sampled_from(NAMES), t0=st.floats(-30, 30), log_V=st.floats(-8, 12))
def test_prox_minimises(name, t0, log_V):
    """No point near or far is lower, to the rounding of the objective."""
    of, V = loss(name), np.exp(log_V)
    t = float(of.proximal(t0, V))

    def objective(x):
        return (x - t0) ** 2 / (2 * V) + of.value(x)

    others = t + np.concatenate([np.geomspace(1e-6, 40, 60), -np.geomspace(1e-6, 40, 60)])
    low = float(objective(np.array(t)))
    assert (objective(others) >= low - 1e-12 * max(1.0, abs(low))).all()


@pytest.mark.parametrize("V", [1e-150, 1e-8, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, 1e15])
def test_the_logistic_prox_at_any_scale(V):
    """It solves t = t0 + V / (1 + e^t) to the rounding of its terms: of new samples V is 1e-150, of
    nearly separable ones with little penalty 1e9."""
    t0 = np.array([0.0, 50.0, -50.0, 1e4, -1e4, -V / 2, -0.999 * V, -V, -2 * V, V])
    t = loss("logistic").proximal(t0, V)
    rise = V * expit(-t)
    terms = np.abs(t0) + rise + np.abs(t) * (1 + rise * expit(t))
    assert (np.abs(t - t0 - rise) <= 8 * np.finfo(float).eps * terms).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("V", [0.3, 40.0])
def test_newton_finds_the_closed_prox(name, V):
    """The proximal map of functions alone, away from jumps of the derivative."""
    of = loss(name)
    t0 = np.linspace(-60, 60, 241) + 0.013
    # Newton stops within 1e-14 of t; a bracket of bisection ends at 4e-16
    assert by_nodes(name).proximal(t0, V) == pytest.approx(of.proximal(t0, V), abs=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_a_piecewise_quadratic_loss_is_recognised(name):
    """Given as functions with their kinks; but not one with a kink and a curve."""
    of = loss(name)
    own = Loss(of.value, of.derivative, kind=of.kind, kinks=of.kinks)
    assert (own.pieces is None) == (not of.kinks)
    if of.kinks:
        assert own.pieces.knots == of.pieces.knots
        # derivatives up to 1000 from a kink are told to rounding
        for mine, theirs in zip(own.pieces.coefficients, of.pieces.coefficients, strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)
    bent = Loss(
        lambda t: np.abs(t) + np.logaddexp(t, -t), lambda t: np.sign(t) + np.tanh(t), kinks=(0.0,)
    )
    assert bent.pieces is None


def test_newton_does_not_run_in_a_circle():
    """log cosh bends so sharply for its scale that Newton's steps alternate between its two arms,
    inside the bracket, for 100 steps and more: at t0 = 4.7, V = 6.2 the result was off by 2."""
    own = Loss(lambda t: np.logaddexp(t, -t), np.tanh, curvature=lambda t: 1 - np.tanh(t) ** 2)
    t0, V = np.meshgrid(np.linspace(-9.0, 9.0, 181), np.logspace(-6, 4, 41))
    t = own.proximal(t0, V)
    assert t + V * np.tanh(t) == pytest.approx(t0, abs=1e-10)  # V times the rounding of t
    for one in ((4.7, 6.217), (-3.3, 9.0)):
        alone = own.proximal(*map(np.array, one))
        assert alone + one[1] * np.tanh(alone) == pytest.approx(one[0], abs=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_score_is_minus_the_derivative_in_the_prox(name):
    """g = (t - t0) / V, and g' by differences away from its kinks (error 1e-10 / step)."""
    of, V, step = loss(name), np.full(400, 0.7), 1e-5
    t0 = np.linspace(-4, 4, 400) + 1e-3
    g, slope, t = of.score(t0, V)
    assert g == pytest.approx((t - t0) / 0.7, abs=1e-10)
    up, down = of.score(t0 + step, V)[0], of.score(t0 - step, V)[0]
    smooth = np.abs(of.score(t0 + step, V)[1] - of.score(t0 - step, V)[1]) < 1e-3
    assert ((up - down) / (2 * step))[smooth] == pytest.approx(slope[smooth], abs=1e-4)
    assert smooth.mean() > 0.98


def test_losses_are_convex_and_continuous_at_their_knots():
    for name in PIECEWISE:
        of = loss(name)
        for kink in of.kinks:
            assert of.value(np.nextafter(kink, -9)) == pytest.approx(
                of.value(np.nextafter(kink, 9)), abs=1e-12
            )


def test_names_and_refusals():
    assert loss("huber:0.2").name == "huber:0.2"
    assert loss("huber:0.2") == loss("huber:0.20")
    assert pickle.loads(pickle.dumps(loss("logistic"))) == loss("logistic")
    assert pickle.loads(pickle.dumps(loss("quantile:0.3"))) == loss("quantile:0.3")
    for bad in (
        *("huber", "huber:-1", "huber:0", "huber:nan", "huber:1:2", "HUBER:1", "square:1"),
        *("quantile:0", "quantile:1", "hinge:2", "cubic", "", 3),
    ):
        with pytest.raises(InvalidArgument, match="loss must be"):
            loss(bad)
    with pytest.raises(InvalidArgument, match="the exponential loss is not offered"):
        loss("exponential")
    with pytest.raises(InvalidArgument, match="convex"):
        Loss(np.sin, np.cos)
    with pytest.raises(InvalidArgument, match="residual or margin"):
        Loss(np.square, lambda t: 2 * t, kind="ratio")


def test_margins_need_labels_of_two_values():
    model = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    with pytest.raises(InvalidArgument, match=r"logistic take labels \+-1: target sign"):
        solve(model, alpha=1.0, lam=0.1, loss="logistic")
    with pytest.raises(InvalidArgument, match="noise must be 0 with labels"):
        SpikedRandomFeatures(
            student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9, noise=0.1, label_noise="probit"
        )


def test_a_rough_proximal_map_is_that_of_points_nearby():
    """Rows at a kink are exact; all others end a Newton step after they came within the slack."""
    own = Loss(
        lambda t: np.abs(t) + np.logaddexp(t, -t), lambda t: np.sign(t) + np.tanh(t), kinks=(0.0,)
    )
    t0, V = np.linspace(-9, 9, 181), np.full(181, 3.0)
    exact = own.proximal(t0, V)
    rough = own.proximal(t0, V, 1e-3)
    assert (rough[np.abs(t0) <= 3] == 0).all()
    assert (exact[np.abs(t0) <= 3] == 0).all()
    reached = rough + V * (np.sign(rough) + np.tanh(rough))
    moved = np.abs(t0) > 3
    assert np.abs(reached - t0)[moved].max() < 1e-5
    assert rough == pytest.approx(exact, abs=1e-5)

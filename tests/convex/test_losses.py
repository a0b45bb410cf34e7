"""Losses and laws of labels: proximal maps, Gaussian averages, parsing, refusals."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from replica import Activation, InvalidArgument, Loss, SpikedRandomFeatures, loss, solve
from replica.problem.labels import label_noise, mean_label, zeros
from replica.problem.named import activation
from solvers.piecewise import average_proximal, average_score
from tests.convex.test_solve import by_nodes

NAMES = [
    "square", "huber:0.5", "absolute", "quantile:0.3", "logistic", "hinge", "squared_hinge",
]  # fmt: skip
PIECEWISE = [name for name in NAMES if name != "logistic"]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    name=st.sampled_from(NAMES),
    t0=st.floats(-30, 30),
    log_V=st.floats(-8, 12),
)
def test_prox_minimises(name, t0, log_V):
    """No point near or far is lower, to the rounding of the objective."""
    of, V = loss(name), np.exp(log_V)
    t = float(of.proximal(t0, V))

    def objective(x):
        return (x - t0) ** 2 / (2 * V) + of.value(x)

    others = t + np.concatenate([np.geomspace(1e-6, 40, 60), -np.geomspace(1e-6, 40, 60)])
    low = float(objective(np.array(t)))
    assert (objective(others) >= low - 1e-12 * max(1.0, abs(low))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("V", [0.3, 40.0])
def test_newton_finds_the_closed_prox(name, V):
    """The proximal map of value and derivative alone, away from jumps of the derivative."""
    of = loss(name)
    t0 = np.linspace(-60, 60, 241) + 0.013
    plain = by_nodes(Loss(of.value, of.derivative, kind=of.kind, kinks=of.kinks))
    # Newton stops within 1e-14 of t; a bracket of bisection ends at 4e-16
    assert plain.proximal(t0, V) == pytest.approx(of.proximal(t0, V), abs=1e-11)


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


@pytest.mark.parametrize("name", PIECEWISE)
@pytest.mark.parametrize(("mean", "sd", "V"), [(0.3, 0.7, 0.4), (-2.0, 3.0, 5.0), (1.4, 0.1, 1e4)])
def test_gaussian_averages_are_exact(name, mean, sd, V):
    """Against adaptive quadrature on the pieces, asked for 1e-11."""
    of = loss(name)
    kinks = sorted(
        k + V * s
        for k in of.kinks
        for s in (of.derivative(np.nextafter(k, -9)), of.derivative(np.nextafter(k, 9)))
    )
    ends = [mean - 12 * sd, *(k for k in kinks if abs(k - mean) < 12 * sd), mean + 12 * sd]

    def average(function):
        parts = (
            quad(
                lambda x: float(function(np.array([x]))[0]) * stats.norm.pdf(x, mean, sd),
                low, high, epsabs=1e-12, epsrel=1e-11, points=[mean], limit=200,
            )[0]
            for low, high in itertools.pairwise(ends)
        )  # fmt: skip
        return sum(parts)

    def at(part):
        return lambda x: of.score(x, np.full_like(x, V))[part]

    exact = average_score(of.pieces, np.array(mean), np.array(sd), np.array(V))
    after = average_proximal(of.pieces, np.array(mean), np.array(sd), np.array(V))
    before = average_proximal(of.pieces, np.array(mean), np.array(sd), np.array(0.0))
    expected = [
        average(at(0)),
        average(at(1)),
        average(lambda x: at(0)(x) ** 2),
        average(at(2)),
        average(lambda x: at(2)(x) ** 2),
        average(lambda x: of.value(at(2)(x))),
        average(of.value),
    ]
    # sums of a few terms of the size of the integrand, known to 1e-11
    assert [*exact, *after, before.value] == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", ["absolute", "hinge", "quantile:0.3"])
def test_averages_do_not_cancel_at_a_small_response(name):
    """V -> 0: g -> -rho' and E g' -> -(jump of rho') times the density at the kink; the
    corrections are of order V."""
    of, mean, sd, V = loss(name), np.array(0.3), np.array(0.7), np.array(1e-9)
    found = average_score(of.pieces, mean, sd, V)
    (kink,) = of.kinks
    left, right = of.derivative(np.array([kink - 1, kink + 1]))
    below = stats.norm.cdf(kink, 0.3, 0.7)
    assert found.mean == pytest.approx(-left * below - right * (1 - below), abs=1e-8)
    assert found.square == pytest.approx(left**2 * below + right**2 * (1 - below), abs=1e-8)
    assert found.slope == pytest.approx((left - right) * stats.norm.pdf(kink, 0.3, 0.7), rel=1e-7)


def test_averages_do_not_cancel_at_a_large_response():
    """Samples that end beside the kink: the score is (1 - t0) / V below 1 and 0 above, 1e-9 of
    what the flat of the proximal map reaches at its other end."""
    sd, V = 0.7, 1e9
    found = average_score(loss("hinge").pieces, np.array(1.0), np.array(sd), np.array(V))
    expected = [sd / (V * np.sqrt(2 * np.pi)), -1 / (2 * V), sd**2 / (2 * V**2)]
    assert [float(x) for x in found] == pytest.approx(expected, rel=1e-13, abs=0)


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
    for bad in ("huber", "huber:-1", "quantile:1", "hinge:2", "cubic", 3):
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
    with pytest.raises(InvalidArgument, match="labels of this problem are not"):
        solve(model, alpha=1.0, lam=0.1, loss="logistic")
    with pytest.raises(InvalidArgument, match="noise must be 0 with labels"):
        SpikedRandomFeatures(
            student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9, noise=0.1, label_noise="probit"
        )


@pytest.mark.parametrize("text", ["student:2", "outliers:2:1", "flip:0.6", "flip", "cauchy", 3])
def test_laws_of_labels_are_checked(text):
    with pytest.raises(InvalidArgument, match="label_noise must be"):
        label_noise(text)


def test_a_rough_proximal_map_is_that_of_points_nearby():
    """Rows at a kink are exact; all others end a Newton step after they came within the slack,
    and rows of the first kind do not keep them at it."""
    calls = []

    def derivative(t):
        calls.append(t.size)
        return np.sign(t) + np.tanh(t)

    own = Loss(lambda t: np.abs(t) + np.logaddexp(t, -t), derivative, kinks=(0.0,))
    t0, V = np.linspace(-9, 9, 181), np.full(181, 3.0)
    exact = own.proximal(t0, V)
    calls.clear()
    rough = own.proximal(t0, V, 1e-3)
    assert len(calls) < 3 * 12  # a dozen steps, of three evaluations each
    assert (rough[np.abs(t0) <= 3] == 0).all()
    assert (exact[np.abs(t0) <= 3] == 0).all()
    reached = rough + V * (np.sign(rough) + np.tanh(rough))
    moved = np.abs(t0) > 3
    assert np.abs(reached - t0)[moved].max() < 1e-5
    assert rough == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("text", ["outliers:0.2:9", "student:5", "flip:0.2", "logistic", "probit"])
def test_drawn_labels_follow_their_law(text):
    """Mean and variance of 2e5 labels, within five standard errors."""
    law, rng = label_noise(text), np.random.default_rng(0)
    count, target = 200_000, 0.4
    y = law.apply(np.full(count, target), rng)
    if law.binary:
        mean = 2 * float(law.probability(np.array(target))) - 1
        variance = 1 - mean**2
        assert set(np.unique(y)) == {-1.0, 1.0}
    else:
        mean, variance = target, law.variance
        # the fourth moment of Student's t with 5 degrees of freedom is 9 variances squared
        assert y.var() == pytest.approx(variance, rel=5 * np.sqrt(12 / count))
    assert y.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / count))


def test_zeros_of_a_target_are_found():
    found = zeros(activation("he3"))  # x^3 - 3x
    assert found == pytest.approx([-np.sqrt(3), 0, np.sqrt(3)], abs=1e-12)
    flipped = mean_label(activation("he3"), label_noise("flip:0.1"))
    assert flipped(np.array([-3.0, 3.0])).tolist() == pytest.approx([-0.8, 0.8])
    assert flipped.kinks == pytest.approx(found)


@pytest.mark.parametrize("target", ["sign", "sin", "relu", "he2", "tanh"])
@pytest.mark.parametrize("variance", [1e-3, 0.7])
def test_moments_of_a_flipped_label(target, variance):
    """E[y | z] is a step function, whatever the target: its closed-form moments against panels
    that end at the steps (1e-12, the tolerance of that integral)."""
    flipped = mean_label(activation(target), label_noise("flip:0.1"))
    by_panels = Activation(flipped.function, kinks=flipped.kinks)
    shift = np.linspace(-3.0, 3.0, 13)
    c = np.full_like(shift, variance)
    for mine, theirs in zip(flipped.moments(shift, c), by_panels.moments(shift, c), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12)

"""Problem objects: ranges and messages; one giant step:
docs/theory.md 2 and its published numbers."""

import numpy as np
import pytest

from replica import GradientStep, InvalidArgument, SpikedRandomFeatures

SRF = dict(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.5)
STEP = dict(student="tanh", target="sin", alpha0=2.0, eta=1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(c=0.0), "c must be positive"),
        (dict(c=-1), "c must be positive"),
        (dict(gamma=1.1), r"gamma must be a cosine in \[-1, 1\].*, got 1.1"),
        (dict(r=np.inf), "r must be a finite number"),
        (dict(r="x"), "r must be a finite number"),
        (dict(beta=0), "beta must be positive"),
        (dict(noise=-0.1), "noise must be 0 or more"),
        (dict(noise=np.nan), "noise must be 0 or more"),
        (dict(student="nope"), "student must be one of tanh"),
    ],
)
def test_srf_ranges(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        SpikedRandomFeatures(**(SRF | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(alpha0=0), "alpha0 must be positive or inf"),
        (dict(alpha0=None), "alpha0 must be positive or inf"),
        (dict(eta=-1), "eta must be 0 or more"),
        (dict(eta=np.inf), "eta must be 0 or more"),
        (dict(target="nope"), "target must be one of tanh"),
    ],
)
def test_step_ranges(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        GradientStep(**(STEP | changes))


def test_problems_are_frozen_and_compare_by_value():
    step = GradientStep(**STEP)
    with pytest.raises(AttributeError):
        step.eta = 2.0
    assert step == GradientStep(**STEP)
    assert hash(step) == hash(GradientStep(**STEP))


# docs/theory.md 13; the first two to the printed digits, the ReLU rows to their four.
@pytest.mark.parametrize(
    ("student", "target", "alpha0", "eta", "expected", "digits"),
    [
        ("tanh", "sin", 20, 3.0, (1.1340555, 1.0189732, 0.9718544), 7),
        ("tanh", "tanh", 0.5, 1.0, (0.6510892, 1.0769061, 0.5634852), 7),
        ("relu", "relu", 3, 1.0, (0.3015, 1.0284, 0.8292), 4),
        ("relu", "tanh", 3, 1.0, (0.3713, 0.7531, 0.8157), 4),
    ],
)
def test_published_parameters(student, target, alpha0, eta, expected, digits):
    model = GradientStep(student=student, target=target, alpha0=alpha0, eta=eta).srf(beta=1.0)
    assert (round(model.r, digits), round(model.c, digits), round(model.gamma, digits)) == expected


def test_no_step_is_random_features():
    model = GradientStep(**(STEP | dict(eta=0))).srf(beta=2.0)
    assert (model.r, model.c, model.gamma, model.beta) == (0.0, 1.0, 0.0, 2.0)


def test_population_gradient():
    """alpha0 = inf: the spike is the target direction, and the bulk gets no noise."""
    model = GradientStep(**(STEP | dict(alpha0=np.inf))).srf(beta=1.0)
    assert (model.gamma, model.c) == (1.0, 1.0)
    nearly = GradientStep(**(STEP | dict(alpha0=1e12))).srf(beta=1.0)
    assert nearly.r == pytest.approx(model.r, rel=1e-11)


def test_even_target_leaves_no_aligned_spike():
    """h_1* = 0: the gradient points nowhere in particular (gamma = 0), but has a length."""
    model = GradientStep(**(STEP | dict(target="he2"))).srf(beta=1.0)
    assert model.gamma == 0.0
    assert model.r > 0


def test_noise_acts_through_v_star():
    """v* enters as E sigma*^2 + Delta: a target's noise shortens gamma accordingly."""
    quiet, loud = (GradientStep(**(STEP | dict(noise=x))).srf(beta=1.0) for x in (0.0, 0.5))
    h1 = quiet.gamma * quiet.r
    assert loud.gamma * loud.r == pytest.approx(h1, rel=1e-12)
    ratio = (loud.r**2 - h1**2) / (quiet.r**2 - h1**2)  # v* + 0.5 over v*, v* = E sin^2
    power = -np.expm1(-2) / 2
    assert ratio == pytest.approx((power + 0.5) / power, rel=1e-9)


def test_jump_is_refused():
    with pytest.raises(InvalidArgument, match="continuous"):
        GradientStep(**(STEP | dict(student="sign"))).srf(beta=1.0)

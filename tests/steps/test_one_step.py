"""One giant step: published parameters, limits, laws of the readout and of the labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import laplace, norm, t

import replica
from replica import GradientStep, InvalidArgument, MultiIndex
from tests.problems import PUBLISHED, errors

SMALL = dict(student="tanh", target="sin", alpha0=2.0, eta=1.0)


@pytest.mark.slow
def test_gaussian_readout_converges():
    """In the number of groups, and to what a scipy.stats law of the same kind gives."""
    exact = replace(PUBLISHED, readout=norm()).srf(beta=1.0)
    named = replace(PUBLISHED, readout="gaussian")
    at = dict(alpha=np.array([0.9]), lam=np.array([0.1]))
    reference = errors(exact, **at)
    assert errors(named.srf(beta=1.0), **at) == pytest.approx(reference, rel=1e-12)
    assert named.srf(beta=1.0).law_error <= 1e-6
    gaps = []
    for count in (8, 16, 24):
        values, shares = named.readout.discretise(count)
        step = replace(PUBLISHED, readout=(values.tolist(), shares.tolist()))
        gaps.append(np.abs(errors(step.srf(beta=1.0), **at) / reference - 1).max())
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
    assert gaps[2] < 1e-4


def test_without_a_step_the_readout_law_does_not_matter():
    still = replace(PUBLISHED, eta=0)
    plain = errors(still.srf(beta=1.0))
    assert errors(replace(still, readout="gaussian").srf(beta=1.0)).tolist() == plain.tolist()


def test_a_law_needs_tails_that_a_few_groups_can_hold():
    """A heavy-tailed law reports the error of its groups, and warns of it."""
    step = replace(PUBLISHED, readout=t(3))
    with pytest.warns(UserWarning, match="48 groups stand for"):
        model = step.srf(beta=1.0)
    assert model.law_error > 1e-4
    for law in ("gaussian", "box", laplace()):
        assert replace(PUBLISHED, readout=law).srf(beta=1.0).law_error <= 1e-6


def test_a_step_learns_the_first_hermite_direction():
    """For g = (sin z1 + 2 sin z2) / 3 the spike points along (1, 2)."""
    target = MultiIndex(lambda a, b: (np.sin(a) + 2 * np.sin(b)) / 3, dimension=2)
    model = GradientStep(student="tanh", target=target, alpha0=np.inf, eta=1.0).srf(beta=1.0)
    assert np.array(model.gamma)[:, 0] == pytest.approx(np.array([1, 2]) / np.sqrt(5), rel=1e-9)


def test_step_sees_the_law_of_the_labels():
    """(2.2): of flipped signs E zy shrinks by 1 - 2q and E y^2 stays 1; of real labels the
    variance counts, wherever it comes from."""
    step = dict(student="tanh", alpha0=2.0, eta=1.0)
    flipped = replica.GradientStep(target="sign", label_noise="flip:0.1", **step)
    h1 = 0.8 * np.sqrt(2 / np.pi)
    assert flipped.srf(beta=1.0).gamma == pytest.approx(h1 / np.sqrt(h1**2 + 0.5), rel=1e-10)
    outliers = replica.GradientStep(target="sin", label_noise="outliers:0.1:5", **step)
    gaussian = replica.GradientStep(target="sin", noise=0.5, **step)
    one, other = (step.srf(beta=1.0) for step in (outliers, gaussian))
    for name in ("r", "c", "gamma"):  # the same formulas
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)
    student = replica.GradientStep(target="sin", label_noise="student:5", **step)
    with pytest.raises(InvalidArgument, match="label noise with all its moments"):
        student.network(beta=1.0)


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
    model = GradientStep(**(SMALL | dict(eta=0))).srf(beta=2.0)
    assert (model.r, model.c, model.gamma, model.beta) == (0.0, 1.0, 0.0, 2.0)


def test_population_gradient():
    """alpha0 = inf: the spike is the target direction, and the bulk gets no noise."""
    model = GradientStep(**(SMALL | dict(alpha0=np.inf))).srf(beta=1.0)
    assert (model.gamma, model.c) == (1.0, 1.0)
    nearly = GradientStep(**(SMALL | dict(alpha0=1e12))).srf(beta=1.0)
    assert nearly.r == pytest.approx(model.r, rel=1e-11)


def test_even_target_leaves_no_aligned_spike():
    """h_1* = 0: the gradient points nowhere in particular (gamma = 0), but has a length."""
    model = GradientStep(**(SMALL | dict(target="he2"))).srf(beta=1.0)
    assert model.gamma == 0.0
    assert model.r > 0


def test_noise_acts_through_v_star():
    """v* enters as E sigma*^2 + Delta: a target's noise shortens gamma accordingly."""
    quiet, loud = (GradientStep(**(SMALL | dict(noise=x))).srf(beta=1.0) for x in (0.0, 0.5))
    h1 = quiet.gamma * quiet.r
    assert loud.gamma * loud.r == pytest.approx(h1, rel=1e-12)
    ratio = (loud.r**2 - h1**2) / (quiet.r**2 - h1**2)  # v* + 0.5 over v*, v* = E sin^2
    power = -np.expm1(-2) / 2
    assert ratio == pytest.approx((power + 0.5) / power, rel=1e-9)


@pytest.mark.parametrize("steps", [dict(alpha0=2.0, eta=1.0), dict(steps=[(2, 1)] * 3)])
def test_jump_is_refused(steps):
    with pytest.raises(InvalidArgument, match="continuous"):
        GradientStep(student="sign", target="sin", **steps).srf(beta=1.0)

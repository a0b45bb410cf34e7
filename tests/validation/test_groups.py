"""The general model against simulation: readout laws, biases, spikes, trained offsets.

Every comparison is of `validation.compare`: within 4 standard errors and a finite-size
allowance, whose measured values its docstring gives (20/d relative for spiked random features;
networks without a theory of their own keep up to 6 % from their sRF at any size).
"""

import numpy as np
import pytest

from replica import GradientStep, MultiIndex, SpikedRandomFeatures
from validation import compare

FOUR = dict(readout=[-1.5, -0.5, 0.5, 1.5])
TANH = dict(student="tanh", target="sin", alpha0=3, eta=1.5)
RELU = dict(student="relu", target="relu", alpha0=3, eta=3.0)
TWO_SPIKES = SpikedRandomFeatures(
    student="tanh",
    target=MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2, name="z1 + sin(z1 z2)"),
    r=[[1, 0.5], [1, -0.5], [-0.5, 1], [0.3, 0.3]],
    c=1.0,
    gamma=[[0.9, 0], [0, 0.8]],
    beta=1.0,
)
CASES = {
    "four readouts": GradientStep(**TANH, **FOUR),
    "gaussian readout": GradientStep(**TANH, readout="gaussian"),
    "two signs": GradientStep(**TANH, readout="rademacher"),
    "biases": GradientStep(**RELU, bias=[-1, 1]),  # |m| = 2; see compare on larger ones
    "intercept": GradientStep(student="tanh", target="softplus", alpha0=3, eta=1, intercept=True),
    "two spikes": TWO_SPIKES,
}


def srf(name):
    case = CASES[name]
    return case if case is TWO_SPIKES else case.srf(beta=1.0)


@pytest.mark.parametrize(
    "name", [*list(CASES)[:-1], pytest.param("two spikes", marks=pytest.mark.slow)]
)
def test_srf_agrees(name):
    """At d = 300 the stated allowance is 6.7 %, the standard errors 1 to 3 %."""
    found = compare(srf(name), alpha=[0.6, 2.0], lam=[0.02, 0.2], dimension=300, seeds=8, rng=1)
    assert found.agrees, found.document()


@pytest.mark.parametrize(
    ("step", "points"),
    [
        (  # nearly dependent biases
            GradientStep(student="relu", target="tanh", alpha0=3, eta=1, bias=[-1, 1]),
            {"alpha": 2.0, "lam": [0.02, 0.2]},
        ),
        pytest.param(
            GradientStep(student="tanh", target="he1+he3/2", alpha0=10, eta=3, readout="gaussian"),
            {"alpha": [0.5, 2.0], "lam": 0.1},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_large_overlaps_cost_at_finite_size(step, points):
    """Where m is large, the theory at the simulated dimension agrees and its limit does not."""
    size = dict(dimension=300, seeds=8, rng=7)
    model = step.srf(beta=1.0)
    assert compare(model, finite_size=True, **points, **size).agrees
    assert not compare(model, **points, **size).agrees


@pytest.mark.slow
@pytest.mark.parametrize("student", ["relu", "tanh"])
def test_trained_bias_agrees(student):
    """A bias common to all neurons, minimised over in theory and in every draw."""
    step = GradientStep(student=student, target="softplus", alpha0=3, eta=1.0, train_bias=True)
    found = compare(step.srf(beta=1.0), alpha=1.5, lam=0.1, dimension=200, seeds=6, rng=3)
    assert found.agrees, found.document()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_srf_agrees_at_size(name):
    """d = 800, an allowance of 2.5 %; groups with the price of m at that d.

    Ten seeds: at lam = 0.02 single draws spread by 15 % with a tail, and five can agree among
    each other on too low a mean.
    """
    size = dict(dimension=800, seeds=10, rng=4, finite_size=True)
    found = compare(srf(name), alpha=[0.6, 2.0], lam=[0.02, 0.2], **size)
    assert found.agrees, found.document()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four readouts", "gaussian readout", "two signs"])
def test_network_agrees_at_size(name):
    """The network itself at d = 800, with an allowance of 2.5 % for finite size."""
    size = dict(dimension=800, seeds=6, rng=6, beta=1.0, finite_size=True)
    found = compare(CASES[name], alpha=[0.6, 2.0], lam=0.1, **size)
    assert found.theory.published is not None
    assert found.agrees, found.document()


@pytest.mark.slow
def test_network_with_biases_stays_near_its_srf():
    """It has no theory of its own: within the 7 % it may stay from the sRF at any size."""
    size = dict(dimension=800, seeds=6, rng=6, beta=1.0, finite_size=True)
    found = compare(CASES["biases"], alpha=[0.6, 2.0], lam=0.1, allowance=0.07, **size)
    assert found.theory.published is None
    assert found.agrees, found.document()

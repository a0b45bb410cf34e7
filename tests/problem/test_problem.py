"""Problem objects: ranges, shapes and laws with their messages, pickles."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import cauchy, poisson

import replica
from replica import GaussianMixture, GradientStep, InvalidArgument, SpikedRandomFeatures, hermite

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
        (dict(student="nope"), "student must be one of tanh, .*; 'nope' is unknown"),
        # several groups and spikes
        (dict(r=[1, 2], c=[1, 2, 3]), "r must be of shape"),
        (dict(r=[1, 2], fractions=[0.5, 0.6]), "fractions must be a share for each group"),
        (dict(r=[1, 2], fractions=[1.5, -0.5]), "fractions must be 0 or more"),
        (dict(r=[[1, 2]], gamma=0.5), "gamma must be of shape"),
        (dict(r=[[1, 2]], gamma=[0.8, 0.8]), "gamma must be a cosine"),
        (dict(c=[1, 0]), "c must be positive"),
        (dict(fractions=1), "r must be of shape"),
        (dict(r=[[1, 2], [3]]), "r must be of shape"),
        (dict(r=[[], []], gamma=[]), "r must be of shape"),
    ],
)
def test_what_an_srf_may_be(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        SpikedRandomFeatures(**(SRF | changes))


def test_laws_by_name():
    """The papers' uniform initialisation is all equal; a word that could be either is refused."""
    step = GradientStep(**STEP)
    assert GradientStep(**STEP, readout="equal") == step == GradientStep(**STEP, readout=1)
    z = GradientStep(**STEP, readout="box").readout.distribution.ppf([0, 0.5, 1])
    assert z == pytest.approx([-(3**0.5), 0, 3**0.5])  # of variance 1
    with pytest.raises(InvalidArgument, match=r"equal \(every value 1\), .* box \(continuous"):
        GradientStep(**STEP, readout="uniform")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(alpha0=0), "alpha0 must be positive or inf"),
        (dict(alpha0=None), "alpha0 must be positive or inf"),
        (dict(eta=-1), "eta must be 0 or more"),
        (dict(eta=np.inf), "eta must be 0 or more"),
        (dict(target="nope"), "target must be one of tanh, .*; 'nope' is unknown"),
        *(
            (dict(readout=law), "readout must be")
            for law in ("x", [], [1, np.nan], ([1, 2], [0.5, 0.6]), None, poisson(3), cauchy())
        ),
    ],
)
def test_what_a_step_may_be(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        GradientStep(**(STEP | changes))


def test_problems_are_frozen_and_compare_by_value():
    step = GradientStep(**STEP)
    with pytest.raises(AttributeError):
        step.eta = 2.0
    assert step == GradientStep(**STEP)
    assert hash(step) == hash(GradientStep(**STEP))
    step = GradientStep(**STEP, readout="gaussian")
    assert pickle.loads(pickle.dumps(step)) == step  # as worker processes need it


MIXTURE = GaussianMixture(
    means=[[1.5, 0], [-1.5, 0]], covariances=[[1, 0], [0, 0.5]], fractions=[0.3, 0.7]
)
ONE = GradientStep(student="tanh", target="sin", alpha0=2, eta=1 / 3)
LAWS = GradientStep(**STEP | {"alpha0": np.inf}, readout=([1, 2], [0.3, 0.7]), bias=[0, 0.5])


@pytest.mark.parametrize(
    "problem",
    [
        MIXTURE, ONE, LAWS, LAWS.srf(beta=0.7), ONE.srf(beta=1 / 3), ONE.network(beta=1 / 3),
        ONE.network(beta=1, row_norms=False), ONE.srf(beta=1, dimension=50),
        replace(ONE.network(beta=1), dimension=500), replace(ONE.srf(beta=1), dimension=500),
        replace(ONE.srf(beta=1), noise=0.3),
        GradientStep(
            student="tanh", target="sin", steps=[(2, 1), (np.inf, 0.1)], noise=0.1, decay=[0, 0.2],
            step_noise=[0.1, 0.3],
        ),
        GradientStep(**STEP, readout="gaussian", bias=0.5, initialisation="gaussian"),
        GradientStep(**STEP | dict(student="he1+he2/3", target="z1 + z2**2/3"), step_target="z1"),
        GradientStep(**STEP | dict(student=hermite([0, 1, 1 / 3]), target="relu(x)-.1*relu(-x)")),
        GradientStep(**STEP | dict(target="classes:1,-1"), inputs=MIXTURE, intercept=True),
        SpikedRandomFeatures(
            **SRF | dict(r=[[1, 0.2], [0.3, 1 / 3]], c=[1, 2], gamma=[0.5, 0.5]), bias=[0, 1],
            fractions=[0.3, 0.7], label_noise="outliers:0.123456789:9",
        ),
        SpikedRandomFeatures(**SRF | dict(target="sign"), label_noise="flip:0.1", train_bias=True),
    ],
    ids=repr,
)  # fmt: skip
def test_a_problem_is_shown_as_the_code_that_makes_it(problem):
    names = {name: getattr(replica, name) for name in replica.__all__}
    assert eval(repr(problem), names) == problem


def test_what_cannot_be_typed_is_named():
    assert "student=Activation(<lambda>)" in repr(GradientStep(**STEP | dict(student=lambda x: x)))
    wide = GaussianMixture(means=np.zeros((2, 30)))
    assert repr(wide) == "GaussianMixture(2 components in 30 dimensions)"

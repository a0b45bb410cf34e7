"""Problems of several groups and spikes: shapes, laws of the readout, pickles."""

import pickle

import numpy as np
import pytest
from scipy.stats import cauchy, poisson

from replica import GradientStep, InvalidArgument, SpikedRandomFeatures

STEP = dict(student="tanh", target="sin", alpha0=20, eta=3.0)


def test_named_models_cross_processes():
    step = GradientStep(**(STEP | dict(student="relu")), readout="gaussian")
    assert pickle.loads(pickle.dumps(step)) == step


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(r=[1, 2], c=[1, 2, 3]), "r must be of shape"),
        (dict(r=[1, 2], fractions=[0.5, 0.6]), "fractions must be one for each group"),
        (dict(r=[1, 2], fractions=[1.5, -0.5]), "fractions must be 0 or more"),
        (dict(r=[[1, 2]], gamma=0.5), "gamma must be of shape"),
        (dict(r=[[1, 2]], gamma=[0.8, 0.8]), "gamma must be a cosine"),
        (dict(c=[1, 0]), "c must be positive"),
        (dict(fractions=1), "r must be of shape"),
        (dict(r=[[1, 2], [3]]), "r must be of shape"),
        (dict(r=[[], []], gamma=[]), "r must be of shape"),
    ],
)
def test_shapes_are_checked(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        SpikedRandomFeatures(**(dict(student="tanh", target="sin", r=1, c=1, gamma=0.5) | changes))


@pytest.mark.parametrize(
    "readout", ["x", [], [1, np.nan], ([1, 2], [0.5, 0.6]), None, poisson(3), cauchy()]
)
def test_bad_laws(readout):
    with pytest.raises(InvalidArgument, match="readout must be"):
        GradientStep(**STEP, readout=readout)

"""Problems that the tests of convex losses share."""

from dataclasses import replace

import numpy as np

import replica
from replica import MultiIndex, SpikedRandomFeatures

SIGN = SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)


SINE = dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)


MODELS = {
    "sign": SIGN,
    "flipped": replace(SIGN, label_noise="flip:0.1", beta=0.6),
    "logistic teacher": SpikedRandomFeatures(
        student="relu", target="3*he1", r=0.8, c=1.0, gamma=0.8, label_noise="logistic"
    ),
    "outliers": SpikedRandomFeatures(**SINE, noise=0.05, label_noise="outliers:0.1:9"),
    "student": SpikedRandomFeatures(**SINE, beta=1.5, label_noise="student:3:0.3"),
    "groups": SpikedRandomFeatures(
        student="relu", target="relu", r=[0.8, -0.4, 1.2], c=[1, 1.2, 0.9], gamma=0.7, noise=0.1
    ),
    "intercept": SpikedRandomFeatures(
        student="relu", target="softplus", r=0.5, c=1.0, gamma=0.9, noise=0.1, intercept=True
    ),
    "two spikes": SpikedRandomFeatures(
        student="tanh",
        target=MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2),
        r=[[1, 0.5], [1, -0.5]],
        c=1.0,
        gamma=[[0.9, 0], [0, 1.0]],
        noise=0.1,
    ),
    "at a dimension": SpikedRandomFeatures(**SINE, noise=0.05, dimension=300.0),
    "network": replica.GradientStep(
        student="tanh", target="sin", alpha0=0.5, eta=2.0, noise=0.1
    ).network(beta=1.0),
}


REAL = ["outliers", "student", "groups", "intercept", "two spikes", "at a dimension", "network"]


RESIDUAL = ["huber:0.5", "absolute", "quantile:0.3"]


MARGIN = ["logistic", "hinge", "squared_hinge"]


def by_nodes(loss):
    """A piecewise quadratic loss whose averages are left to quadrature."""
    object.__setattr__(loss, "pieces", None)
    return loss

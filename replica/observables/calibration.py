"""Is a probability that the trained network states a frequency?  docs/theory.md 6, logistic loss.

The network states P(y = 1) = 1 / (1 + exp(-f)).  Given the projection kappa of the input on the
spike, f ~ N(C(kappa), S^2(kappa)), so that the mean stated probability there is a Gaussian
integral, to be set beside the frequency P(y = 1 | kappa) of the labels.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from solvers.results import Array
from solvers.rules import trapezoid

from ..errors import InvalidArgument
from .solution import Solution


class Calibration(NamedTuple):
    """At each kappa (N,): the mean stated probability of the label 1, and its frequency."""

    kappa: Array
    predicted: Array
    frequency: Array


def calibration(solution: Solution, kappa: ArrayLike) -> Calibration:
    """Mean stated probability and frequency of the label 1 given the projection on the spike.

    Parameters
    ----------
    solution : Solution
        Of the logistic loss, and a model of one spike.
    kappa : array (N,)
        Projections of the input on the spike.

    Raises
    ------
    InvalidArgument
        If the loss is another, the model has several spikes, or the point did not converge.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, solve
    >>> model = SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
    >>> point = solve(model, alpha=2.0, lam=0.05, loss="logistic")
    >>> at = calibration(point, [0.0, 1.0])
    >>> at.predicted.round(3).tolist(), at.frequency.round(3).tolist()
    ([0.5, 0.922], [0.5, 0.909])
    """
    model = solution.model
    if solution.loss.name != "logistic" or not solution.converged:
        raise InvalidArgument("solution", solution.loss.name, "a converged one, of logistic loss")
    if model.rows is not None or model.geometry.r.shape[1] != 1:
        raise InvalidArgument("solution", solution.model, "of spiked random features, one spike")
    points = np.atleast_1d(np.asarray(kappa, dtype=float))
    groups, o = model.geometry, solution.overlaps
    shifts = groups.r @ points[None] + groups.bias[:, None]
    features = model.student.moments(shifts, groups.c[:, None])
    mu1 = features.first / np.sqrt(groups.c)[:, None]
    offsets = [features.mean, np.ones((1, points.size))] if model.intercept else [features.mean]
    mean = o.m @ np.concatenate(offsets) + (o.theta[:, 0] @ mu1) * points  # Eq. (4.5)
    variance = np.einsum("an,ab,bn->n", mu1, o.Q1, mu1) + o.q2 @ features.variance  # Eq. (4.7)
    z, w = trapezoid(128)
    predicted = expit(mean[:, None] + np.sqrt(variance)[:, None] * z) @ w
    mean_label = model.labels.conditional_moments(groups.gamma, points[None]).h
    return Calibration(points, predicted, (1 + mean_label) / 2)

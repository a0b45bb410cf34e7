"""The law of a label of the first batch, with the input's projection on the target direction.

Everything THEORY 15 averages is a function of y = sigma_*(s) + sqrt(Delta) xi times 1, s or
s^2: nodes in y and a weight for each of the three.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvers.quadrature import QuadratureError, gauss_hermite, gauss_legendre, tensor, trapezoid
from solvers.results import Array

from .activations import Activation
from .models import GradientStep

TOLERANCE = 1e-12
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
NARROW = 0.01  # noise over the scale on which functions of y vary, below which 9 nodes do


class FirstBatch(NamedTuple):
    """y (N,), and weights (3, N) of E[f(y)], E[f(y) s] and E[f(y) s^2]."""

    y: Array
    weights: Array


@lru_cache(maxsize=64)
def first_batch(step: GradientStep) -> FirstBatch:
    """Nodes fine enough for the functions 1 / (1 + x t y^2), 0 <= x <= 1, of ``step``.

    Raises
    ------
    QuadratureError
        If no rule is.
    """
    _, h_check = step.student.slope_moments()
    scale = step.eta**2 * h_check / step.alpha0**2
    previous = None
    for n in SIZES:
        found = _rule(step, n, scale)
        values = _probe(found, scale)
        if previous is not None and np.allclose(values, previous, rtol=TOLERANCE, atol=1e-15):
            return found
        previous = values
    raise QuadratureError(f"target {step.target!r}: E f(y) of the first batch does not settle")


def _probe(batch: FirstBatch, scale: float) -> Array:
    """Averages of the kind that will be asked for."""
    x = np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None]
    y2 = batch.y**2
    return np.concatenate(
        [(y2 * y2**k / (1 + scale * x * y2) ** 2) @ batch.weights[[0, 2]].T for k in (0, 1)]
        + [(y2**k * batch.y / (1 + scale * x * y2) ** 2) @ batch.weights[[1]].T for k in (0, 1)],
        axis=1,
    )


def _rule(step: GradientStep, n: int, scale: float) -> FirstBatch:
    target, noise = step.target, step.first_noise
    assert isinstance(target, Activation)
    kinks = target.kinks
    s = gauss_legendre(max(4, n // 8), np.asarray(kinks)) if kinks else trapezoid(n)
    if noise == 0:
        y, w = target(s.nodes), s.weights
        return FirstBatch(y, np.stack([w, w * s.nodes, w * s.nodes**2]))
    if noise * scale <= NARROW and not kinks:
        rule = tensor(s, gauss_hermite(9))
        x, xi = rule.nodes.T
        w = rule.weights
        return FirstBatch(target(x) + np.sqrt(noise) * xi, np.stack([w, w * x, w * x**2]))
    # The density of y on a grid that is fine where 1 / (1 + scale y^2) varies.
    mean, width = target(s.nodes), np.sqrt(noise)
    low, high = mean.min() - 8.6 * width, mean.max() + 8.6 * width
    root = np.sqrt(max(scale, 1 / noise))
    u = np.linspace(np.arcsinh(root * low), np.arcsinh(root * high), n)
    y = np.sinh(u) / root
    density = np.exp(-((y[:, None] - mean) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)
    cell = np.cosh(u) / root * (u[1] - u[0])
    powers = np.stack([s.weights, s.weights * s.nodes, s.weights * s.nodes**2])
    return FirstBatch(y, (density @ powers.T).T * cell)

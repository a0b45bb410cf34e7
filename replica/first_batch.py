"""The law of a label of the first batch, with the input's projection on the target direction.

Everything THEORY 15 averages is a function of y = sigma_*(s) + sqrt(Delta) xi times 1, s or
s^2: nodes in y and a weight for each of the three.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from solvers.quadrature import (
    HALF_WIDTH,
    QuadratureError,
    Rule,
    gauss_hermite,
    gauss_legendre,
    graded,
    interval,
    tensor,
    trapezoid,
)
from solvers.results import Array

from .activations import Activation
from .models import GradientStep

TOLERANCE = 1e-12
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
    for found in _candidates(step, scale):
        values, size = _probe(found, scale)
        if previous is not None and np.all(np.abs(values - previous) <= TOLERANCE * size):
            return found
        previous = values
    raise QuadratureError(f"target {step.target!r}: E f(y) of the first batch does not settle")


def _probe(batch: FirstBatch, scale: float) -> tuple[Array, Array]:
    """Averages of the kind that will be asked for, and those of their moduli."""
    y, weights = batch
    x = np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None]
    inverse = 1 / (1 + scale * x * y**2) ** 2
    functions = np.concatenate([power * inverse for power in (y, y**2, y**3, y**4)])
    return functions @ weights.T, np.abs(functions) @ np.abs(weights).T


def _candidates(step: GradientStep, scale: float) -> Iterator[FirstBatch]:
    """Ever finer nodes: in s, closing in on the zeros of the target if need be, and in xi; or,
    with noise enough, in y."""
    target, noise = step.target, step.first_noise
    assert isinstance(target, Activation)
    layers = graded([*target.kinks, *_zeros(target)], interval(1024))
    wide = noise * scale > NARROW
    trapezoids = () if target.kinks or wide else (64, 128, 256, 512)
    rules = [trapezoid(n, interval(n)) for n in trapezoids]
    panel = min(2.5, 4 * np.sqrt(noise)) if wide else 2.5
    sizes = (8, 12, 16, 24, 36, 48)
    rules += [gauss_legendre(n, layers, interval(1024), panel) for n in sizes]
    for index, rule in enumerate(rules):
        if not wide:
            (s, xi), w = rule.nodes[None].repeat(2, axis=0), rule.weights
            if noise:
                both = tensor(rule, gauss_hermite(9))
                (s, xi), w = both.nodes.T, both.weights
            y = target(s) + np.sqrt(noise) * xi
            yield FirstBatch(y, np.stack([w, w * s, w * s**2]))
        else:
            yield _in_label(target(rule.nodes), rule, noise, scale, 64 * 2**index)


def _in_label(mean: Array, s: Rule, noise: float, scale: float, n: int) -> FirstBatch:
    """n nodes in y, dense where 1 / (1 + scale y^2) varies, weighed by the density of y."""
    reach = 8.6 * np.sqrt(noise)
    root = np.sqrt(max(scale, 1 / noise))
    low, high = np.arcsinh(root * np.array([mean.min() - reach, mean.max() + reach]))
    u = np.linspace(low, high, n)
    y = np.sinh(u) / root
    cell = np.cosh(u) / root * (u[1] - u[0])
    density = np.exp(-((y[:, None] - mean) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)
    powers = np.stack([s.weights, s.weights * s.nodes, s.weights * s.nodes**2])
    return FirstBatch(y, (density @ powers.T).T * cell)


def _zeros(target: Activation) -> list[float]:
    """Where the target changes sign, near enough to put panels there."""
    s = np.linspace(-HALF_WIDTH, HALF_WIDTH, 4001)
    change = np.flatnonzero(np.diff(np.sign(target(s))))
    return [brentq(lambda x: float(target(x)), s[i], s[i + 1]) for i in change]

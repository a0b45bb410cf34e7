"""Averages over t0 as sums of terms: what each term weighs, and the averages that it stands for.

For a piecewise quadratic loss a term is a Gaussian (``mixtures``), over which averages are exact.
For others it is a point of the proximal map, with the density of t0 given every tau; or, where
labels +-1 change at steps of tau, with their probability given omega, in closed form.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from solvers.piecewise import Proximal, Score, average_proximal, average_score
from solvers.results import Array

from .labels import Labels, Steps
from .local_field import THINNEST_FIELD, Field, remaining
from .losses import Loss
from .mixtures import Gaussians, mixtures
from .proximal import Curve, proximal_nodes

FAR = 7.0  # standard deviations, beyond which a Gaussian holds 3e-12
FAREST = 10.0  # range of means over FAR standard deviations, up to which nodes serve all tau


class Terms(NamedTuple):
    """T terms in each of R rows.

    Attributes
    ----------
    owner : array (R,)
        The row's index of (P, N), which several may share.
    sign : array (R, 1) or (R, T)
        o = ds / dg.
    weight, along : arrays (R, T), (R, T, K')
        The weight, alone and times tau.
    score, proximal : callables
        Give the averages of g, g' and g^2, and of t, t^2 and rho(t), arrays (R, T).
    """

    owner: NDArray[np.int64]
    sign: Array
    weight: Array
    along: Array
    score: Callable[[], Score]
    proximal: Callable[[], Proximal]

    def total(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums with the weights, (P, N), of ``values`` (R, T)."""
        return _sums(self.owner, np.einsum("rt,rt->r", values, self.weight), shape)

    def total_along(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums with the weights times tau, (P, N, K')."""
        found = np.einsum("rt,rtk->kr", values, self.along)
        return np.stack([_sums(self.owner, each, shape) for each in found], axis=-1)


def _sums(owner: NDArray[np.int64], values: Array, shape: tuple[int, int]) -> Array:
    """``values`` (R,) added up for every owner, an index of ``shape``."""
    return np.bincount(owner, values, shape[0] * shape[1]).reshape(shape)


def terms(labels: Labels, loss: Loss, field: Field) -> Iterator[Terms]:
    """All the terms, in a few parts."""
    if labels.binary and labels.steps is not None and loss.pieces is None:
        yield _of_steps_along_map(labels, labels.steps, loss, field)
        return
    for given in mixtures(labels, loss.kind, field):
        if loss.pieces is not None:
            law = loss.pieces, given.mean, given.scale, given.response
            averages = partial(average_score, *law), partial(average_proximal, *law)
            yield Terms(given.owner, given.sign, given.weight, given.along, *averages)
            continue
        low, high = given.ends()
        # where t0 is nearly a function of tau, each has nodes of its own
        near = ((high - low) <= FAREST * FAR * given.scale)[:, 0]
        for part in (given.at(near), given.at(~near).each()):
            if part.owner.size:
                yield _along_map(labels.order, loss, part)


def _along_map(order: int, loss: Loss, given: Gaussians) -> Terms:
    """Points that serve all Gaussians of a row together: few, as a user's loss may cost many times
    what a density does."""
    sd, (low, high) = given.scale, given.ends()
    curve = proximal_nodes(loss, given.response, low - FAR * sd, high + FAR * sd, sd, order)
    density = (curve.t0 / sd)[..., None] - (given.mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    length = curve.length / (np.sqrt(2 * np.pi) * sd)
    weight = (density @ given.weight[..., None])[..., 0] * length
    along = density @ given.along * length[..., None]
    return Terms(given.owner, given.sign, weight, along, *_at_points(loss, curve))


def _of_steps_along_map(labels: Labels, steps: Steps, loss: Loss, field: Field) -> Terms:
    """Points for labels +-1 that change at ``steps`` of tau, both at once."""
    C, S = field.centre[..., None, None], np.sqrt(field.power)[..., None, None]
    y = np.array([[1.0], [-1.0]])
    # t0 = y omega, or y - omega
    sign, mean = (y, y * C) if loss.kind == "margin" else (-np.ones((2, 1)), y - C)
    S = np.maximum(S, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    V, low, high = field.response[..., None, None], mean - FAR * S, mean + FAR * S
    curve = proximal_nodes(loss, V, low, high, S, labels.order)
    z = (curve.t0 - mean) / S
    density = np.exp(-(z**2) / 2) * curve.length / (np.sqrt(2 * np.pi) * S)
    rows = field.response.shape
    y, sign, z, w = (np.broadcast_to(x, z.shape).reshape(*rows, -1) for x in (y, sign, z, density))
    # tau ~ N(tau, variance) given omega
    tau = field.pull / np.sqrt(field.power)[..., None] * sign * z
    variance = (remaining(field) / field.power)[..., None]
    label, slope = _mean_label(steps, tau, variance)
    weight = w * (1 + y * label) / 2
    along = w * (tau + y * (tau * label + variance * slope)) / 2
    flat = (V.size, weight.shape[-1])
    curve = Curve(*(each.reshape(flat) for each in curve))
    law = sign.reshape(flat), weight.reshape(flat), along.reshape(*flat, 1)
    return Terms(np.arange(V.size), *law, *_at_points(loss, curve))


def _mean_label(steps: Steps, mean: Array, variance: Array) -> tuple[Array, Array]:
    """E y (P, N, L) and E dy/dtau over tau ~ N(mean, variance), where y changes at ``steps``."""
    label, slope = np.full_like(mean, steps.values[0]), np.zeros_like(mean)
    sd = np.sqrt(variance)
    for edge, jump in zip(steps.edges.T, np.diff(steps.values), strict=True):
        u = (mean - edge[:, None]) / sd
        label += jump * ndtr(u)
        slope += jump / (np.sqrt(2 * np.pi) * sd) * np.exp(-(u**2) / 2)
    return label, slope


def _at_points(loss: Loss, curve: Curve) -> tuple[Callable[[], Score], Callable[[], Proximal]]:
    """What ``Terms`` average, at points of the map."""
    return (
        lambda: Score(curve.score, curve.slope, curve.score**2),
        lambda: Proximal(curve.t, curve.t**2, loss.value(curve.t)),
    )

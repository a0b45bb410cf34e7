"""The law of t0, which a loss sees, as a mixture: given kappa, tau, and a variance of the noise or
a label.

t0 = y - omega, or y omega; omega is Gaussian given tau.  Every term is a location and a scale
of one law: the normal one, or Student's t blurred by what is Gaussian.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.piecewise import NORMAL, Law
from solvers.results import Array

from .labels import Component, Labels
from .local_field import THINNEST_FIELD, Field, given_tau
from .losses import Loss

UNLIKELY = 64.0  # kappa^2 + tau^2: two Gaussians are beyond with probability 1e-14


class Terms(NamedTuple):
    """T terms in each of R rows.

    Attributes
    ----------
    owner : array (R,)
        The row's index of (P, N), which several may share.
    response : array (R, 1)
    sign : float or array (R, T)
        o = ds / dg.
    mean, scale : arrays (R, T), (R, 1)
        t0 = mean + scale times what has the ``law``.
    weight, along : arrays (R, T), (R, T, K')
        The weight, alone and times tau.
    law : Law
    """

    owner: NDArray[np.int64]
    response: Array
    sign: float | Array
    mean: Array
    scale: Array
    weight: Array
    along: Array
    law: Law = NORMAL

    def at(self, which: Array) -> "Terms":
        """Some of the rows, of normal terms that have one sign."""
        owner, response, mean = self.owner[which], self.response[which], self.mean[which]
        rest = self.scale[which], self.weight[which], self.along[which]
        return Terms(owner, response, self.sign, mean, *rest)

    def total(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums with the weights, (P, N), of ``values`` (R, T)."""
        return sums(self.owner, np.einsum("rt,rt->r", values, self.weight), shape)

    def total_along(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums with the weights times tau, (P, N, K')."""
        found = np.einsum("rt,rtk->kr", values, self.along)
        return np.stack([sums(self.owner, each, shape) for each in found], axis=-1)


def sums(owner: NDArray[np.int64], values: Array, shape: tuple[int, int]) -> Array:
    """``values`` (R,) added up for every owner, an index of ``shape``."""
    return np.bincount(owner, values, shape[0] * shape[1]).reshape(shape)


def terms(labels: Labels, loss: Loss, field: Field) -> Iterator[Terms]:
    """All the terms, in a few parts."""
    if labels.binary:
        yield from _of_classes(labels, loss, field)
    else:
        yield from numbers(labels, field, field.response)


def numbers(labels: Labels, field: Field, V: Array) -> Iterator[Terms]:
    """Terms of real labels with responses V (P, N), where kappa and tau are not unlikely
    together."""
    for given in labels.components:
        found = _number(given, labels, field, V)
        if found.owner.size:  # kappa alone may be unlikely enough
            yield found


def _number(given: Component, labels: Labels, field: Field, V: Array) -> Terms:
    centre, sd = given_tau(given.tau, field)
    shape, flat = centre.shape, (V.size, centre.shape[2])
    mean = (given.mean - centre).reshape(flat)
    variance = sd.reshape(-1, 1) ** 2 + given.variance
    scale = np.sqrt(np.maximum(variance, THINNEST_FIELD**2 * (mean**2).max(axis=1, keepdims=True)))
    likely = labels.square[:, None] + (given.tau**2).sum(axis=-1) < UNLIKELY
    weight = np.broadcast_to(given.share * given.weights * likely, shape)
    along = (weight[..., None] * given.tau).reshape(*flat, -1)
    every = np.arange(V.size)
    found = Terms(every, V.reshape(-1, 1), -1.0, mean, scale, weight.reshape(flat), along)
    found = found.at(np.flatnonzero(found.weight.any(axis=1)))
    seen = found.weight.any(axis=0)  # panels of no length are the last of a row
    found = found._replace(
        mean=found.mean[:, seen], weight=found.weight[:, seen], along=found.along[:, seen]
    )
    if labels.student is None:
        return found
    from solvers.student import blurred

    nu, sigma = labels.student
    law = blurred(nu, sigma, found.scale[:, 0] ** 2)
    return found._replace(scale=law.scale[:, None], law=law)


def _of_classes(labels: Labels, loss: Loss, field: Field) -> Iterator[Terms]:
    """Terms of labels +-1."""
    (given,) = labels.components
    centre, sd = given_tau(given.tau, field)
    shape, flat = centre.shape, (field.response.size, centre.shape[2])
    decided = bool((np.abs(given.mean) == 1).all())  # tau alone says which label
    for y in (given.mean,) if decided else (1.0, -1.0):
        weight = np.broadcast_to(given.weights * (1 + y * given.mean) / 2, shape)
        margin = loss.kind == "margin"
        yield Terms(
            np.arange(flat[0]),
            field.response.reshape(-1, 1),
            np.broadcast_to(y, shape).reshape(flat) if margin else -1.0,
            (y * centre if margin else y - centre).reshape(flat),
            sd.reshape(-1, 1),
            weight.reshape(flat),
            (weight[..., None] * given.tau).reshape(*flat, -1),
        )

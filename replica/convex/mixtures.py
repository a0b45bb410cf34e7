"""The law of t0, which a loss sees, as a mixture of Gaussians: given kappa, tau, and a component
of the noise or a label.

t0 = y - omega, or y omega; omega is Gaussian given tau.  A Gaussian much wider than its means are
apart changes little between them, and takes few for all of them: averages over it, as functions of
the mean, are polynomials there, and Chebyshev nodes take the place of those of tau.
"""

from collections.abc import Iterator
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from solvers.results import Array

from .labels import Labels
from .local_field import THINNEST_FIELD, Field, remaining

UNLIKELY = 64.0  # kappa^2 + tau^2: two Gaussians are beyond with probability 1e-14
FEW = (4, 8, 16, 32)  # Chebyshev nodes that may stand for those of tau
FEW_TOLERANCE = 1e-11  # of averages over them
SMALLEST = 1e-300  # range of the means, where there is one


class Gaussians(NamedTuple):
    """T Gaussians in each of R rows, of one standard deviation a row.

    Attributes
    ----------
    owner : array (R,)
        The row's index of (P, N), which several may share.
    sign, response : arrays (R, 1)
        o = ds / dg, and V.
    mean, scale : arrays (R, T), (R, 1)
        Of t0.
    weight, along : arrays (R, T), (R, T, K')
        The weight, alone and times tau.
    """

    owner: NDArray[np.int64]
    sign: Array
    response: Array
    mean: Array
    scale: Array
    weight: Array
    along: Array

    def at(self, which: Array) -> "Gaussians":
        """Some of the rows."""
        return Gaussians(*(part[which] for part in self))

    def each(self) -> "Gaussians":
        """Rows of one Gaussian, those of no weight left out."""
        seen = np.nonzero(self.weight)
        mean, weight, along = (x[seen][:, None] for x in (self.mean, self.weight, self.along))
        return self.at(seen[0])._replace(mean=mean, weight=weight, along=along)

    def ends(self) -> tuple[Array, Array]:
        """The least and the largest mean of each row, (R, 1)."""
        seen = self.weight != 0
        low = self.mean.min(axis=1, keepdims=True, where=seen, initial=np.inf)
        return low, self.mean.max(axis=1, keepdims=True, where=seen, initial=-np.inf)

    def noisy(self, scale: Array, shares: Array) -> "Gaussians":
        """The same for each of m components of the noise, with scales (R, m) and ``shares`` (m,):
        m times the rows."""
        count, (nodes, directions) = shares.size, self.along.shape[1:]
        owner, sign, response, mean = (np.repeat(x, count, axis=0) for x in self[:4])
        weight = (self.weight[:, None] * shares[:, None]).reshape(-1, nodes)
        along = (self.along[:, None] * shares[:, None, None]).reshape(-1, nodes, directions)
        return Gaussians(owner, sign, response, mean, scale.reshape(-1, 1), weight, along)


def mixtures(labels: Labels, kind: str, field: Field) -> Iterator[Gaussians]:
    """The law of t0, in parts, for a loss of that ``kind``."""
    if not labels.binary:
        # targets may grow: where kappa and tau are unlikely together nothing is averaged
        likely = labels.square[:, None] + (labels.tau**2).sum(axis=-1) < UNLIKELY
        weights = labels.weights * likely
        yield from _noisy(labels, _given_tau(labels, field, labels.mean, -1.0, weights))
        return
    for y in (1.0, -1.0):
        label, sign = (0.0, y) if kind == "margin" else (y, -1.0)
        chance = labels.weights * (1 + y * labels.mean) / 2
        yield from _noisy(labels, _given_tau(labels, field, label, sign, chance))


def _noisy(labels: Labels, every: Gaussians) -> Iterator[Gaussians]:
    """``every`` Gaussian with each component of the noise, or few in the place of many."""
    given = every.at(np.flatnonzero(every.weight.any(axis=1)))
    if not given.owner.size:  # kappa alone is unlikely enough
        return
    last = np.flatnonzero(given.weight.any(axis=0))[-1] + 1  # the others have no length
    mean, weight, along = given.mean[:, :last], given.weight[:, :last], given.along[:, :last]
    given = given._replace(mean=mean, weight=weight, along=along)
    low, high = given.ends()
    # scales (R, M) of the components
    thinnest = THINNEST_FIELD * np.maximum(np.abs(low), np.abs(high))
    scale = np.maximum(np.sqrt(given.scale**2 + labels.variances), thinnest)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, SMALLEST)
    few = np.array([n for n in FEW if n < last])
    group = np.searchsorted([farthest_apart(n) for n in few], (half / scale).max(axis=0))
    count = few[group[group < few.size]].max(initial=0)
    # averages of Chebyshev polynomials
    basis = chebvander(np.clip((mean - middle) / half, -1, 1), max(count - 1, 0))
    powers, rise = (x.swapaxes(1, 2) @ basis for x in (weight[..., None], along))
    for index, nodes in enumerate(few):
        if (group == index).any():
            x = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
            matrix = 2 / nodes * chebvander(x, nodes - 1).T
            matrix[0] /= 2
            on_nodes = given._replace(
                mean=middle + half * x,
                weight=(powers[..., :nodes] @ matrix)[:, 0],
                along=(rise[..., :nodes] @ matrix).swapaxes(1, 2),
            )
            yield on_nodes.noisy(scale[:, group == index], labels.shares[group == index])
    if (rest := group == few.size).any():
        yield given.noisy(scale[:, rest], labels.shares[rest])


def farthest_apart(nodes: int) -> float:
    """Distance of the farthest means from their middle, in standard deviations, up to which that
    many Chebyshev nodes stand for all: the Chebyshev coefficient of exp(-z^2 / 2) that is left
    out is some (r^2 / 8)^k / k! for k = nodes / 2."""
    half = nodes // 2
    return float(np.sqrt(8 * (FEW_TOLERANCE * factorial(half)) ** (1 / half)))


def _given_tau(
    labels: Labels, field: Field, label: Array | float, sign: float, weights: Array
) -> Gaussians:
    """A row for each of (P, N), of t0 = label + sign omega given every tau, with ``weights``
    (N, T)."""
    omega = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, labels.tau)
    rows, (nodes, directions) = field.centre.size, labels.tau.shape[1:]
    weight = np.broadcast_to(weights, omega.shape)
    return Gaussians(
        owner=np.arange(rows),
        sign=np.full((rows, 1), sign),
        response=field.response.reshape(rows, 1),
        mean=(label + sign * omega).reshape(rows, nodes),
        scale=np.sqrt(remaining(field)).reshape(rows, 1),
        weight=weight.reshape(rows, nodes),
        along=(weight[..., None] * labels.tau).reshape(rows, nodes, directions),
    )

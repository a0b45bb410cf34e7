"""Averages over the argument t0 of a loss, given kappa and tau.  Eq. (6.1)

t0 = y - omega, or y omega, is Gaussian for each label and component of the noise.  Its averages are
exact for a piecewise quadratic loss.  For other losses they are sums over points of the proximal
map, with the density of t0 given every tau.  If the Gaussian is much wider than the distance
between its means, the averages are nearly polynomials of the mean, which a few Chebyshev nodes
determine.
"""

from collections.abc import Callable
from functools import cache, partial
from math import factorial

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.chebyshev import coefficient_matrix
from solvers.results import Array

from ..saddle_point import THINNEST_FIELD, Field, variance_given_tau
from .label_tables import ConditionalLabels
from .losses import Loss
from .proximal import EXACT_AVERAGES, FAR, Averaged, averaged_values, proximal_nodes

# Averages (3, R, T) over t0 of means (R, T), standard deviations (R, 1) and responses (R, 1).
Average = Callable[[Array, Array, Array], Array]


def averages_given_tau(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages E s, -E s' and E s^2, or E t, E t^2 and E rho(t), at every node of tau,
    (3, P, N, T)."""
    omega = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, labels.tau)
    V = field.response.reshape(-1, 1)
    sd = np.sqrt(variance_given_tau(field).reshape(-1, 1) + labels.variances)
    average = partial(_by_points, quantity, loss, labels.order)
    if loss.pieces is not None:
        average = partial(EXACT_AVERAGES[quantity], loss.pieces)
    law: list[tuple[Array | float, Array]] = [(labels.mean, np.ones_like(labels.mean))]
    if labels.binary:
        law = [(y, (1 + y * labels.mean) / 2) for y in (1.0, -1.0)]
    total = np.zeros((3, *omega.shape))
    for y, probability in law:
        sign, mean = (float(y), y * omega) if loss.kind == "margin" else (-1.0, y - omega)
        values = _mixture_averages(average, mean.reshape(V.size, -1), sd, V, labels.shares)
        if quantity == "score":
            values *= np.array([sign, -1.0, 1.0])[:, None, None]
        total += probability * values.reshape(total.shape)
    return total


def _mixture_averages(average: Average, mean: Array, sd: Array, V: Array, shares: Array) -> Array:
    """Averages (3, R, T) over a mixture of Gaussians with standard deviations (R, M)."""
    low, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-300)
    sd = np.maximum(sd, THINNEST_FIELD * (np.abs(middle) + half))
    sizes = [n for n in (4, 8, 16, 32) if 2 * n <= mean.shape[1]]
    groups = np.searchsorted([largest_half_width(n) for n in sizes], (half / sd).max(axis=0))
    total = np.zeros((3, *mean.shape))
    for index in np.unique(groups):
        selected = groups == index
        count, all_nodes = np.count_nonzero(selected), index == len(sizes)
        nodes = mean if all_nodes else middle + half * chebpts1(sizes[index])
        nodes, responses = (np.repeat(x, count, axis=0) for x in (nodes, V))
        at_nodes = average(nodes, sd[:, selected].reshape(-1, 1), responses)
        at_nodes = at_nodes.reshape(3, len(mean), count, -1)
        values = np.einsum("xrmn,m->xrn", at_nodes, shares[selected])
        if not all_nodes:
            x = np.clip((mean - middle) / half, -1, 1)
            coefficients = coefficient_matrix(sizes[index]) @ values.transpose(1, 2, 0)
            values = np.moveaxis(chebvander(x, sizes[index] - 1) @ coefficients, 2, 0)
        total += values
    return total


@cache
def largest_half_width(nodes: int) -> float:
    """Largest half width r of the range of means, in standard deviations, for Chebyshev nodes.

    Up to it, averages at so many nodes determine all others to 1e-11: the first neglected Chebyshev
    coefficient of exp(-z^2 / 2) is about (r^2 / 8)^k / k! for k = nodes / 2.
    """
    half = nodes // 2
    return float(np.sqrt(8 * (1e-11 * factorial(half)) ** (1 / half)))


def _by_points(
    quantity: Averaged, loss: Loss, order: int, mean: Array, sd: Array, V: Array
) -> Array:
    """Averages (3, R, T) by points of the proximal map, the same for all Gaussians of a row.

    There are few points, as a user's loss may cost much more than a density.
    """
    low, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    # where t0 is nearly a function of tau, every Gaussian has its own points
    thin = ((high - low) > 10 * FAR * sd)[:, 0]
    if thin.any() and mean.shape[1] > 1:
        found = np.empty((3, *mean.shape))
        each = mean[thin].reshape(-1, 1), *(np.repeat(x[thin], mean.shape[1], 0) for x in (sd, V))
        found[:, thin] = _by_points(quantity, loss, order, *each).reshape(3, -1, mean.shape[1])
        if not thin.all():
            joint = mean[~thin], sd[~thin], V[~thin]
            found[:, ~thin] = _by_points(quantity, loss, order, *joint)
        return found
    proximal_map = proximal_nodes(loss, V, low - FAR * sd, high + FAR * sd, sd, order)
    density = (proximal_map.t0 / sd)[..., None] - (mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    values = averaged_values(quantity, loss, proximal_map) * (
        proximal_map.length / (np.sqrt(2 * np.pi) * sd)
    )
    return np.moveaxis(np.stack(values, axis=1) @ density, 1, 0)

"""Averages over what a loss sees, given kappa and tau.  Eq. (6.1)

It sees t0 = y - omega, or y omega: a Gaussian, for each label and component of the noise.  Averages
over one are exact for a piecewise quadratic loss; for others they are sums over points of the
proximal map, with the densities of t0 given every tau.  A Gaussian much wider than its means are
apart changes little between them: as functions of the mean these averages are polynomials there,
and are taken at few Chebyshev nodes.
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
from .proximal import FAR, OF_PIECES, Averaged, at_points, proximal_nodes

# Averages (3, R, T) over t0 of means (R, T), standard deviations (R, 1) and responses (R, 1).
Average = Callable[[Array, Array, Array], Array]


def given_tau(what: Averaged, labels: ConditionalLabels, loss: Loss, field: Field) -> Array:
    """E s, -E s' and E s^2, or E t, E t^2 and E rho(t), at every node of tau: (3, P, N, T)."""
    omega = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, labels.tau)
    V = field.response.reshape(-1, 1)
    sd = np.sqrt(variance_given_tau(field).reshape(-1, 1) + labels.variances)
    average = partial(_along_map, what, loss, labels.order)
    if loss.pieces is not None:
        average = partial(OF_PIECES[what], loss.pieces)
    law: list[tuple[Array | float, Array]] = [(labels.mean, np.ones_like(labels.mean))]
    if labels.binary:
        law = [(y, (1 + y * labels.mean) / 2) for y in (1.0, -1.0)]
    total = np.zeros((3, *omega.shape))
    for y, chance in law:
        sign, mean = (float(y), y * omega) if loss.kind == "margin" else (-1.0, y - omega)
        values = _mixed(average, mean.reshape(V.size, -1), sd, V, labels.shares)
        if what == "score":
            values *= np.array([sign, -1.0, 1.0])[:, None, None]
        total += chance * values.reshape(total.shape)
    return total


def _mixed(average: Average, mean: Array, sd: Array, V: Array, shares: Array) -> Array:
    """The averages (3, R, T) over a mixture of Gaussians, of standard deviations (R, M)."""
    low, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-300)
    sd = np.maximum(sd, THINNEST_FIELD * (np.abs(middle) + half))
    few = [n for n in (4, 8, 16, 32) if 2 * n <= mean.shape[1]]
    groups = np.searchsorted([farthest_apart(n) for n in few], (half / sd).max(axis=0))
    total = np.zeros((3, *mean.shape))
    for index in np.unique(groups):
        these = groups == index
        count, all_nodes = np.count_nonzero(these), index == len(few)
        nodes = mean if all_nodes else middle + half * chebpts1(few[index])
        nodes, responses = (np.repeat(x, count, axis=0) for x in (nodes, V))
        each = average(nodes, sd[:, these].reshape(-1, 1), responses)
        each = each.reshape(3, len(mean), count, -1)
        values = np.einsum("xrmn,m->xrn", each, shares[these])
        if not all_nodes:
            x = np.clip((mean - middle) / half, -1, 1)
            coefficients = coefficient_matrix(few[index]) @ values.transpose(1, 2, 0)
            values = np.moveaxis(chebvander(x, few[index] - 1) @ coefficients, 2, 0)
        total += values
    return total


@cache
def farthest_apart(nodes: int) -> float:
    """Distance of the farthest means from their middle, in standard deviations, up to which that
    many Chebyshev nodes stand for all to 1e-11: the Chebyshev coefficient of exp(-z^2 / 2) that is
    left out is some (r^2 / 8)^k / k! for k = nodes / 2."""
    half = nodes // 2
    return float(np.sqrt(8 * (1e-11 * factorial(half)) ** (1 / half)))


def _along_map(what: Averaged, loss: Loss, order: int, mean: Array, sd: Array, V: Array) -> Array:
    """The averages (3, R, T) by points of the proximal map that serve all Gaussians of a row: few,
    as a user's loss may cost many times what a density does."""
    low, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    # where t0 is nearly a function of tau, each has points of its own
    alone = ((high - low) > 10 * FAR * sd)[:, 0]
    if alone.any() and mean.shape[1] > 1:
        found = np.empty((3, *mean.shape))
        each = mean[alone].reshape(-1, 1), *(np.repeat(x[alone], mean.shape[1], 0) for x in (sd, V))
        found[:, alone] = _along_map(what, loss, order, *each).reshape(3, -1, mean.shape[1])
        if not alone.all():
            together = mean[~alone], sd[~alone], V[~alone]
            found[:, ~alone] = _along_map(what, loss, order, *together)
        return found
    curve = proximal_nodes(loss, V, low - FAR * sd, high + FAR * sd, sd, order)
    density = (curve.t0 / sd)[..., None] - (mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    values = at_points(what, loss, curve) * (curve.length / (np.sqrt(2 * np.pi) * sd))
    return np.moveaxis(np.stack(values, axis=1) @ density, 1, 0)

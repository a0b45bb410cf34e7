"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

Given kappa and tau the prediction on a new input, omega, is N(C + P.tau, S^2 - |P|^2) with

    C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,  P = sum_b mu_1^b psi_b,
    S^2 = m_1' Q_1 m_1 + m_2.q_2,

and the loss sees t0 = y - omega, or y omega.  For a piecewise quadratic loss t0 is Gaussian
given tau and a variance of the noise, and its averages are exact.  Other losses are summed
along their proximal map (``proximal_nodes``): for labels +-1 with the label's probability given
omega, in closed form for steps of E[y | z] and as a series for what is smooth; for real labels
with the density of t0 given every tau.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from solvers.piecewise import average_proximal, average_score
from solvers.results import Array

from .bulk import Bulk
from .equivalence import Table
from .label_tables import Component, Labels, LabelTable
from .losses import Loss
from .overlaps import Overlaps
from .proximal_nodes import Curve, nodes_on, proximal_nodes, stretches

FAR = 7.0  # standard deviations, beyond which a Gaussian holds 3e-12
THINNEST = 1e-9  # standard deviation, of the mean: thinner ones are lost to rounding
CUT_OFF = 1e-12  # of a series for the mean label
FAREST = 12.0  # range of t0 over FAR standard deviations, for nodes that serve all tau
UNLIKELY = 64.0  # kappa^2 + tau^2: two Gaussians are beyond with probability 1e-14
NEGLIGIBLE = 1e-14  # weight of a tau, over the largest
CACHED = 2**15  # nodes handled at once, of which a dozen arrays stay in the cache,
LASTING = 2**18  # or of a proximal map, where there is more to do between them
PANELS = 8  # along a proximal map, usually
# Freed at once: from then on glibc keeps that much at hand, where it would give every array of a
# few 100 kB back, and take it again page by page, which takes as long as what is done with them.
np.empty(2**21)


class Field(NamedTuple):
    """C (P, N), P (P, N, K'), S^2 (P, N) and V (P, N) at every point and kappa."""

    centre: Array
    pull: Array
    power: Array
    response: Array


class Scores(NamedTuple):
    """E s, -E s', E s^2, (P, N) each, and E tau s (P, N, K'), given kappa."""

    mean: Array
    slope: Array
    square: Array
    along: Array


class Losses(NamedTuple):
    """Averages over everything, (P,) each: the loss and squared residual y - f of training
    samples, the loss on new ones, and P(y f < 0) on new ones, NaN unless labels are +-1 (its
    layers are its own: see ``classification``)."""

    train: Array
    train_square: Array
    test: Array
    classification: Array


class Part(NamedTuple):
    """Labels of one kind, given tau: sign o = ds / dg, one or (N, T), mean (P, N, T) and variance
    (P, N, T or 1) of t0, weight (N, T), tau (N, T, K')."""

    sign: float | Array
    mean: Array
    variance: Array
    weight: Array
    tau: Array


class Nodes(NamedTuple):
    """Points of the proximal map (R, L) with their weights, alone and times tau (R, L, K'), for
    R ``rows`` (R,): indices of (P, N) that may occur several times."""

    sign: float | Array
    curve: Curve
    weight: Array
    along: Array
    rows: NDArray[np.int64]

    def total(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums over the points, (P, N), of ``values`` like the weights."""
        sums = values.sum(axis=-1)
        return np.bincount(self.rows, sums, shape[0] * shape[1]).reshape(shape)


def field_on(table: Table, bulk: Bulk, o: Overlaps) -> Field:
    """C, P, S^2 and V at every point and node of ``table``, whose neurons ``bulk`` describes."""
    readout = np.concatenate([o.m, o.theta.reshape(len(o.m), -1)], axis=1)
    centre = readout @ table.regressors
    power = bulk.pack(o.Q1, o.q2) @ bulk.moments
    return Field(
        centre=centre,
        pull=np.einsum("pak,an->pnk", o.psi, table.mu1),
        power=np.maximum(power, THINNEST**2 * centre**2 + 1e-300),
        response=bulk.pack(o.V1, o.V2) @ bulk.moments,
    )


def scores(labels: Labels, loss: Loss, field: Field) -> Scores:
    """The averages of (6.2)-(6.3) given kappa."""
    return Scores(*_in_blocks(_scores, labels, loss, field))


def losses(given: LabelTable, loss: Loss, field: Field) -> Losses:
    """Errors in the loss and in the label.

    After training, a training sample's residual is that at the proximal point, t; a new
    sample's is t0.
    """
    train, first, second, test = _in_blocks(_residuals, given.labels, loss, field)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    w = given.table.weights
    return Losses(train @ w, squares @ w, test @ w, np.full(len(train), np.nan))


def at_once(labels: Labels, loss: Loss) -> int:
    """How many values of kappa, of all points together, should be handled at once."""
    if loss.pieces is not None:
        return max(1, CACHED // labels.width)
    along = PANELS * labels.order
    summed = labels.binary and (labels.steps is not None or labels.series is not None)
    return max(1, LASTING // (along if summed else along * labels.width))


def _in_blocks(
    average: Callable[[Labels, Loss, Field], tuple[Array, ...]],
    labels: Labels,
    loss: Loss,
    field: Field,
) -> list[Array]:
    """Averages given kappa, (P, N) or (P, N, K'), of a few kappa at once: fewer of a component
    that has more nodes."""
    points, count = field.centre.shape
    total: list[Array] = []
    for given in labels.components:
        alone = labels._replace(components=(given,))
        size = max(1, at_once(alone, loss) // points)
        rows = [slice(i, i + size) for i in range(0, count, size)]
        found = [average(alone.at(b), loss, Field(*(x[:, b] for x in field))) for b in rows]
        whole = [np.concatenate(blocks, axis=1) for blocks in zip(*found, strict=True)]
        total = [x + y for x, y in zip(total, whole, strict=True)] if total else whole
    return total


def _scores(labels: Labels, loss: Loss, field: Field) -> tuple[Array, ...]:
    shape = field.centre.shape
    mean, slope, square = np.zeros((3, *shape))
    along = np.zeros((*shape, field.pull.shape[2]))
    V = field.response[..., None]
    if loss.pieces is not None:
        for part in parts(labels, loss, field):
            s = average_score(loss.pieces, part.mean, np.sqrt(part.variance), V)
            signed = part.sign * part.weight
            mean += np.einsum("pnt,nt->pn", s.mean, signed)
            along += np.einsum("pnt,ntk->pnk", s.mean, signed[..., None] * part.tau)
            slope -= np.einsum("pnt,nt->pn", s.slope, part.weight)
            square += np.einsum("pnt,nt->pn", s.square, part.weight)
    else:
        for nodes in sampled(labels, loss, field, field.response):
            score = nodes.sign * nodes.curve.score
            mean += nodes.total(nodes.weight * score, shape)
            slope -= nodes.total(nodes.weight * nodes.curve.slope, shape)
            square += nodes.total(nodes.weight * score**2, shape)
            for k in range(along.shape[2]):
                along[..., k] += nodes.total(nodes.along[..., k] * score, shape)
    return mean, slope, square, along


def _residuals(labels: Labels, loss: Loss, field: Field) -> tuple[Array, ...]:
    """E rho(t), E t and E t^2 at the proximal point, and E rho(t0), (P, N) each."""
    shape = field.centre.shape
    train, first, second, test = np.zeros((4, *shape))
    V = field.response[..., None]
    if loss.pieces is not None:
        for part in parts(labels, loss, field):
            sd = np.sqrt(part.variance)
            after = average_proximal(loss.pieces, part.mean, sd, V)
            before = average_proximal(loss.pieces, part.mean, sd, np.zeros_like(V))
            values = after.value, *after[:2], before.value
            for total, value in zip((train, first, second, test), values, strict=True):
                total += np.einsum("pnt,nt->pn", value, part.weight)
    else:
        for nodes in sampled(labels, loss, field, field.response):
            t = nodes.curve.t
            for total, value in zip((train, first, second), (loss.value(t), t, t**2), strict=True):
                total += nodes.total(nodes.weight * value, shape)
        for nodes in sampled(labels, loss, field, np.zeros_like(field.response)):
            test += nodes.total(nodes.weight * loss.value(nodes.curve.t), shape)
    return train, first, second, test


def parts(labels: Labels, loss: Loss, field: Field) -> Iterator[Part]:
    """The Gaussians that t0 is a mixture of, given kappa, tau and a variance."""
    for given in labels.components:
        centre, sd = given_tau(given, field)
        if not labels.binary:
            mean = given.mean - centre
            for variance, share in zip(given.variances, given.shares, strict=True):
                yield Part(-1.0, mean, sd**2 + variance, share * given.weights, given.tau)
            continue
        decided = bool((np.abs(given.mean) == 1).all())  # tau alone says which label
        for y in (given.mean,) if decided else (1.0, -1.0):
            weight = given.weights * (1 + y * given.mean) / 2
            if loss.kind == "margin":
                yield Part(y, y * centre, sd**2, weight, given.tau)
            else:
                yield Part(-1.0, y - centre, sd**2, weight, given.tau)


def sampled(labels: Labels, loss: Loss, field: Field, V: Array) -> Iterator[Nodes]:
    """Nodes along the proximal map of response V (P, N), for t0 of every kind of labels."""
    if labels.binary:
        yield _for_labels(labels, loss, field, V)
        return
    for given in labels.components:
        group = _rows(given, labels.square, field, V)
        far = FAR * group.sd
        seen = group.weight > NEGLIGIBLE * group.weight.max(initial=0.0)
        low = group.mean.min(axis=-1, keepdims=True, where=seen, initial=np.inf) - far
        high = group.mean.max(axis=-1, keepdims=True, where=seen, initial=-np.inf) + far
        near = ((high - low) <= FAREST * far)[:, 0]
        if near.any():
            yield _over_all_tau(labels.order, loss, group.at(near), low[near], high[near])
        if not near.all():
            yield from _over_each_tau(labels.order, loss, group.at(~near))


class Rows(NamedTuple):
    """Values of kappa, with one variance of the noise each: their owner (R,), an index of (P, N),
    the mean of t0 given tau (R, T), its standard deviation and the response (R, 1), and the
    weight of tau, alone (R, T) and times tau (R, T, K')."""

    owner: NDArray[np.int64]
    mean: Array
    sd: Array
    response: Array
    weight: Array
    along: Array

    def at(self, which: Array) -> "Rows":
        """Some of them."""
        return Rows(*(part[which] for part in self))


def _rows(given: Component, square: Array, field: Field, V: Array) -> Rows:
    """For real labels t0 = y - omega, where kappa, of that ``square``, and tau are not unlikely
    together."""
    shape = (*V.shape, given.shares.size, given.weights.shape[1])
    centre, sd = given_tau(given, field)
    mean = np.broadcast_to((given.mean - centre)[:, :, None], shape)
    variance = sd[..., None] ** 2 + given.variances[:, None]
    least = THINNEST**2 * (mean**2).max(axis=-1, keepdims=True)
    likely = square[:, None] + (given.tau**2).sum(axis=-1) < UNLIKELY
    weight = np.broadcast_to((given.weights * likely)[:, None] * given.shares[:, None], shape)
    along = weight[..., None] * given.tau[:, None]
    rows, nodes = V.size * shape[2], shape[3]
    found = Rows(
        np.repeat(np.arange(V.size), shape[2]),
        mean.reshape(rows, nodes),
        np.sqrt(np.maximum(variance, least)).reshape(rows, 1),
        np.repeat(V.ravel(), shape[2])[:, None],
        weight.reshape(rows, nodes),
        along.reshape(rows, nodes, -1),
    )
    return found.at(np.flatnonzero(found.weight.any(axis=1)))


def _over_all_tau(order: int, loss: Loss, group: Rows, low: Array, high: Array) -> Nodes:
    """Nodes from ``low`` to ``high`` for all tau together: few, as a user's loss may cost many
    times what a density does."""
    sd = group.sd
    curve = proximal_nodes(loss, group.response, low, high, sd, order)
    density = (curve.t0 / sd)[..., None] - (group.mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    length = curve.length / (np.sqrt(2 * np.pi) * sd)
    weight = (density @ group.weight[..., None])[..., 0] * length
    return Nodes(-1.0, curve, weight, density @ group.along * length[..., None], group.owner)


def _over_each_tau(order: int, loss: Loss, group: Rows) -> Iterator[Nodes]:
    """Nodes for every tau: where t0 is nearly a function of tau.  Most tau are far from most
    stretches of the map."""
    seen = group.weight > 0
    row, _ = np.nonzero(seen)
    mean, weight, along = group.mean[seen][:, None], group.weight[seen], group.along[seen]
    sd, V, owner = group.sd[row], group.response[row], group.owner[row]
    for stretch in stretches(loss, V, mean - FAR * sd, mean + FAR * sd, sd):
        (here,) = np.nonzero((stretch.last > stretch.first)[:, 0])
        if here.size:
            there = stretch._replace(first=stretch.first[here], last=stretch.last[here])
            curve = nodes_on(there, loss, V[here], sd[here], order)
            chance = _gaussian(curve, mean[here], sd[here])
            each = chance * weight[here, None], chance[..., None] * along[here, None]
            yield Nodes(-1.0, curve, *each, owner[here])


def _for_labels(labels: Labels, loss: Loss, field: Field, V: Array) -> Nodes:
    """Nodes for labels +-1, both at once."""
    C, S = field.centre[..., None, None], np.sqrt(field.power)[..., None, None]
    y = np.array([[1.0], [-1.0]])
    # t0 = y omega, or y - omega
    sign, mean = (y, y * C) if loss.kind == "margin" else (-np.ones((2, 1)), y - C)
    curve = proximal_nodes(
        loss, V[..., None, None], mean - FAR * S, mean + FAR * S, S, labels.order
    )
    z = sign * (curve.t0 - mean) / S
    shape, rows = z.shape, (V.size, -1)
    mass, label, tau, product = _labels(labels, field, z.reshape(*V.shape, -1))
    y, sign = (np.broadcast_to(x, shape).reshape(*V.shape, -1) for x in (y, sign))
    w = _gaussian(curve, mean, S).reshape(y.shape)
    along = w[..., None] * (tau + y[..., None] * product) / 2
    weight = w * (mass + y * label) / 2
    return Nodes(
        sign.reshape(rows),
        Curve(*(each.reshape(rows) for each in curve)),
        weight.reshape(rows),
        along.reshape(*weight.reshape(rows).shape, -1),
        np.arange(V.size),
    )


def _gaussian(curve: Curve, mean: Array, sd: Array) -> Array:
    """Weights of the nodes for t0 ~ N(mean, sd^2)."""
    density = np.exp(-(((curve.t0 - mean) / sd) ** 2) / 2)
    return np.asarray(density * curve.length / (np.sqrt(2 * np.pi) * sd))


def given_tau(given: Component, field: Field) -> tuple[Array, Array]:
    """Mean (P, N, T) and standard deviation (P, N, 1) of omega given kappa and tau."""
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, given.tau)
    return centre, np.sqrt(_remaining(field))[..., None]


def _remaining(field: Field) -> Array:
    """S^2 - |P|^2, at least what rounding leaves of it."""
    rest = field.power - (field.pull**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 1e-14 * field.power + 1e-300))


def _labels(labels: Labels, field: Field, z: Array) -> tuple[Array | float, Array, Array, Array]:
    """E 1, E y (P, N, L), E tau and E tau y (P, N, L, K') given omega = C + S z."""
    if labels.steps is not None:
        return _labels_by_steps(labels, field, z)
    if labels.series is not None:
        correlation = field.pull[..., 0] / np.sqrt(field.power)
        terms = labels.series.coefficients.shape[1]
        left = labels.series.rest * np.abs(correlation) ** terms
        if left.max() <= CUT_OFF:
            return _labels_by_series(labels.series.coefficients, correlation, z)
    return _labels_by_nodes(labels, field, z)


def _labels_by_steps(
    labels: Labels, field: Field, z: Array
) -> tuple[Array | float, Array, Array, Array]:
    """tau is N(t, v) given omega, and y changes at the steps.  THEORY 6"""
    assert labels.steps is not None
    v = (_remaining(field) / field.power)[..., None]
    tau = (field.pull[..., 0] / np.sqrt(field.power))[..., None] * z
    mean, shift = np.full_like(z, labels.steps.values[0]), np.zeros_like(z)
    jumps = np.diff(labels.steps.values)
    for edge, jump in zip(labels.steps.edges.T, jumps, strict=True):
        u = (tau - edge[:, None]) / np.sqrt(v)
        mean += jump * ndtr(u)
        shift += jump * np.exp(-(u**2) / 2)
    product = tau * mean + np.sqrt(v / (2 * np.pi)) * shift
    return 1.0, mean, tau[..., None], product[..., None]


def _labels_by_series(
    coefficients: Array, correlation: Array, z: Array
) -> tuple[float, Array, Array, Array]:
    """tau and z are normal with ``correlation`` r (P, N): He_k(tau) becomes r^k He_k(z)."""
    r = correlation[..., None]
    powers = r ** np.arange(coefficients.shape[1])
    size = np.abs(coefficients * powers).max(axis=(0, 1))
    terms = int(np.flatnonzero(size > CUT_OFF).max(initial=1)) + 1
    mean, slope = np.zeros_like(z), np.zeros_like(z)  # of y, and of dy / dtau
    before, hermite = np.zeros_like(z), np.ones_like(z)
    for k in range(terms):
        mean += (coefficients[:, k] * powers[..., k])[..., None] * hermite
        if k:
            slope += (np.sqrt(k) * coefficients[:, k] * powers[..., k - 1])[..., None] * before
        before, hermite = hermite, (z * hermite - np.sqrt(k) * before) / np.sqrt(k + 1)
    product = r * z * mean + (1 - r**2) * slope
    return 1.0, mean, (r * z)[..., None], product[..., None]


def _labels_by_nodes(
    labels: Labels, field: Field, z: Array
) -> tuple[Array | float, Array, Array, Array]:
    """For any E[y | z] and K': Bayes' rule on the nodes of tau."""
    (given,) = labels.components
    rest = _remaining(field)[..., None, None]
    S2 = field.power[..., None, None]
    shift = np.einsum("pnk,ntk->pnt", field.pull, given.tau)[:, :, None]
    exponent = z[..., None] ** 2 - (np.sqrt(S2) * z[..., None] - shift) ** 2 / rest
    posterior = given.weights[:, None] * np.sqrt(S2 / rest) * np.exp(exponent / 2)
    mean = np.einsum("pnlt,nt->pnl", posterior, given.mean)
    tau = np.einsum("pnlt,ntk->pnlk", posterior, given.tau)
    product = np.einsum("pnlt,ntk->pnlk", posterior, given.mean[..., None] * given.tau)
    return posterior.sum(axis=-1), mean, tau, product

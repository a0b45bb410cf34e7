"""Averages over the local field along the proximal map of a loss: for losses that are not
piecewise quadratic.

Labels +-1 come with the label's probability given omega, in closed form for steps of E[y | z]
and as a series for what is smooth; real labels with the density of t0 given every tau.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from solvers.results import Array

from .labels import Labels
from .local_field import THINNEST_FIELD, Field, remaining
from .losses import Loss
from .proximal import Curve, Even, Tail, nodes_on, proximal_nodes, stretches
from .terms import Terms, numbers, sums

if TYPE_CHECKING:
    from solvers.student import Blurred

FAR = 7.0  # standard deviations, beyond which a Gaussian holds 3e-12
FURTHER = 1e6  # times as far out is how a loss grows
CUT_OFF = 1e-12  # of a series for the mean label
FAREST = 12.0  # range of t0 over FAR standard deviations, for nodes that serve all tau,
FAREST_TAILS = (60.0, 240.0)  # or where it has tails, which take more nodes for each
NEGLIGIBLE = 1e-12  # weight of a tau, over the largest
PANELS = 8  # along a proximal map, usually,
TAIL_PANELS = 60  # and where Student's t is added
TOGETHER, EACH = 2**19, 2**13  # nodes handled at once there, or of a panel, of all tau


class Nodes(NamedTuple):
    """Points of the proximal map (R, L) with their weights, alone and times tau (R, L, K'), for
    R ``rows`` (R,): indices of (P, N) that may occur several times.  Points ``past`` all others
    stand for the rest of a power law."""

    sign: float | Array
    curve: Curve
    weight: Array
    along: Array
    rows: NDArray[np.int64]
    past: "Past | None" = None

    def rest(self, loss: Loss) -> Array | float:
        """What the weights miss of a loss that grows as t^k far out, infinite if its average is."""
        if self.past is None:
            return 1.0
        nu, away, ratio = self.past
        t = self.curve.t
        far = np.sign(away) * FURTHER * (np.abs(away) + np.abs(t) + 1)
        with np.errstate(all="ignore"):
            near, middle, last = (np.asarray(loss.value(n * far), float) for n in (1, 2, 4))
            k = np.log2((last - middle) / (middle - near))
            k = np.where(np.isfinite(last), np.nan_to_num(k, neginf=0.0), np.inf)
            return np.where(k < nu, ratio ** (k - 2) * (nu - 2) / (nu - k), np.inf)

    def total(self, values: Array, shape: tuple[int, int]) -> Array:
        """Sums over the points, (P, N), of ``values`` like the weights."""
        return sums(self.rows, values.sum(axis=-1), shape)


class Past(NamedTuple):
    """Points ``away`` (R, 1) from the middle of a density that is C u^(-nu - 1) beyond ``ratio``
    times that (R, 1), with weights that are right for t^2."""

    nu: float
    away: Array
    ratio: Array


def sampled(labels: Labels, loss: Loss, field: Field, V: Array) -> Iterator[Nodes]:
    """Nodes along the proximal map of response V (P, N), for t0 of every kind of labels."""
    if labels.binary:
        yield _for_labels(labels, loss, field, V)
        return
    for group in numbers(labels, field, V):
        far = FAR * group.scale
        seen = group.weight > NEGLIGIBLE * group.weight.max(initial=0.0)
        low = group.mean.min(axis=-1, keepdims=True, where=seen, initial=np.inf) - far
        high = group.mean.max(axis=-1, keepdims=True, where=seen, initial=-np.inf) + far
        if labels.student is not None:
            law = cast("Blurred", group.law)
            wide = np.digitize(((high - low) / far)[:, 0], FAREST_TAILS, right=True)
            for k, farthest in enumerate(FAREST_TAILS):
                size = max(1, int(TOGETHER / (labels.order * (farthest + TAIL_PANELS))))
                for at in _parts(np.flatnonzero(wide == k), size):
                    yield from _with_tails(labels.order, loss, group, law, at, low[at], high[at])
            size = max(1, EACH // (labels.order * group.mean.shape[1]))
            for at in _parts(np.flatnonzero(wide == len(FAREST_TAILS)), size):
                yield from _each_with_tails(labels.order, loss, group, law, at)
            continue
        near = ((high - low) <= FAREST * far)[:, 0]
        if near.any():
            yield _over_all_tau(labels.order, loss, group.at(near), low[near], high[near])
        if not near.all():
            yield from _over_each_tau(labels.order, loss, group.at(~near))


def _parts(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for i in range(0, rows.size, size):
        yield rows[i : i + size]


def _over_all_tau(order: int, loss: Loss, group: Terms, low: Array, high: Array) -> Nodes:
    """Nodes from ``low`` to ``high`` for all tau together: few, as a user's loss may cost many
    times what a density does."""
    sd = group.scale
    curve = proximal_nodes(loss, group.response, low, high, Even(sd), order)
    density = (curve.t0 / sd)[..., None] - (group.mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    length = curve.length / (np.sqrt(2 * np.pi) * sd)
    weight = (density @ group.weight[..., None])[..., 0] * length
    return Nodes(-1.0, curve, weight, density @ group.along * length[..., None], group.owner)


def _with_tails(
    order: int, loss: Loss, group: Terms, law: "Blurred", at: Array, low: Array, high: Array
) -> Iterator[Nodes]:
    """Nodes for all tau together, in the rows ``at``, where the law of t0 has tails: it is in them
    beyond ``low`` and ``high``."""
    law, mean, owner = law.at(at), group.mean[at], group.owner[at]
    weights = np.concatenate([group.weight[at, None], group.along[at].swapaxes(1, 2)], axis=1)
    total = weights.sum(axis=2)
    middle = np.einsum("rt,rt->r", mean, weights[:, 0])[:, None] / total[:, :1]
    for curve, end in _tailed(order, loss, group.response[at], low, high, group.scale[at], law):
        if end is None:
            each, past = law.blur(curve.t0, curve.length, mean, weights), None
        else:
            past, mass = _past(law, curve, end, middle, group.scale[at])
            each = (total * mass)[..., None]
        yield Nodes(-1.0, curve, each[:, 0], each[:, 1:].swapaxes(1, 2), owner, past)


def _each_with_tails(
    order: int, loss: Loss, group: Terms, law: "Blurred", at: Array
) -> Iterator[Nodes]:
    """The same for each tau, where t0 is nearly a function of it."""
    law, mean, scale = law.at(at), group.mean[at, :, None], group.scale[at, :, None]
    weight, along = group.weight[at].reshape(-1, 1), group.along[at].reshape(mean.size, 1, -1)
    owner = np.repeat(group.owner[at], mean.shape[1])
    V = np.broadcast_to(group.response[at, :, None], mean.shape)
    low, high = mean - FAR * scale, mean + FAR * scale
    for curve, end in _tailed(order, loss, V, low, high, scale, law):
        if end is None:
            z = ((curve.t0 - mean) / scale).reshape(at.size, -1)
            chance, past = law.density(z).reshape(curve.t0.shape) * curve.length / scale, None
        else:
            past, chance = _past(law, curve, end, mean, scale)
            past = Past(law.nu, past.away.reshape(-1, 1), past.ratio.reshape(-1, 1))
        flat = Curve(*(part.reshape(owner.size, -1) for part in curve))
        chance = chance.reshape(owner.size, -1)
        yield Nodes(-1.0, flat, chance * weight, chance[..., None] * along, owner, past)


def _tailed(
    order: int, loss: Loss, V: Array, low: Array, high: Array, scale: Array, law: "Blurred"
) -> Iterator[tuple[Curve, Array | None]]:
    """Nodes from ``low`` to ``high``, and in either tail as far as tables go; the last node of each
    tail once more, for all that is past the end, which comes with it."""
    even = Even(scale)
    yield proximal_nodes(loss, V, low, high, even, order), None
    for side, start in ((-1.0, low), (1.0, high)):
        end = start + side * law.last * scale
        first, other = (end, start) if side < 0 else (start, end)
        # parts end alike where they meet
        spacing = Tail(side, start - side * FAR * scale, FAR * scale, even.slack)
        curve = proximal_nodes(loss, V, first, other, spacing, order)
        yield curve, None
        last = np.argmax(side * curve.t0, axis=-1)[..., None]
        yield Curve(*(np.take_along_axis(part, last, axis=-1) for part in curve)), end


def _past(
    law: "Blurred", curve: Curve, end: Array, middle: Array, scale: Array
) -> tuple[Past, Array]:
    """Weights of nodes for all that is past an ``end``: close to nu = 2 much of E t0^2."""
    u, until = (np.abs(t0 - middle) / scale for t0 in (curve.t0, end))
    beyond = law.beyond(until.reshape(law.scale.size, -1)).reshape(until.shape)
    return Past(law.nu, curve.t0 - middle, until / u), beyond / u**2


def _over_each_tau(order: int, loss: Loss, group: Terms) -> Iterator[Nodes]:
    """Nodes for every tau: where t0 is nearly a function of tau.  Most tau are far from most
    stretches of the map."""
    seen = group.weight > 0
    row, _ = np.nonzero(seen)
    mean, weight, along = group.mean[seen][:, None], group.weight[seen], group.along[seen]
    sd, V, owner = group.scale[row], group.response[row], group.owner[row]
    for stretch in stretches(loss, V, mean - FAR * sd, mean + FAR * sd, Even(sd)):
        (here,) = np.nonzero((stretch.last > stretch.first)[:, 0])
        if here.size:
            there = stretch._replace(first=stretch.first[here], last=stretch.last[here])
            curve = nodes_on(there, loss, V[here], Even(sd[here]), order)
            chance = _gaussian(curve, mean[here], sd[here])
            each = chance * weight[here, None], chance[..., None] * along[here, None]
            yield Nodes(-1.0, curve, *each, owner[here])


def _for_labels(labels: Labels, loss: Loss, field: Field, V: Array) -> Nodes:
    """Nodes for labels +-1, both at once."""
    C, S = field.centre[..., None, None], np.sqrt(field.power)[..., None, None]
    y = np.array([[1.0], [-1.0]])
    # t0 = y omega, or y - omega
    sign, mean = (y, y * C) if loss.kind == "margin" else (-np.ones((2, 1)), y - C)
    S = np.maximum(S, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    curve = proximal_nodes(
        loss, V[..., None, None], mean - FAR * S, mean + FAR * S, Even(S), labels.order
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
    """tau is N(t, v) given omega, and y changes at the steps.  docs/theory.md 6"""
    assert labels.steps is not None
    v = (remaining(field) / field.power)[..., None]
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
    rest = remaining(field)[..., None, None]
    S2 = field.power[..., None, None]
    shift = np.einsum("pnk,ntk->pnt", field.pull, given.tau)[:, :, None]
    exponent = z[..., None] ** 2 - (np.sqrt(S2) * z[..., None] - shift) ** 2 / rest
    posterior = given.weights[:, None] * np.sqrt(S2 / rest) * np.exp(exponent / 2)
    mean = np.einsum("pnlt,nt->pnl", posterior, given.mean)
    tau = np.einsum("pnlt,ntk->pnlk", posterior, given.tau)
    product = np.einsum("pnlt,ntk->pnlk", posterior, given.mean[..., None] * given.tau)
    return posterior.sum(axis=-1), mean, tau, product

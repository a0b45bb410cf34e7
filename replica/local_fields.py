"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

Given kappa and tau the prediction on a new input, omega, is N(C + P.tau, S^2 - |P|^2) with

    C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,  P = sum_b mu_1^b psi_b,
    S^2 = m_1' Q_1 m_1 + m_2.q_2,

and the loss sees t0 = y - omega, or y omega.  For a piecewise quadratic loss t0 is Gaussian
given tau and a component of the noise, and its averages are exact.  Other losses are summed
over nodes of t0: for labels +-1 the field is integrated outside, the label's probability given
omega inside, so that the proximal map is evaluated at as few points as possible.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from solvers.piecewise import average_proximal, average_score
from solvers.quadrature import Rule, gauss_legendre, trapezoid_tensor
from solvers.results import Array

from .label_tables import LabelTable
from .losses import Loss


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
    samples, the loss on new ones, and P(y f < 0) on new ones, NaN unless labels are +-1."""

    train: Array
    train_square: Array
    test: Array
    classification: Array


class Part(NamedTuple):
    """Labels of one kind, given tau: sign o = ds / dg, mean (P, N, T) and variance (P, N, 1)
    of t0, weight (N, T)."""

    sign: float
    mean: Array
    variance: Array
    weight: Array


class Nodes(NamedTuple):
    """Nodes of t0 (P, N, L) with their weights, alone and times tau (P, N, L, K')."""

    sign: float
    t0: Array
    weight: Array
    along: Array


def scores(labels: LabelTable, loss: Loss, field: Field) -> Scores:
    """The averages of (6.2)-(6.3) given kappa."""
    shape = field.centre.shape
    mean, slope, square = np.zeros((3, *shape))
    along = np.zeros((*shape, labels.tau.shape[2]))
    V = field.response[..., None]
    if loss.pieces is not None:
        for part in parts(labels, loss, field):
            s = average_score(loss.pieces, part.mean, np.sqrt(part.variance), V)
            weighted = part.sign * part.weight * s.mean
            mean += weighted.sum(axis=-1)
            along += np.einsum("pnt,ntk->pnk", weighted, labels.tau)
            slope -= (part.weight * s.slope).sum(axis=-1)
            square += (part.weight * s.square).sum(axis=-1)
    else:
        for nodes in sampled(labels, loss, field):
            g, g_slope, _ = loss.score(nodes.t0, V)
            mean += nodes.sign * (nodes.weight * g).sum(axis=-1)
            along += nodes.sign * np.einsum("pnl,pnlk->pnk", g, nodes.along)
            slope -= (nodes.weight * g_slope).sum(axis=-1)
            square += (nodes.weight * g**2).sum(axis=-1)
    return Scores(mean, slope, square, along)


def losses(labels: LabelTable, loss: Loss, field: Field) -> Losses:
    """Errors in the loss and in the label.

    After training, a training sample's residual is that at the proximal point, t; a new
    sample's is t0.
    """
    train, first, second, test = np.zeros((4, *field.centre.shape))
    V = field.response[..., None]
    if loss.pieces is not None:
        for part in parts(labels, loss, field):
            sd = np.sqrt(part.variance)
            after = average_proximal(loss.pieces, part.mean, sd, V)
            before = average_proximal(loss.pieces, part.mean, sd, np.zeros_like(V))
            for total, value in zip((train, first, second), (after.value, *after[:2]), strict=True):
                total += (part.weight * value).sum(axis=-1)
            test += (part.weight * before.value).sum(axis=-1)
    else:
        for nodes in sampled(labels, loss, field):
            t = loss.proximal(nodes.t0, V)
            for total, value in zip(
                (train, first, second, test),
                (loss.value(t), t, t**2, loss.value(nodes.t0)),
                strict=True,
            ):
                total += (nodes.weight * value).sum(axis=-1)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    w = labels.table.weights
    return Losses(train @ w, squares @ w, test @ w, classification(labels, field))


def classification(labels: LabelTable, field: Field) -> Array:
    """P(y f < 0) on new samples, (P,); NaN unless labels are +-1."""
    if not labels.binary:
        return np.full(len(field.centre), np.nan)
    centre, sd = _given_tau(labels, field)
    positive = (1 + labels.mean) / 2
    below = ndtr(-centre / sd)
    wrong = positive * below + (1 - positive) * (1 - below)
    return np.asarray((labels.weights * wrong).sum(axis=-1) @ labels.table.weights)


def parts(labels: LabelTable, loss: Loss, field: Field) -> Iterator[Part]:
    """The Gaussians that t0 is a mixture of, given kappa and tau."""
    centre, sd = _given_tau(labels, field)
    if labels.binary:
        for y in (1.0, -1.0):
            weight = labels.weights * (1 + y * labels.mean) / 2
            if loss.kind == "margin":
                yield Part(y, y * centre, sd**2, weight)
            else:
                yield Part(-1.0, y - centre, sd**2, weight)
        return
    for variance, share in zip(labels.variances, labels.shares, strict=True):
        yield Part(-1.0, labels.mean - centre, sd**2 + variance, share * labels.weights)


def sampled(labels: LabelTable, loss: Loss, field: Field) -> Iterator[Nodes]:
    """Nodes over t0, split at the kinks of the proximal map."""
    V = field.response
    kinks = [end for _, *ends in loss.flats(V) for end in ends]
    breaks = np.stack(kinks, axis=-1) if kinks else None  # in t0, (P, N, b)
    if not labels.binary:
        for part in parts(labels, loss, field):
            sd = np.sqrt(part.variance)
            split = None
            if breaks is not None:
                split = (breaks[:, :, None] - part.mean[..., None]) / sd[..., None]
            z, w = _rule(labels.order, split)
            t0 = part.mean[..., None] + sd[..., None] * z
            weight = part.weight[..., None] * w
            along = weight[..., None] * labels.tau[:, :, None]
            flat = (*t0.shape[:2], -1)
            weight = np.broadcast_to(weight, t0.shape).reshape(flat)
            along = np.broadcast_to(along, (*t0.shape, along.shape[-1]))
            yield Nodes(part.sign, t0.reshape(flat), weight, along.reshape(*weight.shape, -1))
        return
    # t0 = y omega, or y - omega: the same omega serves both labels
    S = np.sqrt(field.power)[..., None]
    C = field.centre[..., None]
    split = None
    if breaks is not None:
        both = [breaks, -breaks] if loss.kind == "margin" else [1 - breaks, -1 - breaks]
        split = (np.concatenate(both, axis=-1) - C) / S
    z, w = _rule(labels.order, split)
    omega = C + S * z
    posterior = _posterior(labels, field, np.broadcast_to(z, omega.shape)) * w[..., None]
    for y in (1.0, -1.0):
        seen = posterior * ((1 + y * labels.mean) / 2)[:, None]  # (P, N, L, T)
        along = np.einsum("pnlt,ntk->pnlk", seen, labels.tau)
        t0, sign = (y * omega, y) if loss.kind == "margin" else (y - omega, -1.0)
        yield Nodes(sign, t0, seen.sum(axis=-1), along)


def _given_tau(labels: LabelTable, field: Field) -> tuple[Array, Array]:
    """Mean (P, N, T) and standard deviation (P, N, 1) of omega given kappa and tau."""
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, labels.tau)
    return centre, np.sqrt(_remaining(field))[..., None]


def _remaining(field: Field) -> Array:
    """S^2 - |P|^2, at least what rounding leaves of it."""
    rest = field.power - (field.pull**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 1e-14 * field.power + 1e-300))


def _posterior(labels: LabelTable, field: Field, z: Array) -> Array:
    """Weights of tau given omega = C + S z, (P, N, L, T): Bayes' rule on its nodes."""
    rest = _remaining(field)[..., None, None]
    S2 = field.power[..., None, None]
    shift = np.einsum("pnk,ntk->pnt", field.pull, labels.tau)[:, :, None]
    exponent = z[..., None] ** 2 - (np.sqrt(S2) * z[..., None] - shift) ** 2 / rest
    return labels.weights[:, None] * np.sqrt(S2 / rest) * np.exp(exponent / 2)


def _rule(order: int, breaks: Array | None) -> Rule:
    """A rule over N(0, 1) of about ``order`` nodes, split at ``breaks`` (..., b)."""
    if breaks is None:
        rule = trapezoid_tensor(order, 1)
        return Rule(rule.nodes[:, 0], rule.weights)
    return gauss_legendre(max(4, order // 4), breaks, 8.2)

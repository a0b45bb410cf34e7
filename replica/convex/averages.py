"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

The loss sees t0 = y - omega, or y omega.  For a piecewise quadratic loss its averages given kappa,
tau and a variance of the noise are exact (``terms``).  Other losses are summed along their
proximal map (``sampled_averages``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvers.piecewise import average_proximal, average_score
from solvers.results import Array

from .labels import Labels
from .local_field import Field, Scores
from .losses import Loss
from .sampled_averages import PANELS, TAIL_PANELS, sampled
from .terms import terms

PIECEWISE_NODES = 2**15  # handled at once, of which a dozen arrays stay in the cache
MAP_NODES = 2**19  # or of a proximal map, where there is more to do between two passes over them
# Freed at once: from then on glibc keeps that much at hand, where it would give every array of a
# few 100 kB back, and take it again page by page, which takes as long as what is done with them.
np.empty(2**21)


class Losses(NamedTuple):
    """Averages over everything, (P,) each: the loss and squared residual y - f of training
    samples, the loss on new ones, and P(y f < 0) on new ones, NaN unless labels are +-1 (its
    layers are its own: see ``classification``)."""

    train: Array
    train_square: Array
    test: Array
    classification: Array


def scores(labels: Labels, loss: Loss, field: Field) -> Scores:
    """The averages of (6.2)-(6.3) given kappa."""
    return Scores(*_in_blocks(_scores, labels, loss, field))


def losses(labels: Labels, weights: Array, loss: Loss, field: Field) -> Losses:
    """Errors in the loss and in the label, with the quadrature ``weights`` (N,) of kappa.

    After training, a training sample's residual is that at the proximal point, t; a new
    sample's is t0.
    """
    train, first, second, test = _in_blocks(_residuals, labels, loss, field)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    unknown = np.full(len(train), np.nan)
    return Losses(train @ weights, squares @ weights, test @ weights, unknown)


def at_once(labels: Labels, loss: Loss) -> int:
    """How many values of kappa, of all points together, should be handled at once."""
    most = MAP_NODES
    if labels.student is not None:
        from solvers.student import size

        most = MAP_NODES // size(labels.student[0])
    if loss.pieces is not None:
        return max(1, min(most, PIECEWISE_NODES // labels.width))
    if labels.student is not None:
        return max(1, min(most, MAP_NODES // (TAIL_PANELS * labels.order)))
    along = PANELS * labels.order
    summed = labels.binary and (labels.steps is not None or labels.series is not None)
    return max(1, MAP_NODES // (along if summed else along * labels.width))


def _in_blocks(
    average: Callable[[Labels, Loss, Field], tuple[Array, ...]],
    labels: Labels,
    loss: Loss,
    field: Field,
) -> list[Array]:
    """What ``average`` gives at each kappa, (P, N) or (P, N, K'), summed over the components of the
    labels, for a few kappa at once: fewer of a component that has more nodes."""
    points, count = field.centre.shape
    total: list[Array] = []
    for component in labels.components:
        alone = labels._replace(components=(component,))
        size = max(1, at_once(alone, loss) // points)
        rows = [slice(i, i + size) for i in range(0, count, size)]
        blocks = [average(alone.at(b), loss, Field(*(x[:, b] for x in field))) for b in rows]
        whole = [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]
        total = [x + y for x, y in zip(total, whole, strict=True)] if total else whole
    return total


def _scores(labels: Labels, loss: Loss, field: Field) -> tuple[Array, ...]:
    """The parts of ``Scores``, of one component of the labels."""
    shape = field.centre.shape
    mean, slope, square = np.zeros((3, *shape))
    along = np.zeros((*shape, field.pull.shape[2]))
    if loss.pieces is not None:
        for part in terms(labels, loss, field):
            s = average_score(loss.pieces, part.mean, part.scale, part.response, part.law)
            signed = part.sign * s.mean
            mean += part.total(signed, shape)
            along += part.total_along(signed, shape)
            slope -= part.total(s.slope, shape)
            square += part.total(s.square, shape)
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
    if loss.pieces is not None:
        for part in terms(labels, loss, field):
            unmoved = np.zeros_like(part.response)
            after, before = (
                average_proximal(loss.pieces, part.mean, part.scale, V, part.law)
                for V in (part.response, unmoved)
            )
            values = after.value, *after[:2], before.value
            for total, value in zip((train, first, second, test), values, strict=True):
                total += part.total(value, shape)
    else:
        for nodes in sampled(labels, loss, field, field.response):
            t = nodes.curve.t
            for total, value in zip((train, first, second), (loss.value(t), t, t**2), strict=True):
                total += nodes.total(nodes.weight * value, shape)
        for nodes in sampled(labels, loss, field, np.zeros_like(field.response)):
            value = loss.value(nodes.curve.t)
            test += nodes.total(nodes.weight * value * nodes.rest(loss), shape)
    return train, first, second, test

"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

The loss sees t0 = y - omega, or y omega.  If it is piecewise quadratic and labels are steps of tau,
its averages given kappa are in closed form (``step_labels``); else they are sums (``terms``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvers.results import Array

from .labels import Labels
from .local_field import UNMOVED, Field, Scores
from .losses import Loss
from .step_labels import residuals_of_steps, scores_of_steps
from .terms import terms

PIECEWISE_NODES = 2**15  # handled at once, of which a dozen arrays stay in the cache
MAP_NODES = 2**19  # or of a proximal map, where there is more to do between two passes over them
PANELS = 8  # along a proximal map, usually
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
    first, second, train = (x @ weights for x in _in_blocks(_residuals, labels, loss, field))
    unmoved = field._replace(response=np.full_like(field.response, UNMOVED))
    test = _in_blocks(_residuals, labels, loss, unmoved)[2] @ weights
    if labels.noise is not None and (missing := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    return Losses(train, squares, test, np.full(len(train), np.nan))


def at_once(labels: Labels, loss: Loss) -> int:
    """How many pairs of a point and a kappa should be handled at once."""
    # most components of Student's t take a few nodes in the place of many
    width = labels.width * (1 + (labels.shares.size - 1) // 4)
    if loss.pieces is not None:
        if labels.steps is not None:
            width = labels.steps.values.size * labels.shares.size
        return max(1, PIECEWISE_NODES // width)
    summed = labels.binary and labels.steps is not None
    return max(1, MAP_NODES // (PANELS * labels.order * (1 if summed else width)))


def _in_blocks(
    average: Callable[[Labels, Loss, Field], tuple[Array, ...]],
    labels: Labels,
    loss: Loss,
    field: Field,
) -> list[Array]:
    """What ``average`` gives at each kappa, (P, N) or (P, N, K'), for a few kappa at once."""
    points, count = field.centre.shape
    size = max(1, at_once(labels, loss) // points)
    rows = [slice(i, i + size) for i in range(0, count, size)]
    blocks = [average(labels.at(b), loss, field.at(b)) for b in rows]
    return [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]


def _scores(labels: Labels, loss: Loss, field: Field) -> tuple[Array, ...]:
    """The parts of ``Scores``."""
    if loss.pieces is not None and labels.steps is not None:
        return scores_of_steps(labels, loss, field)
    shape = field.centre.shape
    mean, slope, square, along = *np.zeros((3, *shape)), np.zeros_like(field.pull)
    for part in terms(labels, loss, field):
        g = part.score()
        s = part.sign * g.mean
        mean += part.total(s, shape)
        slope -= part.total(g.slope, shape)
        square += part.total(g.square, shape)
        along += part.total_along(s, shape)
    return mean, slope, square, along


def _residuals(labels: Labels, loss: Loss, field: Field) -> tuple[Array, ...]:
    """E t, E t^2 and E rho(t) at the proximal point, (P, N) each."""
    if loss.pieces is not None and labels.steps is not None:
        return residuals_of_steps(labels, loss, field)
    shape = field.centre.shape
    total = np.zeros((3, *shape))
    for part in terms(labels, loss, field):
        for sums, values in zip(total, part.proximal(), strict=True):
            sums += part.total(values, shape)
    return tuple(total)

"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

Where the mean label is a step function of tau they are in closed form, or along the proximal map
(``step_labels``); else they are sums over tau of those ``given_tau``.  They are taken in blocks
that fit into the cache, and ``check`` is called before each: what it raises ends them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvers.results import Array

from ..saddle_point import Field, Scores
from .given_tau import given_tau
from .labels import Labels
from .losses import Loss
from .step_labels import residuals_of_steps, scores_of_steps

PIECEWISE_NODES = 2**15  # handled at once, of which a dozen arrays stay in the cache
MAP_NODES = 2**19  # or of a proximal map, where there is more to do between two passes over them
PANELS = 8  # along a proximal map, usually
# Freed at once: from then on glibc keeps that much at hand, where it would give every array of a
# few 100 kB back, and take it again page by page, which takes as long as what is done with them.
np.empty(2**21)


Check = Callable[[], None]


def unlimited() -> None:
    """The check of averages that may take any time."""


class Losses(NamedTuple):
    """Averages over everything, (P,) each: the loss and squared residual y - f of training
    samples, and the loss on new ones."""

    train: Array
    train_square: Array
    test: Array


def scores(labels: Labels, loss: Loss, field: Field, check: Check = unlimited) -> Scores:
    """The averages of (6.2)-(6.3) given kappa."""
    mean, slope, square, *along = _in_blocks(_scores, labels, loss, field, check)
    return Scores(mean, slope, square, np.stack(along, axis=-1))


def scores_at_nodes(labels: Labels, loss: Loss, field: Field, check: Check) -> Array:
    """E s, -E s' and E s^2 given kappa and tau at every node, (3, P, N, T)."""
    return _in_blocks(_at_nodes, labels, loss, field, check)


def losses(
    labels: Labels, weights: Array, loss: Loss, field: Field, check: Check = unlimited
) -> Losses:
    """Errors in the loss and in the label, with the quadrature ``weights`` (N,) of kappa.

    After training, a training sample's residual is that at the proximal point, t; a new
    sample's is t0.
    """
    first, second, train = _in_blocks(_residuals, labels, loss, field, check) @ weights
    test = new_losses(labels, loss, field, check) @ weights
    if labels.noise is not None and (missing := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    return Losses(train, squares, test)


def new_losses(labels: Labels, loss: Loss, field: Field, check: Check) -> Array:
    """The loss on a new sample given kappa, (P, N)."""
    return np.asarray(_in_blocks(_residuals, labels, loss, field.unmoved, check)[2])


def new_losses_at_nodes(labels: Labels, loss: Loss, field: Field, check: Check) -> Array:
    """The same given kappa and tau at every node, (P, N, T)."""
    return np.asarray(_in_blocks(_residuals_at_nodes, labels, loss, field.unmoved, check)[2])


def at_once(labels: Labels, loss: Loss) -> int:
    """How many pairs of a point and a kappa should be handled at once."""
    components = labels.shares.size
    if labels.steps is not None:
        width = labels.steps.values.size * components
    else:  # most components of Student's t take a few nodes in the place of many
        width = labels.weights.shape[1] * (1 + (components - 1) // 4)
    if loss.pieces is not None:
        return max(1, PIECEWISE_NODES // width)
    return max(1, MAP_NODES // (PANELS * labels.order * width))


def _in_blocks(
    average: Callable[[Labels, Loss, Field], Array],
    labels: Labels,
    loss: Loss,
    field: Field,
    check: Check,
) -> Array:
    """What ``average`` gives at each kappa, (k, P, N, ...), for a few kappa at once."""
    points, count = field.centre.shape
    size = max(1, at_once(labels, loss) // points)
    parts = []
    for rows in (slice(i, i + size) for i in range(0, count, size)):
        check()
        parts.append(average(labels.at(rows), loss, field.at(rows)))
    return np.concatenate(parts, axis=2)


def _scores(labels: Labels, loss: Loss, field: Field) -> Array:
    """E s, -E s', E s^2 and E tau s given kappa, (3 + K', P, N)."""
    if labels.steps is not None:
        return scores_of_steps(labels, loss, field)
    values = _at_nodes(labels, loss, field)
    along = np.einsum("pnt,ntk->kpn", values[0], labels.weights[..., None] * labels.tau)
    return np.concatenate([np.einsum("xpnt,nt->xpn", values, labels.weights), along])


def _at_nodes(labels: Labels, loss: Loss, field: Field) -> Array:
    """E s, -E s' and E s^2 given kappa and tau, (3, P, N, T)."""
    signed = (
        chance * np.array([sign, -1.0, 1.0])[:, None, None, None] * values
        for sign, chance, values in given_tau(labels, loss, field)
    )
    return np.asarray(sum(signed))


def _residuals(labels: Labels, loss: Loss, field: Field) -> Array:
    """E t, E t^2 and E rho(t) at the proximal point, (3, P, N)."""
    if labels.steps is not None:
        return residuals_of_steps(labels, loss, field)
    values = _residuals_at_nodes(labels, loss, field)
    return np.asarray((values * labels.weights).sum(axis=-1))


def _residuals_at_nodes(labels: Labels, loss: Loss, field: Field) -> Array:
    """The same given kappa and tau at every node, (3, P, N, T)."""
    each = given_tau(labels, loss, field, after=True)
    return np.asarray(sum(chance * values for _, chance, values in each))

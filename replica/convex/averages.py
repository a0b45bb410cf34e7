"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

Where the mean label is a step function of tau they are in closed form, or along the proximal map
(``step_labels``); else they are sums over tau of those ``given_tau``.  They are taken in blocks
that fit into the cache, between which the deadline is looked at.
"""

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from ..saddle_point import Field, Scores
from .given_tau import given_tau
from .label_tables import ConditionalLabels
from .losses import Loss
from .proximal import Averaged
from .step_labels import averages_of_steps

# Freed at once: from then on glibc keeps that much at hand, where it would give every array of a
# few 100 kB back, and take it again page by page, which takes as long as what is done with them.
np.empty(2**21)


def average(
    what: Averaged,
    labels: ConditionalLabels,
    loss: Loss,
    field: Field,
    *,
    each_tau: bool = False,
) -> Array:
    """E s, -E s', E s^2 and E tau s, or E t, E t^2 and E rho(t), given kappa: (k, P, N).

    The residual of a training sample is that at the proximal point, t, and of a new one t0, which
    is t of a field ``unmoved``.  Of ``each_tau`` at a node the first three, (3, P, N, T).
    """
    points, count = field.centre.shape
    entering = labels.tau.shape[2]  # what does not enter labels is Gaussian: Eq. (19.4)
    others, field = field.tau_slope[..., entering:], field.project_tau(entering)
    size = max(1, _at_once(labels, loss) // points)
    of = given_tau if each_tau else _given_kappa
    parts = []
    for rows in (slice(i, i + size) for i in range(0, count, size)):
        check_time()
        parts.append(of(what, labels.at(rows), loss, field.at(rows)))
    values = np.concatenate(parts, axis=2)
    if what == "residual" or each_tau or not others.size:
        return values
    return np.concatenate([values, -np.moveaxis(others, -1, 0) * values[1]])


def scores(labels: ConditionalLabels, loss: Loss, field: Field) -> Scores:
    """The averages of (6.2)-(6.3) given kappa."""
    mean, slope, square, *along = average("score", labels, loss, field)
    return Scores(mean, slope, square, np.stack(along, axis=-1))


def losses(labels: ConditionalLabels, weights: Array, loss: Loss, field: Field) -> dict[str, Array]:
    """The loss and the squared residual y - f of training samples, and the loss on new ones, (P,),
    by the names that ``Solution`` has; with the quadrature ``weights`` (N,) of kappa."""
    first, second, train = average("residual", labels, loss, field) @ weights
    test = average("residual", labels, loss, field.for_new_samples)[2] @ weights
    if labels.noise is not None and (missing := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing
    # differences of a piece's moments, in the tails, are off by less than rounding of the test loss
    train = np.where((train < 0) & (-train < 1e-15 * np.abs(test)), 0.0, train)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squares = second if loss.kind == "residual" else 1 - 2 * first + second
    return {"train_loss": train, "train_error": squares, "loss_error": test}


def _at_once(labels: ConditionalLabels, loss: Loss) -> int:
    """How many pairs of a point and a kappa should be handled at once."""
    components = labels.shares.size
    if labels.steps is not None:
        width = labels.steps.values.size * components
    else:  # most components of Student's t take a few nodes in the place of many
        width = labels.weights.shape[1] * (1 + (components - 1) // 4)
    if loss.pieces is not None:  # a dozen arrays of so many nodes stay in the cache
        return 2**15 // width
    # of a proximal map, usually of 8 panels, there is more to do between two passes over them
    return 2**19 // (8 * labels.order * width)


def _given_kappa(what: Averaged, labels: ConditionalLabels, loss: Loss, field: Field) -> Array:
    """The averages of a few kappa."""
    if labels.steps is not None:
        return averages_of_steps(what, labels, loss, field)
    values, weights = given_tau(what, labels, loss, field), labels.weights
    sums = np.einsum("xpnt,nt->xpn", values, weights)
    if what == "residual":
        return sums
    along = np.einsum("pnt,ntk->kpn", values[0], weights[..., None] * labels.tau)
    return np.concatenate([sums, along])

"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

If the mean label is a step function of tau, they are in closed form or integrals along the proximal
map (``step_labels``).  Otherwise they are sums over tau of averages ``averages_given_tau``.  They
are computed in blocks that fit into the cache; the deadline is checked between blocks.
"""

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from ..saddle_point import Field, Scores
from .conditional_averages import Averaged, averages_given_tau
from .label_tables import ConditionalLabels
from .losses import Loss
from .step_labels import step_label_averages


def average(
    quantity: Averaged,
    labels: ConditionalLabels,
    loss: Loss,
    field: Field,
    *,
    each_tau: bool = False,
) -> Array:
    """Averages given kappa, (k, P, N): E s, -E s', E s^2 and E tau s of the score, or E t, E t^2
    and E rho(t) of the residual.

    The residual t of a training sample is the proximal point.  For a new sample it is t0, which is
    t for the field ``for_new_samples``.  With ``each_tau`` only the first three are returned, at
    every node of tau, (3, P, N, T).
    """
    points, nodes = field.centre.shape
    count = labels.tau.shape[2]  # other components of tau are Gaussian: Eq. (19.4)
    others, field = field.tau_slope[..., count:], field.project_tau(count)
    size = max(1, _block_size(labels, loss) // points)
    block_averages = averages_given_tau if each_tau else _block_averages
    blocks = []
    for rows in (slice(i, i + size) for i in range(0, nodes, size)):
        check_time()
        blocks.append(block_averages(quantity, labels.select(rows), loss, field.select(rows)))
    values = np.concatenate(blocks, axis=2)
    if quantity == "residual" or each_tau or not others.size:
        return values
    return np.concatenate([values, -np.moveaxis(others, -1, 0) * values[1]])


def scores(labels: ConditionalLabels, loss: Loss, field: Field) -> Scores:
    """Averages of the score given kappa, for (6.2)-(6.3)."""
    mean, slope, square, *along = average("score", labels, loss, field)
    return Scores(mean, slope, square, np.stack(along, axis=-1))


def losses(labels: ConditionalLabels, weights: Array, loss: Loss, field: Field) -> dict[str, Array]:
    """Mean loss and squared residual y - f of training samples, and mean loss on new ones, (P,).

    Keys are the field names of ``Solution``; ``weights`` (N,) are the quadrature weights of kappa.
    """
    mean_t, mean_t2, train = average("residual", labels, loss, field) @ weights
    test = average("residual", labels, loss, field.for_new_samples)[2] @ weights
    if labels.noise is not None and (missing := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing
    # in the tails differences of moments have an error below the rounding of the test loss
    train = np.where((train < 0) & (-train < 1e-15 * np.abs(test)), 0.0, train)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squared_residuals = mean_t2 if loss.kind == "residual" else 1 - 2 * mean_t + mean_t2
    return {"train_loss": train, "train_error": squared_residuals, "loss_error": test}


def _block_size(labels: ConditionalLabels, loss: Loss) -> int:
    """Number of pairs of a point and a kappa in a block, such that its arrays fit into the
    cache."""
    components = labels.shares.size
    if labels.steps is not None:
        width = labels.steps.values.size * components
    else:  # most components of Student's t take few nodes
        width = labels.weights.shape[1] * (1 + (components - 1) // 4)
    if loss.pieces is not None:  # a dozen arrays of so many nodes fit into the cache
        return 2**15 // width
    # a proximal map, of some 8 panels, does more work on an array
    return 2**19 // (8 * labels.order * width)


def _block_averages(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages given kappa for a block of kappa."""
    if labels.steps is not None:
        return step_label_averages(quantity, labels, loss, field)
    values, weights = averages_given_tau(quantity, labels, loss, field), labels.weights
    sums = np.einsum("xpnt,nt->xpn", values, weights)
    if quantity == "residual":
        return sums
    tau_scores = np.einsum("pnt,ntk->kpn", values[0], weights[..., None] * labels.tau)
    return np.concatenate([sums, tau_scores])

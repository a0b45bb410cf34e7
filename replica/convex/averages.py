"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

If the mean label is a step function of tau, such as a sign, also flipped or with noise, they are in
closed form or integrals along the proximal map.  Otherwise they are sums over tau of averages
``averages_given_tau``.  They are computed in blocks that fit into the cache; the deadline is
checked between blocks.

Labels with steps.  Given kappa, t0 = y - omega + noise, or y omega, is for each label y and
component of the noise

    t0 = mean + sd z,   (z, tau) ~ N(0, [[1, r], [r, 1]]),   P(y | tau) a sum of steps at e_j,

so that y and z have the joint density phi(z) sum_j p_j Phi((r z - e_j) / sqrt(1 - r^2)).  Averages
of a piecewise quadratic loss need its partial moments, which are elementary functions and Owen's
function.  By partial integration in tau

    E[tau s] = P E[s'] + sum_j phi(e_j) sum_y p_j(y) E[s(y) | tau = e_j].

Other losses are averaged over points of the proximal map, with the density and E[tau | z].
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, owens_t

from solvers.piecewise import NORMAL, NORMAL_CUT, average_score
from solvers.resources import check_time
from solvers.results import Array

from ..saddle_point import THINNEST_FIELD, Field, Scores, variance_given_tau
from .conditional_averages import (
    EXACT_AVERAGES,
    TAIL,
    Averaged,
    averaged_values,
    averages_given_tau,
    proximal_nodes,
)
from .label_tables import ConditionalLabels
from .losses import Loss

SMALLEST_ARGUMENT = 1e-100  # of numbers whose ratios are arguments of Owen's function


class StepLaw(NamedTuple):
    """Law of z in t0 = mean + sd z, together with the label, at (P, N); its mass is P(y).

    There are K pairs of a label and a component of the noise.

    Attributes
    ----------
    share, sign : arrays (K, 1, 1)
        Probability of the component of the noise, and sign o = ds / dg.
    mean, sd : arrays (K, P, N)
        Mean and standard deviation of t0.
    first : array (K, 1, 1)
        P(y | tau) before the first step.
    rises : array (J, K, 1, 1)
        Change of P(y | tau) at each step.
    edges : array (J, 1, 1, N)
        Values of tau at the steps.
    r, rest : arrays (K, P, N)
        The correlation of z and tau, and sqrt(1 - r^2).
    """

    share: Array
    sign: Array
    mean: Array
    sd: Array
    first: Array
    rises: Array
    edges: Array
    r: Array
    rest: Array

    @property
    def total(self) -> tuple[Array, Array, Array]:
        """Moments E 1, E z and E z^2."""
        density = self.rises * NORMAL.density(self.edges)
        mass = self.first + (self.rises * ndtr(-self.edges)).sum(axis=0)
        second = mass + self.r**2 * (density * self.edges).sum(axis=0)
        return mass, self.r * density.sum(axis=0), second

    def partial_moments(self, z: Array) -> tuple[Array, Array, Array]:
        """Integrals from -inf to each z of the density times 1, z and z^2."""
        z = np.clip(z, -NORMAL_CUT, NORMAL_CUT)
        z = np.where(np.abs(z) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, z)
        below, density = ndtr(z), NORMAL.density(z)
        zeroth, first = self.first * below, -self.first * density
        second = zeroth + z * first
        for rise, edge in zip(self.rises, self.edges, strict=True):
            tau_in_sd = (self.r * z - edge) / self.rest  # tau given z, in standard deviations
            z_in_sd = (z - self.r * edge) / self.rest  # z given tau at the edge
            joint = (below - ndtr(edge)) / 2 + 0.5 * (z * edge < 0)  # P(z' < z, tau > edge)
            joint += owens_t(edge, z_in_sd / edge) - owens_t(z, tau_in_sd / z)
            at_z = density * ndtr(tau_in_sd)
            at_edge = self.r * NORMAL.density(edge)
            inside = at_edge * ndtr(z_in_sd)
            edge_term = self.r * edge * inside - self.rest * at_edge * NORMAL.density(z_in_sd)
            zeroth = zeroth + rise * joint
            first = first + rise * (inside - at_z)
            second = second + rise * (joint - z * at_z + edge_term)
        # exact values far out, as a large response would multiply the rounding
        parts = zip(self.total, (zeroth, first, second), strict=True)
        low, high = z == -NORMAL_CUT, z == NORMAL_CUT
        zeroth, first, second = (np.where(high, total, np.where(low, 0.0, x)) for total, x in parts)
        return zeroth, first, second

    def density(self, z: Array) -> Array:
        """Density at each z."""
        chance = self.first
        for rise, edge in zip(self.rises, self.edges, strict=True):
            chance = chance + rise * ndtr((self.r * z - edge) / self.rest)
        return np.asarray(NORMAL.density(z) * chance)


def step_law(labels: ConditionalLabels, kind: str, field: Field) -> StepLaw:
    """Law of z for labels with ``steps``, for a loss of a ``kind``."""
    assert labels.steps is not None
    edges, values = labels.steps
    if labels.binary:
        y = np.array([1.0, -1.0])
        chance = (1 + y[:, None] * values) / 2
    else:
        y, value_index = np.unique(values, return_inverse=True)
        chance = (value_index == np.arange(y.size)[:, None]).astype(float)
    # every label with every component, K of them
    components = labels.variances.size
    y, chance = np.repeat(y, components)[:, None, None], np.repeat(chance, components, axis=0)
    variance, share = (np.resize(x, y.shape) for x in (labels.variances, labels.shares))
    sd, rest = np.sqrt(field.variance + variance), np.sqrt(variance_given_tau(field) + variance)
    # t0 = label + sign omega
    label, sign = (0.0, y) if kind == "margin" else (y, np.full_like(y, -1.0))
    mean, pull = label + sign * field.centre, sign * field.tau_slope[..., 0]
    edges = np.where(np.abs(edges) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, edges)
    edge_array, rises = edges.T[:, None, None], np.diff(chance).T[..., None, None]
    first = chance[:, :1, None]
    return StepLaw(share, sign, mean, sd, first, rises, edge_array, pull / sd, rest / sd)


def step_label_averages(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages given kappa for labels with steps: E s, -E s', E s^2 and E tau s, (4, P, N), or E t,
    E t^2 and E rho(t), (3, P, N)."""
    law = step_law(labels, loss.kind, field)
    if loss.pieces is None:
        values, tau_values = _averages_by_points(quantity, loss, labels.order, law, field)
    else:
        values = EXACT_AVERAGES[quantity](loss.pieces, law.mean, law.sd, field.response, law)
    if quantity == "residual":
        return np.asarray((law.share * values).sum(axis=1))
    signed = law.share * law.sign
    mean = (signed * values[0]).sum(axis=0)
    slope, square = ((law.share * x).sum(axis=0) for x in (-values[1], values[2]))
    if loss.pieces is None:
        tau_average = (signed * tau_values).sum(axis=0)
    else:
        at_edges = law.mean + law.sd * law.r * law.edges, law.sd * law.rest  # law of t0 given tau
        at_edge = average_score(loss.pieces, *at_edges, field.response)[0]
        jumps = (law.rises * signed * at_edge).sum(axis=1)
        tau_average = (NORMAL.density(law.edges[:, 0]) * jumps).sum(axis=0)
        tau_average -= field.tau_slope[..., 0] * slope
    return np.stack([mean, slope, square, tau_average])


def _averages_by_points(
    quantity: Averaged, loss: Loss, order: int, law: StepLaw, field: Field
) -> tuple[Array, Array]:
    """Averages (3, K, P, N) of ``averaged_values`` for each label, and of tau times the first,
    (K, P, N), by points of the proximal map."""
    mean, sd, r, rest = (x[..., None] for x in (law.mean, law.sd, law.r, law.rest))
    sd = np.maximum(sd, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    V = np.broadcast_to(field.response[..., None], mean.shape)
    curve = proximal_nodes(loss, V, mean - TAIL * sd, mean + TAIL * sd, sd, order)
    z = (curve.t0 - mean) / sd
    probability, slope = law.first[..., None], np.zeros_like(z)
    for rise, edge in zip(law.rises[..., None], law.edges[..., None], strict=True):
        tau_in_sd = (r * z - edge) / rest  # tau given z, in standard deviations
        probability = probability + rise * ndtr(tau_in_sd)
        slope += rise * NORMAL.density(tau_in_sd)
    values = averaged_values(quantity, loss, curve)
    weight = NORMAL.density(z) * curve.length / sd
    tau_average = (values[0] * weight * (r * z * probability + rest * slope)).sum(axis=-1)
    return (values * (weight * probability)).sum(axis=-1), tau_average


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

"""Averages of scores and losses over field and label, at points of the proximal map.  (6.1)-(6.3)

If the mean label is a step function of tau, such as a sign, also flipped or with noise, they are in
closed form or integrals along the proximal map.  Otherwise they are sums over tau of averages given
kappa and tau.  They are computed in blocks that fit into the cache; the deadline is checked between
blocks.

The argument of a loss, t0 = y - omega, or y omega, is Gaussian given kappa, tau, the label and the
component of the noise.  Its averages are exact for a piecewise quadratic loss.  For other losses
they are sums over points of the proximal map, with the density of t0 given every tau.  If the
Gaussian is much wider than the distance between its means, the averages are nearly polynomials of
the mean, which a few Chebyshev nodes determine.

With t = prox(t0) as the variable, no equation has to be solved for the nodes on the proximal map:

    t0 = t + V rho'(t),   dt0 = (1 + V rho''(t)) dt,   g = -rho'(t),

between the kinks of rho.  At a kink t is constant while t0 increases by V times the jump of rho'.
The graph of the map is divided into panels that are short where the density of t0 varies and where
rho bends.

Labels with steps.  Given kappa, t0 is for each label y and component of the noise

    t0 = mean + sd z,   (z, tau) ~ N(0, [[1, r], [r, 1]]),   P(y | tau) a sum of steps at e_j,

so that y and z have the joint density phi(z) sum_j p_j Phi((r z - e_j) / sqrt(1 - r^2)).  Averages
of a piecewise quadratic loss need its partial moments, which are elementary functions and Owen's
function.  By partial integration in tau

    E[tau s] = P E[s'] + sum_j phi(e_j) sum_y p_j(y) E[s(y) | tau = e_j].

Other losses are averaged over points of the proximal map, with the density and E[tau | z].
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.special import ndtr

from solvers.chebyshev import coefficient_matrix
from solvers.piecewise import SMALLEST_ARGUMENT, Averaged, StepLaw, gaussian_averages
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import composite_legendre, gaussian_density

from ..saddle_point import THINNEST_FIELD, Field, Scores, variance_given_tau
from .label_tables import ConditionalLabels
from .losses import BEND_STRETCH, Loss

TAIL = 7.0  # standard deviations of t0: a Gaussian has the mass 3e-12 beyond
LONGEST_PANEL = 5.0  # in standard deviations of t0


class Graph(NamedTuple):
    """Points (..., L) of the graph of a proximal map: t0, t, the score g of (6.1), dg / dt0, and
    the quadrature weight in t0."""

    t0: Array
    t: Array
    score: Array
    slope: Array
    length: Array


def proximal_nodes(loss: Loss, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t0 between ``low`` and ``high``, for a density of t0 with standard
    deviation ``sd``, arrays (..., 1); a panel has ``order`` points."""
    # ends need not be exact, as the density vanishes there or another part of the graph begins; but
    # an end that jumps from pass to pass would disturb the iteration
    t_low, last = loss.proximal(np.stack([low, high]), V, 1e-3 * sd)
    graph_pieces = [
        _smooth_points(loss, V, np.clip(t_start, t_low, last), np.clip(end, t_low, last), sd, order)
        for t_start, end in pairwise((-np.inf, *loss.kinks, np.inf))
    ]
    for kink, t_start, end in loss.flats(V) if loss.jumps else ():
        graph_pieces.append(
            _at_kink(kink, V, np.clip(t_start, low, high), np.clip(end, low, high), sd, order)
        )
    return Graph(*(np.concatenate(arrays, axis=-1) for arrays in zip(*graph_pieces, strict=True)))


def averaged_values(quantity: Averaged, loss: Loss, graph: Graph) -> Array:
    """Values of the averaged quantities at points of the graph, (3, ..., L)."""
    if quantity == "residual":
        return np.stack([graph.t, graph.t**2, loss.value(graph.t)])
    return np.stack([graph.score, graph.slope, graph.score**2])


def _smooth_points(loss: Loss, V: Array, first: Array, last: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t from ``first`` to ``last``, where rho is smooth."""
    # panel lengths in t: ``longest`` at a bend, and in proportion to the distance from it
    bends, longest = loss.bends or (0.0,), BEND_STRETCH * loss.width
    t_grid = np.concatenate([_bend_grid(bend, longest, first, last) for bend in bends], axis=-1)
    t_grid = np.clip(np.sort(t_grid, axis=-1), first, last)
    t_inside = np.clip(t_grid, np.nextafter(first, np.inf), np.nextafter(last, -np.inf))
    t0 = t_grid + V * loss.derivative(t_inside)  # with the slope on this side of a kink
    panels_per_e = 0.7  # number of panels while the distance from a bend grows by a factor e
    bend_distance = sum(np.arcsinh((t_grid - bend) / (longest * panels_per_e)) for bend in bends)
    t, t_weights = composite_legendre(
        order, _even_breaks(t0 / (LONGEST_PANEL * sd) + panels_per_e * bend_distance, t_grid)
    )
    rho_curvature, score = loss.second(t), -loss.derivative(t)
    graph_stretch = 1 + V * rho_curvature
    return Graph(t - V * score, t, score, -rho_curvature / graph_stretch, t_weights * graph_stretch)


def _bend_grid(bend: float, scale: float, t_first: Array, t_last: Array) -> Array:
    """Grid from ``t_first`` to ``t_last``, even on a ``scale`` near ``bend``, and with spacing in
    proportion to the distance further away."""
    a, arc_last = (np.arcsinh((t_end - bend) / scale) for t_end in (t_first, t_last))
    longest_arc = (arc_last - a).max(initial=0.0, where=np.isfinite(arc_last - a))
    cells = int(np.clip(np.ceil(10 * longest_arc), 3, 16))
    return np.asarray(bend + scale * np.sinh(a + (arc_last - a) * np.linspace(0, 1, cells + 1)))


def _at_kink(kink: float, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t0 from ``low`` to ``high``, where t is constant at a kink."""
    kink_panels = _panel_count((high - low) / (LONGEST_PANEL * sd))
    t0, t0_weights = composite_legendre(
        order, low + (high - low) * np.linspace(0, 1, kink_panels + 1)
    )
    return Graph(t0, np.full_like(t0, kink), (kink - t0) / V, np.full_like(t0, -1) / V, t0_weights)


def _even_breaks(arc: Array, grid: Array) -> Array:
    """Ends of panels (..., M + 1) at equal distances in ``arc``, a function that is given on the
    ``grid``; both are (..., C) and increasing."""
    start, arc_total = arc[..., :1], np.ptp(arc, axis=-1, keepdims=True)
    arc_share = np.where(arc_total > 0, (arc - start) / np.where(arc_total > 0, arc_total, 1), 0.0)
    arc_share[..., -1] = 1.0
    arc_share = np.maximum.accumulate(np.nan_to_num(arc_share), axis=-1)
    even_arcs = np.linspace(0, 1, _panel_count(arc_total) + 1)
    # one interpolation for all rows, each shifted beyond the previous one
    row_offset = 2.0 * np.arange(arc_total.size).reshape(arc_total.shape)
    even_breaks = np.interp(row_offset + even_arcs, (row_offset + arc_share).ravel(), grid.ravel())
    even_breaks[..., 0], even_breaks[..., -1] = grid[..., 0], grid[..., -1]
    return even_breaks


def _panel_count(panel_lengths: Array) -> int:
    """Number of panels for the longest of ``panel_lengths``, which are in units of panels."""
    panels_needed = panel_lengths.max(initial=1.0, where=np.isfinite(panel_lengths))
    return int(np.clip(np.ceil(panels_needed), 1, 384))


# Averages (3, R, T) over t0 of means (R, T), standard deviations (R, 1) and responses (R, 1).
Average = Callable[[Array, Array, Array], Array]


def averages_given_tau(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages E s, -E s' and E s^2, or E t, E t^2 and E rho(t), at every node of tau,
    (3, P, N, T)."""
    omega = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, labels.tau)
    V = field.response.reshape(-1, 1)
    field_sd = np.sqrt(variance_given_tau(field).reshape(-1, 1) + labels.variances)
    average = partial(_by_points, quantity, loss, labels.order)
    if loss.pieces is not None:
        average = partial(gaussian_averages, quantity, loss.pieces)
    label_pairs: list[tuple[Array | float, Array]] = [(labels.mean, np.ones_like(labels.mean))]
    if labels.binary:
        label_pairs = [(y, (1 + y * labels.mean) / 2) for y in (1.0, -1.0)]
    label_sum = np.zeros((3, *omega.shape))
    for y, probability in label_pairs:
        score_sign, mean = (float(y), y * omega) if loss.kind == "margin" else (-1.0, y - omega)
        averages = _mixture_averages(average, mean.reshape(V.size, -1), field_sd, V, labels.shares)
        if quantity == "score":
            averages *= np.array([score_sign, -1.0, 1.0])[:, None, None]
        label_sum += probability * averages.reshape(label_sum.shape)
    return label_sum


def _mixture_averages(average: Average, mean: Array, sd: Array, V: Array, shares: Array) -> Array:
    """Averages (3, R, T) over a mixture of Gaussians with standard deviations (R, M)."""
    lowest_t0, t0_high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    midpoint, half_width = (lowest_t0 + t0_high) / 2, np.maximum((t0_high - lowest_t0) / 2, 1e-300)
    sd = np.maximum(sd, THINNEST_FIELD * (np.abs(midpoint) + half_width))
    sizes = [n for n in (4, 8, 16, 32) if 2 * n <= mean.shape[1]]
    size_of_gaussian = np.searchsorted(
        [largest_half_width(n) for n in sizes], (half_width / sd).max(axis=0)
    )
    label_noise_sum = np.zeros((3, *mean.shape))
    for size_index in np.unique(size_of_gaussian):
        equally_wide = size_of_gaussian == size_index
        gaussian_count, at_all_means = np.count_nonzero(equally_wide), size_index == len(sizes)
        t0_nodes = mean if at_all_means else midpoint + half_width * chebpts1(sizes[size_index])
        t0_nodes, responses = (np.repeat(x, gaussian_count, axis=0) for x in (t0_nodes, V))
        t0_averages = average(t0_nodes, sd[:, equally_wide].reshape(-1, 1), responses)
        t0_averages = t0_averages.reshape(3, len(mean), gaussian_count, -1)
        label_averages = np.einsum("xrmn,m->xrn", t0_averages, shares[equally_wide])
        if not at_all_means:
            x = np.clip((mean - midpoint) / half_width, -1, 1)
            mean_series = coefficient_matrix(sizes[size_index]) @ label_averages.transpose(1, 2, 0)
            label_averages = np.moveaxis(chebvander(x, sizes[size_index] - 1) @ mean_series, 2, 0)
        label_noise_sum += label_averages
    return label_noise_sum


@cache
def largest_half_width(nodes: int) -> float:
    """Largest half width r of the range of means, in standard deviations, for Chebyshev nodes.

    Up to it, averages at so many nodes determine all others to 1e-11: the first neglected Chebyshev
    coefficient of exp(-z^2 / 2) is about (r^2 / 8)^k / k! for k = nodes / 2.
    """
    half_nodes = nodes // 2
    return float(np.sqrt(8 * (1e-11 * factorial(half_nodes)) ** (1 / half_nodes)))


def _by_points(
    quantity: Averaged, loss: Loss, order: int, mean: Array, sd: Array, V: Array
) -> Array:
    """Averages (3, R, T) by points of the proximal map, the same for all Gaussians of a row.

    There are few points, as a user's loss may cost much more than a density.
    """
    lowest_mean, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    # where t0 is nearly a function of tau, every Gaussian has its own points
    thin = ((high - lowest_mean) > 10 * TAIL * sd)[:, 0]
    if thin.any() and mean.shape[1] > 1:
        label_averages = np.empty((3, *mean.shape))
        pieces = mean[thin].reshape(-1, 1), *(np.repeat(x[thin], mean.shape[1], 0) for x in (sd, V))
        label_averages[:, thin] = _by_points(quantity, loss, order, *pieces).reshape(
            3, -1, mean.shape[1]
        )
        if not thin.all():
            joint_points = mean[~thin], sd[~thin], V[~thin]
            label_averages[:, ~thin] = _by_points(quantity, loss, order, *joint_points)
        return label_averages
    proximal_map = proximal_nodes(loss, V, lowest_mean - TAIL * sd, high + TAIL * sd, sd, order)
    t0_density = (proximal_map.t0 / sd)[..., None] - (mean / sd)[:, None]
    t0_density *= t0_density
    t0_density *= -0.5
    np.exp(t0_density, out=t0_density)
    graph_values = averaged_values(quantity, loss, proximal_map) * (
        proximal_map.length / (np.sqrt(2 * np.pi) * sd)
    )
    return np.moveaxis(np.stack(graph_values, axis=1) @ t0_density, 1, 0)


class StepLabels(NamedTuple):
    """Law of t0 = mean + sd z together with the label, for K pairs of a label and a component of
    the noise.

    Attributes
    ----------
    share, sign : arrays (K, 1, 1)
        Probability of the component of the noise, and sign o = ds / dg.
    mean, sd : arrays (K, P, N)
        Mean and standard deviation of t0.
    law : StepLaw
        Law of z, (K, P, N), whose mass is P(y).
    """

    share: Array
    sign: Array
    mean: Array
    sd: Array
    law: StepLaw


def step_labels(labels: ConditionalLabels, kind: str, field: Field) -> StepLabels:
    """Law of t0 for labels with ``steps``, for a loss of a ``kind``."""
    assert labels.steps is not None
    step_edges, step_values = labels.steps
    if labels.binary:
        y = np.array([1.0, -1.0])
        label_chances = (1 + y[:, None] * step_values) / 2
    else:
        y, value_index = np.unique(step_values, return_inverse=True)
        label_chances = (value_index == np.arange(y.size)[:, None]).astype(float)
    # every label with every component, K of them
    noise_count = labels.variances.size
    y = np.repeat(y, noise_count)[:, None, None]
    label_chances = np.repeat(label_chances, noise_count, axis=0)
    variance, component_share = (np.resize(x, y.shape) for x in (labels.variances, labels.shares))
    t0_sd = np.sqrt(field.variance + variance)
    tau_rest = np.sqrt(variance_given_tau(field) + variance)
    # t0 = label + sign omega
    t0_label, sign = (0.0, y) if kind == "margin" else (y, np.full_like(y, -1.0))
    t0_mean, tau_pull = t0_label + sign * field.centre, sign * field.tau_slope[..., 0]
    step_edges = np.where(np.abs(step_edges) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, step_edges)
    edge_array, rises = step_edges.T[:, None, None], np.diff(label_chances).T[..., None, None]
    law = StepLaw(label_chances[:, :1, None], rises, edge_array, tau_pull / t0_sd, tau_rest / t0_sd)
    return StepLabels(component_share, sign, t0_mean, t0_sd, law)


def _step_label_averages(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages given kappa for labels with steps: E s, -E s', E s^2 and E tau s, (4, P, N), or E t,
    E t^2 and E rho(t), (3, P, N)."""
    share, sign, mean, sd, law = step_law = step_labels(labels, loss.kind, field)
    if loss.pieces is None:
        label_averages, tau_values = _steps_by_points(quantity, loss, labels.order, step_law, field)
    else:
        label_averages = gaussian_averages(quantity, loss.pieces, mean, sd, field.response, law)
    if quantity == "residual":
        return np.asarray((share * label_averages).sum(axis=1))
    signed_share = share * sign
    mean_score = (signed_share * label_averages[0]).sum(axis=0)
    mean_slope, square = ((share * x).sum(axis=0) for x in (-label_averages[1], label_averages[2]))
    if loss.pieces is None:
        tau_average = (signed_share * tau_values).sum(axis=0)
    else:
        law_at_edges = mean + sd * law.r * law.edges, sd * law.rest  # law of t0 given tau
        score_at_edges = gaussian_averages(quantity, loss.pieces, *law_at_edges, field.response)[0]
        edge_jumps = (law.rises * signed_share * score_at_edges).sum(axis=1)
        tau_average = (gaussian_density(law.edges[:, 0]) * edge_jumps).sum(axis=0)
        tau_average -= field.tau_slope[..., 0] * mean_slope
    return np.stack([mean_score, mean_slope, square, tau_average])


def _steps_by_points(
    quantity: Averaged, loss: Loss, order: int, step_law: StepLabels, field: Field
) -> tuple[Array, Array]:
    """Averages (3, K, P, N) of ``averaged_values`` for each label, and of tau times the first,
    (K, P, N), by points of the proximal map."""
    law = StepLaw(*(law_part[..., None] for law_part in step_law.law))
    mean, sd = step_law.mean[..., None], step_law.sd[..., None]
    sd = np.maximum(sd, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    V = np.broadcast_to(field.response[..., None], mean.shape)
    graph = proximal_nodes(loss, V, mean - TAIL * sd, mean + TAIL * sd, sd, order)
    z = (graph.t0 - mean) / sd
    label_chance, law_slope = law.first, np.zeros_like(z)
    for rise, edge in zip(law.rises, law.edges, strict=True):
        tau_in_sd = (law.r * z - edge) / law.rest  # tau given z, in standard deviations
        label_chance = label_chance + rise * ndtr(tau_in_sd)
        law_slope += rise * gaussian_density(tau_in_sd)
    graph_values = averaged_values(quantity, loss, graph)
    graph_weight = gaussian_density(z) * graph.length / sd
    tau_average = graph_values[0] * graph_weight * (law.r * z * label_chance + law.rest * law_slope)
    return (graph_values * (graph_weight * label_chance)).sum(axis=-1), tau_average.sum(axis=-1)


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
    point_count, kappa_count = field.centre.shape
    node_axes = labels.tau.shape[2]  # other components of tau are Gaussian: Eq. (19.4)
    gaussian_slopes, field = field.tau_slope[..., node_axes:], field.project_tau(node_axes)
    # as many pairs of a point and a kappa at once as have arrays that fit into the cache
    if by_label_steps := labels.steps is not None and not each_tau:
        width = labels.steps.values.size * labels.shares.size
    else:  # most components of Student's t take few nodes
        width = labels.weights.shape[1] * (1 + (labels.shares.size - 1) // 4)
    # a proximal map, of some 8 panels, does more work on an array
    map_count = 2**15 // width if loss.pieces is not None else 2**19 // (8 * labels.order * width)
    kappa_averages, kappa_block = [], max(1, map_count // point_count)
    for kappa_rows in (slice(i, i + kappa_block) for i in range(0, kappa_count, kappa_block)):
        check_time()
        own_labels, field_block = labels.select(kappa_rows), field.select(kappa_rows)
        if by_label_steps:
            kappa_averages.append(_step_label_averages(quantity, own_labels, loss, field_block))
            continue
        tau_averages = averages_given_tau(quantity, own_labels, loss, field_block)
        if not each_tau:
            score_at_tau = tau_averages[0]
            tau_averages = np.einsum("xpnt,nt->xpn", tau_averages, own_labels.weights)
        if not each_tau and quantity == "score":
            tau_score = np.einsum(
                "pnt,ntk->kpn", score_at_tau, own_labels.weights[..., None] * own_labels.tau
            )
            tau_averages = np.concatenate([tau_averages, tau_score])
        kappa_averages.append(tau_averages)
    tau_averages = np.concatenate(kappa_averages, axis=2)
    if quantity == "residual" or each_tau or not gaussian_slopes.size:
        return tau_averages
    return np.concatenate([tau_averages, -np.moveaxis(gaussian_slopes, -1, 0) * tau_averages[1]])


def scores(labels: ConditionalLabels, loss: Loss, field: Field) -> Scores:
    """Averages of the score given kappa, for (6.2)-(6.3)."""
    mean, slope, square, *tau_score = average("score", labels, loss, field)
    return Scores(mean, slope, square, np.stack(tau_score, axis=-1))


def losses(labels: ConditionalLabels, weights: Array, loss: Loss, field: Field) -> dict[str, Array]:
    """Mean loss and squared residual y - f of training samples, and mean loss on new ones, (P,).

    Keys are the field names of ``Solution``; ``weights`` (N,) are the quadrature weights of kappa.
    """
    mean_t, mean_t2, train_loss = average("residual", labels, loss, field) @ weights
    test = average("residual", labels, loss, field.for_new_samples)[2] @ weights
    if labels.noise is not None and (missing_moment := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing_moment
    # in the tails differences of moments have an error below the rounding of the test loss
    train_loss = np.where((train_loss < 0) & (-train_loss < 1e-15 * np.abs(test)), 0.0, train_loss)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squared_residuals = mean_t2 if loss.kind == "residual" else 1 - 2 * mean_t + mean_t2
    return {"train_loss": train_loss, "train_error": squared_residuals, "loss_error": test}

"""Averages over the local field and the label at each kappa.  Eqs. (6.1)-(6.3)

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
    inside = np.clip(t_grid, np.nextafter(first, np.inf), np.nextafter(last, -np.inf))
    t0 = t_grid + V * loss.derivative(inside)  # with the slope on this side of a kink
    panels_per_e = 0.7  # number of panels while the distance from a bend grows by a factor e
    bend_distance = sum(np.arcsinh((t_grid - bend) / (longest * panels_per_e)) for bend in bends)
    t, t_weights = composite_legendre(
        order, _even_breaks(t0 / (LONGEST_PANEL * sd) + panels_per_e * bend_distance, t_grid)
    )
    curvature, score = loss.second(t), -loss.derivative(t)
    stretch = 1 + V * curvature
    return Graph(t - V * score, t, score, -curvature / stretch, t_weights * stretch)


def _bend_grid(centre: float, scale: float, first: Array, last: Array) -> Array:
    """Grid from ``first`` to ``last``, even on a ``scale`` near ``centre``, and with spacing in
    proportion to the distance further away."""
    a, b = (np.arcsinh((end - centre) / scale) for end in (first, last))
    longest = (b - a).max(initial=0.0, where=np.isfinite(b - a))
    cells = int(np.clip(np.ceil(10 * longest), 3, 16))
    return np.asarray(centre + scale * np.sinh(a + (b - a) * np.linspace(0, 1, cells + 1)))


def _at_kink(kink: float, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t0 from ``low`` to ``high``, where t is constant at a kink."""
    panels = _panel_count((high - low) / (LONGEST_PANEL * sd))
    t0, length = composite_legendre(order, low + (high - low) * np.linspace(0, 1, panels + 1))
    return Graph(t0, np.full_like(t0, kink), (kink - t0) / V, np.full_like(t0, -1) / V, length)


def _even_breaks(along: Array, grid: Array) -> Array:
    """Ends of panels (..., M + 1) at equal distances in ``along``, a function that is given on the
    ``grid``; both are (..., C) and increasing."""
    start, arc_total = along[..., :1], np.ptp(along, axis=-1, keepdims=True)
    fraction = np.where(arc_total > 0, (along - start) / np.where(arc_total > 0, arc_total, 1), 0.0)
    fraction[..., -1] = 1.0
    fraction = np.maximum.accumulate(np.nan_to_num(fraction), axis=-1)
    even_arcs = np.linspace(0, 1, _panel_count(arc_total) + 1)
    # one interpolation for all rows, each shifted beyond the previous one
    row_offset = 2.0 * np.arange(arc_total.size).reshape(arc_total.shape)
    breaks = np.interp(row_offset + even_arcs, (row_offset + fraction).ravel(), grid.ravel())
    breaks[..., 0], breaks[..., -1] = grid[..., 0], grid[..., -1]
    return breaks


def _panel_count(lengths: Array) -> int:
    """Number of panels for the longest of ``lengths``, which are in units of panels."""
    longest = lengths.max(initial=1.0, where=np.isfinite(lengths))
    return int(np.clip(np.ceil(longest), 1, 384))


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
    law: list[tuple[Array | float, Array]] = [(labels.mean, np.ones_like(labels.mean))]
    if labels.binary:
        law = [(y, (1 + y * labels.mean) / 2) for y in (1.0, -1.0)]
    label_sum = np.zeros((3, *omega.shape))
    for y, probability in law:
        sign, mean = (float(y), y * omega) if loss.kind == "margin" else (-1.0, y - omega)
        values = _mixture_averages(average, mean.reshape(V.size, -1), field_sd, V, labels.shares)
        if quantity == "score":
            values *= np.array([sign, -1.0, 1.0])[:, None, None]
        label_sum += probability * values.reshape(label_sum.shape)
    return label_sum


def _mixture_averages(average: Average, mean: Array, sd: Array, V: Array, shares: Array) -> Array:
    """Averages (3, R, T) over a mixture of Gaussians with standard deviations (R, M)."""
    lowest_t0, t0_high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    midpoint, half_width = (lowest_t0 + t0_high) / 2, np.maximum((t0_high - lowest_t0) / 2, 1e-300)
    sd = np.maximum(sd, THINNEST_FIELD * (np.abs(midpoint) + half_width))
    sizes = [n for n in (4, 8, 16, 32) if 2 * n <= mean.shape[1]]
    groups = np.searchsorted([largest_half_width(n) for n in sizes], (half_width / sd).max(axis=0))
    mixture_sum = np.zeros((3, *mean.shape))
    for pair_index in np.unique(groups):
        selected = groups == pair_index
        gaussian_count, all_nodes = np.count_nonzero(selected), pair_index == len(sizes)
        nodes = mean if all_nodes else midpoint + half_width * chebpts1(sizes[pair_index])
        nodes, responses = (np.repeat(x, gaussian_count, axis=0) for x in (nodes, V))
        at_nodes = average(nodes, sd[:, selected].reshape(-1, 1), responses)
        at_nodes = at_nodes.reshape(3, len(mean), gaussian_count, -1)
        values = np.einsum("xrmn,m->xrn", at_nodes, shares[selected])
        if not all_nodes:
            x = np.clip((mean - midpoint) / half_width, -1, 1)
            coefficients = coefficient_matrix(sizes[pair_index]) @ values.transpose(1, 2, 0)
            values = np.moveaxis(chebvander(x, sizes[pair_index] - 1) @ coefficients, 2, 0)
        mixture_sum += values
    return mixture_sum


@cache
def largest_half_width(nodes: int) -> float:
    """Largest half width r of the range of means, in standard deviations, for Chebyshev nodes.

    Up to it, averages at so many nodes determine all others to 1e-11: the first neglected Chebyshev
    coefficient of exp(-z^2 / 2) is about (r^2 / 8)^k / k! for k = nodes / 2.
    """
    half = nodes // 2
    return float(np.sqrt(8 * (1e-11 * factorial(half)) ** (1 / half)))


def _by_points(
    quantity: Averaged, loss: Loss, order: int, mean: Array, sd: Array, V: Array
) -> Array:
    """Averages (3, R, T) by points of the proximal map, the same for all Gaussians of a row.

    There are few points, as a user's loss may cost much more than a density.
    """
    low, high = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
    # where t0 is nearly a function of tau, every Gaussian has its own points
    thin = ((high - low) > 10 * TAIL * sd)[:, 0]
    if thin.any() and mean.shape[1] > 1:
        averages = np.empty((3, *mean.shape))
        pieces = mean[thin].reshape(-1, 1), *(np.repeat(x[thin], mean.shape[1], 0) for x in (sd, V))
        averages[:, thin] = _by_points(quantity, loss, order, *pieces).reshape(3, -1, mean.shape[1])
        if not thin.all():
            joint = mean[~thin], sd[~thin], V[~thin]
            averages[:, ~thin] = _by_points(quantity, loss, order, *joint)
        return averages
    proximal_map = proximal_nodes(loss, V, low - TAIL * sd, high + TAIL * sd, sd, order)
    density = (proximal_map.t0 / sd)[..., None] - (mean / sd)[:, None]
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    values = averaged_values(quantity, loss, proximal_map) * (
        proximal_map.length / (np.sqrt(2 * np.pi) * sd)
    )
    return np.moveaxis(np.stack(values, axis=1) @ density, 1, 0)


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
    step_edges, values = labels.steps
    if labels.binary:
        y = np.array([1.0, -1.0])
        chances = (1 + y[:, None] * values) / 2
    else:
        y, value_index = np.unique(values, return_inverse=True)
        chances = (value_index == np.arange(y.size)[:, None]).astype(float)
    # every label with every component, K of them
    components = labels.variances.size
    y, chances = np.repeat(y, components)[:, None, None], np.repeat(chances, components, axis=0)
    variance, component_share = (np.resize(x, y.shape) for x in (labels.variances, labels.shares))
    sd, tau_rest = np.sqrt(field.variance + variance), np.sqrt(variance_given_tau(field) + variance)
    # t0 = label + sign omega
    label, sign = (0.0, y) if kind == "margin" else (y, np.full_like(y, -1.0))
    mean, pull = label + sign * field.centre, sign * field.tau_slope[..., 0]
    step_edges = np.where(np.abs(step_edges) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, step_edges)
    edge_array, rises = step_edges.T[:, None, None], np.diff(chances).T[..., None, None]
    law = StepLaw(chances[:, :1, None], rises, edge_array, pull / sd, tau_rest / sd)
    return StepLabels(component_share, sign, mean, sd, law)


def _step_label_averages(
    quantity: Averaged, labels: ConditionalLabels, loss: Loss, field: Field
) -> Array:
    """Averages given kappa for labels with steps: E s, -E s', E s^2 and E tau s, (4, P, N), or E t,
    E t^2 and E rho(t), (3, P, N)."""
    share, sign, mean, sd, law = own = step_labels(labels, loss.kind, field)
    if loss.pieces is None:
        values, tau_values = _steps_by_points(quantity, loss, labels.order, own, field)
    else:
        values = gaussian_averages(quantity, loss.pieces, mean, sd, field.response, law)
    if quantity == "residual":
        return np.asarray((share * values).sum(axis=1))
    signed = share * sign
    mean_score = (signed * values[0]).sum(axis=0)
    slope, square = ((share * x).sum(axis=0) for x in (-values[1], values[2]))
    if loss.pieces is None:
        tau_average = (signed * tau_values).sum(axis=0)
    else:
        at_edges = mean + sd * law.r * law.edges, sd * law.rest  # law of t0 given tau
        at_edge = gaussian_averages(quantity, loss.pieces, *at_edges, field.response)[0]
        jumps = (law.rises * signed * at_edge).sum(axis=1)
        tau_average = (gaussian_density(law.edges[:, 0]) * jumps).sum(axis=0)
        tau_average -= field.tau_slope[..., 0] * slope
    return np.stack([mean_score, slope, square, tau_average])


def _steps_by_points(
    quantity: Averaged, loss: Loss, order: int, step_law: StepLabels, field: Field
) -> tuple[Array, Array]:
    """Averages (3, K, P, N) of ``averaged_values`` for each label, and of tau times the first,
    (K, P, N), by points of the proximal map."""
    law = StepLaw(*(x[..., None] for x in step_law.law))
    mean, sd = step_law.mean[..., None], step_law.sd[..., None]
    sd = np.maximum(sd, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    V = np.broadcast_to(field.response[..., None], mean.shape)
    graph = proximal_nodes(loss, V, mean - TAIL * sd, mean + TAIL * sd, sd, order)
    z = (graph.t0 - mean) / sd
    probability, law_slope = law.first, np.zeros_like(z)
    for rise, edge in zip(law.rises, law.edges, strict=True):
        tau_in_sd = (law.r * z - edge) / law.rest  # tau given z, in standard deviations
        probability = probability + rise * ndtr(tau_in_sd)
        law_slope += rise * gaussian_density(tau_in_sd)
    values = averaged_values(quantity, loss, graph)
    graph_weight = gaussian_density(z) * graph.length / sd
    tau_average = values[0] * graph_weight * (law.r * z * probability + law.rest * law_slope)
    return (values * (graph_weight * probability)).sum(axis=-1), tau_average.sum(axis=-1)


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
    node_axes = labels.tau.shape[2]  # other components of tau are Gaussian: Eq. (19.4)
    gaussian_slopes, field = field.tau_slope[..., node_axes:], field.project_tau(node_axes)
    # as many pairs of a point and a kappa at once as have arrays that fit into the cache
    if by_label_steps := labels.steps is not None and not each_tau:
        width = labels.steps.values.size * labels.shares.size
    else:  # most components of Student's t take few nodes
        width = labels.weights.shape[1] * (1 + (labels.shares.size - 1) // 4)
    # a proximal map, of some 8 panels, does more work on an array
    map_count = 2**15 // width if loss.pieces is not None else 2**19 // (8 * labels.order * width)
    kappa_averages, kappa_block = [], max(1, map_count // points)
    for kappa_rows in (slice(i, i + kappa_block) for i in range(0, nodes, kappa_block)):
        check_time()
        own, field_block = labels.select(kappa_rows), field.select(kappa_rows)
        if by_label_steps:
            kappa_averages.append(_step_label_averages(quantity, own, loss, field_block))
            continue
        values = averages_given_tau(quantity, own, loss, field_block)
        if not each_tau:
            at_tau, values = values[0], np.einsum("xpnt,nt->xpn", values, own.weights)
        if not each_tau and quantity == "score":
            tau_score = np.einsum("pnt,ntk->kpn", at_tau, own.weights[..., None] * own.tau)
            values = np.concatenate([values, tau_score])
        kappa_averages.append(values)
    values = np.concatenate(kappa_averages, axis=2)
    if quantity == "residual" or each_tau or not gaussian_slopes.size:
        return values
    return np.concatenate([values, -np.moveaxis(gaussian_slopes, -1, 0) * values[1]])


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
    if labels.noise is not None and (missing := labels.noise.missing_moment(loss.growth[0])):
        test = test + loss.growth[1] * missing
    # in the tails differences of moments have an error below the rounding of the test loss
    train_loss = np.where((train_loss < 0) & (-train_loss < 1e-15 * np.abs(test)), 0.0, train_loss)
    # (y - f)^2 = t^2, or 1 - 2t + t^2 if t = y f
    squared_residuals = mean_t2 if loss.kind == "residual" else 1 - 2 * mean_t + mean_t2
    return {"train_loss": train_loss, "train_error": squared_residuals, "loss_error": test}

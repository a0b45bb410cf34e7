"""Law of the labels at the nodes of a ``Table``, on T nodes of tau, for (6.1)-(6.3).

At a node, tau ~ N(0, 1) in the q remaining directions of the target, and the target's arguments are
centre + L tau.  The integral over tau is split where the target jumps or has a kink.  Nothing here
depends on the unknowns: (tau, y) is tabulated once, and the local field is integrated afterwards,
given tau; for a piecewise quadratic loss exactly.  If E[y | z] is piecewise constant, as for a
sign, the law of (y, tau) given the local field has a closed form, and its steps are stored.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, gauss_legendre, trapezoid_tensor

from ..equivalence import Table, known_layers, tabulate, target_jumps
from ..problem import SIDES, LabelNoise, Model, Places

UNLIKELY = 64.0  # largest kappa^2 + tau^2: two Gaussians exceed it with probability 1e-14


# Sizes of the rules that all points of a model share, by level: trapezoidal nodes over kappa and
# tau; the same over each of several directions, by their number; nodes on each panel between the
# target's kinks, with the half width; nodes on each panel along a proximal map.
KAPPA_SIZES, TAU_SIZES = (24, 48, 96, 192, 384), (20, 26, 34, 46, 60)
TENSORS = {2: (12, 18, 27, 40, 60, 90), 3: (10, 15, 22, 33), 4: (8, 12, 18)}
PANEL_RULES = (9, 7.0), (11, 7.5), (13, 7.9), (16, 8.3), (20, 8.6)
PROXIMAL_ORDERS = (6, 7, 8, 10, 12)


class Steps(NamedTuple):
    """Piecewise constant E[y | z] as a function of tau: ``values`` (b + 1,) between jumps at
    ``edges`` (N, b)."""

    edges: Array
    values: Array


class ConditionalLabels(NamedTuple):
    """Law of the labels at each of N nodes.

    Attributes
    ----------
    tau, weights, mean : arrays (N, T, q), (N, T), (N, T)
        Nodes, weights that sum to 1, and E[y | z].  Labels +-1 are 1 with probability
        (1 + mean) / 2.
    variances, shares : arrays (M,)
        Variances and probabilities of the Gaussians in the mixture around the mean of real labels.
    binary : bool
        Whether labels are +-1.
    order : int
        Nodes of a panel along a proximal map, for losses that need it.
    noise : LabelNoise, optional
        Label noise that the mixture of Gaussians represents.
    steps : Steps, optional
        Steps of E[y | z], if it is piecewise constant and tau has one component.
    """

    tau: Array
    weights: Array
    mean: Array
    variances: Array
    shares: Array
    binary: bool
    order: int
    noise: LabelNoise | None = None
    steps: Steps | None = None

    def select(self, kappa_rows: slice) -> "ConditionalLabels":
        """Labels at some of the nodes."""
        tau, tau_weights, mean = (part[kappa_rows] for part in (self.tau, self.weights, self.mean))
        label_steps = self.steps and self.steps._replace(edges=self.steps.edges[kappa_rows])
        return self._replace(tau=tau, weights=tau_weights, mean=mean, steps=label_steps)


class LabelTable(NamedTuple):
    """Table of the features' moments, and the labels at the same nodes."""

    table: Table
    labels: ConditionalLabels


def has_jumps(model: Model) -> bool:
    """True if E[y | x] is piecewise constant, and tau has one component."""
    no_places = model.components.in_components(np.zeros((model.geometry.r.shape[1], 0)))
    return _label_steps(model, no_places) is not None


def has_panels(model: Model) -> bool:
    """True if panels can be fitted: for one spike, and at most one other target direction."""
    return model.geometry.r.shape[1] == 1 and model.components.tau_slopes.shape[2] <= 1


@lru_cache(maxsize=256)
def is_odd(model: Model) -> bool:
    """True if mean feature and mean label change sign with (kappa, tau), and nothing else changes:
    for a symmetric loss everything at -kappa then follows from kappa."""
    if model.train_bias or model.inputs is not None:  # at other biases the features are not odd
        return False
    rng, mean_label, count = np.random.default_rng(0), model.labels.mean, 200
    for reach in (2.0, 12.0):  # a function may be odd near 0 alone, or grow
        kappa = rng.uniform(-reach, reach, (count, model.geometry.r.shape[1]))
        opposite_rules = (Rule(x, np.ones(count)) for x in (kappa, -kappa))
        at, at_minus = (tabulate(model, rule, target=False) for rule in opposite_rules)
        z = rng.uniform(-reach, reach, (model.labels.target.dimension, count))
        for v, t in mean_label.planes:  # of kinks, tried on both sides
            if abs(t) < reach:
                beside = z[:, : SIDES.size]
                z = np.append(z, beside + np.outer(v, t + SIDES - v @ beside), axis=1)
        pairs = [(at.offsets, -at_minus.offsets), (at.loadings, -at_minus.loadings)]
        pairs += [(at.mu1, at_minus.mu1), (at.mu2sq, at_minus.mu2sq)]
        for a, mirrored in (*pairs, (mean_label(*z), -mean_label(*-z))):
            if not np.abs(a - mirrored).max() <= 1e-12 * np.abs(a).max(initial=1e-300):  # NaN too
                return False
    return True


def shared_tables(model: Model, folded: bool) -> Iterator[LabelTable]:
    """Iterate over the tables that all points of a model share, from coarse to fine, ``folded`` to
    half of kappa if the other half is the same.

    Tables whose nodes are too far apart for the known layers are left out.
    """
    for level in range(len(TENSORS.get(model.geometry.r.shape[1], KAPPA_SIZES))):
        if (table := shared_table(model, level, folded)) is not None:
            yield table


@lru_cache(maxsize=8)  # up to 100 MB each
def shared_table(model: Model, level: int, folded: bool) -> LabelTable | None:
    """Table of ``shared_tables`` of one level; None if its nodes are too far apart or too many."""
    spikes = model.geometry.r.shape[1]
    kappa, weights = trapezoid_tensor(_at_level(TENSORS.get(spikes, KAPPA_SIZES), level), spikes)
    if folded:  # an odd number of nodes has a plane kappa_1 = 0, which is its own mirror image
        half = kappa[:, 0] > -1e-9
        kappa, weights = kappa[half], np.where(kappa[half, 0] > 1e-9, 2, 1) * weights[half]
    if spikes == 1:
        layer_widths = [width for _, width in known_layers(model)]
        if target_jumps(model) or kappa[1, 0] - kappa[0, 0] > 2 * min(layer_widths, default=np.inf):
            return None
        kappa = kappa[:, 0]
    feature_table = tabulate(model, Rule(kappa, weights))
    over_tau = tau_rule(model, feature_table.places, level)
    if over_tau.weights.size > 3 * 2**20:  # one evaluation takes 300 ms
        return None
    order = _at_level(PROXIMAL_ORDERS, level)
    return LabelTable(feature_table, labels_at(model, feature_table.places, over_tau, order))


def labels_at(model: Model, places: Places, over_tau: Rule, order: int) -> ConditionalLabels:
    """Labels at N places, on nodes ``over_tau`` (N, T, q) with weights (N, T), with ``order`` nodes
    of a panel along a proximal map."""
    label_law = model.labels
    noise_variances, noise_shares = np.array(label_law.gaussians).T
    # real targets may grow: nodes where z and tau are unlikely together have weight 0
    tau, tau_weights = over_tau
    likely_nodes = (places.z**2).sum(axis=0)[:, None] + (tau**2).sum(axis=-1) < UNLIKELY
    likely_nodes |= label_law.binary
    tau = np.where(likely_nodes[..., None], tau, 0.0)
    tau_weights = np.where(likely_nodes, tau_weights, 0.0)
    mean = model.components.mean_label(label_law.combined_mean, places, np.moveaxis(tau, 2, 0))
    law_parts = tau, tau_weights, mean, noise_variances, noise_shares, label_law.binary, order
    return ConditionalLabels(*law_parts, noise=label_law.added, steps=_label_steps(model, places))


def tau_rule(model: Model, places: Places, level: int) -> Rule:
    """Rule over tau at N places: nodes (N, T, q) and weights (N, T)."""
    inputs, mean_label, N = model.components, model.labels.combined_mean, len(places.component)
    tau_slopes, tau_count = inputs.tau_slopes, inputs.tau_slopes.shape[2]
    if not tau_slopes.any():
        return Rule(np.zeros((N, 1, tau_count)), np.ones((N, 1)))
    if tau_count == 1 and mean_label.planes:
        panel_nodes, half_width = _at_level(PANEL_RULES, level)
        panel_rule = gauss_legendre(panel_nodes, tau_kinks(model, places), half_width, panel=5.7)
        return Rule(panel_rule.nodes[..., None], panel_rule.weights)
    if not mean_label.planes:
        rule = trapezoid_tensor(_at_level(TENSORS.get(tau_count, TAU_SIZES), level), tau_count)
        return Rule(*(np.broadcast_to(rule_part, (N, *rule_part.shape)) for rule_part in rule))
    of_component = [places.component == component for component in np.unique(places.component)]
    centres = [inputs.mean_arguments(places.subset(in_component)) for in_component in of_component]
    component_rules = [
        _at_level([*mean_label.rules(tau_slopes[places.component[in_component][0]])], level)(centre)
        for in_component, centre in zip(of_component, centres, strict=True)
    ]
    node_count = max(component_rule.weights.shape[-1] for component_rule in component_rules)
    tau_nodes, tau_weights = np.zeros((N, node_count, tau_count)), np.zeros((N, node_count))
    for in_component, component_rule in zip(of_component, component_rules, strict=True):
        tau_nodes[in_component, : component_rule.weights.shape[-1]] = component_rule.nodes
        tau_weights[in_component, : component_rule.weights.shape[-1]] = component_rule.weights
    return Rule(tau_nodes, tau_weights)


def tau_kinks(model: Model, places: Places) -> Array:
    """Kinks of the mean label in tau, which has one component, at N places: (N, b)."""
    inputs, label_planes = model.components, model.labels.combined_mean.planes
    if not label_planes:
        return np.empty((len(places.component), 0))
    normals, kink_offsets = map(np.array, zip(*label_planes, strict=True))
    rest, slope = np.abs(inputs.tau_slopes[..., 0]), inputs.tau_slopes[..., 0] @ normals.T
    slope = np.where(np.abs(slope) > 1e-12 * rest @ np.abs(normals.T), slope, 0.0)[places.component]
    kink_distance, crossed = kink_offsets - inputs.mean_arguments(places).T @ normals.T, slope != 0
    # if the target does not vary across a plane for a component, the kink is beyond all nodes
    beyond_nodes = np.copysign(1e3, kink_distance)
    return np.where(crossed, kink_distance / np.where(crossed, slope, 1.0), beyond_nodes)


def _at_level(level_sizes: Sequence[Any], level: int) -> Any:
    """Entry of a ``level``, or the last entry beyond."""
    return level_sizes[min(level, len(level_sizes) - 1)]


def _label_steps(model: Model, places: Places) -> Steps | None:
    """Steps at N places of a mean label that is constant between its kinks, otherwise None."""
    mean_label = model.labels.combined_mean
    if not (mean_label.kinks and model.components.tau_slopes.any()):
        return None
    jumps = np.asarray(mean_label.kinks)
    # arguments further out have probability 1e-38
    kink_ends = np.concatenate([[min(-13.0, jumps[0] - 1)], jumps, [max(13.0, jumps[-1] + 1)]])
    inside_steps = np.linspace(0, 1, 18)[1:-1]
    step_values = mean_label(kink_ends[:-1, None] + np.diff(kink_ends)[:, None] * inside_steps)
    if np.ptp(step_values, axis=1).any():
        return None
    return Steps(tau_kinks(model, places), step_values[:, 0])

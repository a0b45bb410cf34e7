"""Residuals rho = y - mu_0(kappa) of a batch: their law given kappa, by rules and panels of tau.
docs/theory.md 16, 18

At every kappa, E[y | z] - mu_0 is integrated over the rest tau of the target's arguments, on nested
panels that are halved until averages converge.  The values are then interpolated to nodes shared by
all kappa (``residual_interpolation``), together with the moments of the input along the directions
known to labels.  This is done in blocks, as there may be millions of nodes of tau.

Panels in the first coordinate of tau have, at each of their nodes, panels in the second, and so on.
"""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive_panels import KRONROD_NODES, Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, gaussian_density, trapezoid_tensor

from ..problem import Components, GaussianMixture, LabelLaw
from .residual_interpolation import Block, on_few_nodes
from .step_fields import Step

SHORT = 1e-7  # shorter projections of unit vectors are rounding
FIRST_ENDS = np.array([-9.2, -6.0, -3.0, 0.0, 3.0, 6.0, 9.2])  # ends of the initial panels

# Nodes: sorted places (n,), tau (q, n) and weights (n,).
TauNodes = tuple[NDArray[np.int64], Array, Array]


class NestedPanels(NamedTuple):
    """Averages (k, M) over tau at M places, on nested panels.

    Attributes
    ----------
    averages : callable (z (T, n, 15), owner (n,)) -> (k, n, 15)
        Function to average, with kinks at the planes of the target of ``labels``.
    owner : (M,)
        Indices of the places, passed to ``averages``.
    centre, L : (T, M), (T, q)
        The arguments of the target are z = centre + L tau.
    tol : (M,)
    """

    averages: Callable[[Array, NDArray[np.int64]], Array]
    labels: LabelLaw
    owner: NDArray[np.int64]
    centre: Array
    L: Array
    tol: Array

    def nested_at(self, panels: Panels) -> "NestedPanels":
        """Nested averages over the other coordinates at every node of ``panels`` of the first.

        The tolerance is inversely proportional to the Gaussian weight of the node.
        """
        node_owner = np.repeat(panels.owner, KRONROD_NODES.size)
        centre = self.centre[:, node_owner] + self.L[:, :1] * panels.nodes.ravel()
        tol = 0.01 * self.tol[node_owner] / gaussian_density(panels.nodes.ravel())
        return self._replace(owner=self.owner[node_owner], centre=centre, L=self.L[:, 1:], tol=tol)

    def adapted(self) -> tuple[Panels, Array]:
        """Adapted panels of the first coordinate of tau, and the averages."""
        tau_slope, other_slopes, place_centre = self.L[:, 0], self.L[:, 1:], self.centre

        def tau_means(panels: Panels) -> Array:
            if other_slopes.size:
                return self.nested_at(panels).adapted()[1].reshape(-1, *panels.nodes.shape)
            z = place_centre[:, panels.owner, None] + tau_slope[:, None, None] * panels.nodes
            return self.averages(z, self.owner[panels.owner])

        tau_breaks = np.broadcast_to(FIRST_ENDS, (place_centre.shape[1], len(FIRST_ENDS)))
        # planes whose position does not depend on the other coordinates
        target_planes = [(np.array(v), t) for v, t in self.labels.combined_mean.planes]
        kink_planes = [
            (v, t) for v, t in target_planes if not (np.abs(v @ other_slopes) > SHORT).any()
        ]
        kink_planes = [(v, t) for v, t in kink_planes if abs(v @ tau_slope) > SHORT]
        kink_places = [((t - v @ place_centre) / (v @ tau_slope))[:, None] for v, t in kink_planes]
        tau_breaks = np.concatenate([tau_breaks, *kink_places], axis=1).clip(
            FIRST_ENDS[0], FIRST_ENDS[-1]
        )
        tau_panels = panels_between(np.sort(tau_breaks, axis=1))
        most_panels = 2**20  # in one coordinate of tau, at all places together: 100 MB
        adapted = halve_panels(tau_means, tau_panels, self.tol, most_panels, self.panels_at_once)
        if adapted is None:
            batch_text = f"the averages over the batch of a step: target {self.labels.target.name}"
            varying_output = "less the network's output varies too quickly to settle"
            raise QuadratureError(f"{batch_text} {varying_output}")
        return adapted

    def nodes(self, panels: Panels) -> Iterator[TauNodes]:
        """Nodes of Kronrod's rule on ``panels`` of the first coordinate and the panels within."""
        weights, panel_block = panels.weights, self.panels_at_once
        for panel_slice in (slice(k, k + panel_block) for k in range(0, len(weights), panel_block)):
            block_panels = panels.select(panel_slice)
            node_owner = np.repeat(block_panels.owner, KRONROD_NODES.size)
            panel_tau = block_panels.nodes.ravel()
            node_weights = weights[panel_slice].ravel()
            if self.L.shape[1] == 1:
                yield node_owner, panel_tau[None], node_weights
                continue
            inner_panels = self.nested_at(block_panels)
            for outer_node, other_tau, tau_weight in inner_panels.nodes(inner_panels.adapted()[0]):
                all_tau = np.concatenate([panel_tau[None, outer_node], other_tau])
                yield node_owner[outer_node], all_tau, node_weights[outer_node] * tau_weight

    @property
    def panels_at_once(self) -> int:
        """Number of panels of the first coordinate in a block: of the innermost coordinate as many
        as fit in the processor's cache."""
        return 64 if self.L.shape[1] > 1 else 2**10


class ResidualLaw(NamedTuple):
    """The law of rho given kappa.

    Attributes
    ----------
    rho : (N, m), or (1, m) for all kappa
    weights : (D + 1, D + 1, N, m)
        Weights of E x_a x_b f(rho), x = (1, projections).
    """

    rho: Array
    weights: Array


class KnownInputs(NamedTuple):
    """Inputs of the batch of a step on the directions known to labels, given kappa = u . x.

    Attributes
    ----------
    mixture : GaussianMixture or None
    components : Components
        Components of the law on u and zeta; with u, zeta spans the D coordinates known to labels.
    known : (D or D + 1, S)
        These coordinates, and the part of u outside them if there is one, in the basis u, zeta.
    """

    mixture: GaussianMixture | None
    components: Components
    known: Array


def known_inputs(step: Step, t: int, spike_unit: Array) -> KnownInputs:
    """Known inputs of the batch of step t, for a spike along ``spike_unit``.

    The first D coordinates of ``spike_unit`` are coordinates of the inputs.
    """
    D, outside_length = step.known_dimension, np.linalg.norm(spike_unit[step.known_dimension :])
    spike_cosines = spike_unit[:D, None]
    u_components = Components.from_law(step.inputs, spike_cosines, step.labels_at(t).combinations)
    basis = u_components.basis
    if outside_length > SHORT:  # u has a part outside the D coordinates
        u_outside = np.append(outside_length, -spike_cosines[:, 0] @ basis[:, 1:] / outside_length)
        basis = np.vstack([basis, u_outside])
    return KnownInputs(step.inputs, u_components, basis)


def law_of_residuals(
    labels: LabelLaw, inputs: KnownInputs, rule: Rule, offset: Array, root: float, level: int
) -> ResidualLaw:
    """The law of rho = y - ``offset`` at the N nodes of ``rule`` for z in all components.
    Eq. (19.5)

    ``offset`` is (N,) or (1,).  Averages vary with rho on the scale 1 / root: the pencil contains
    1 / (1 + x root^2 rho^2), x <= 1.

    Raises
    ------
    QuadratureError
        If the target varies too quickly.
    """
    components = inputs.components
    label_places, place_weights = components.places_and_weights(rule)
    offset = np.broadcast_to(offset, place_weights.shape)
    label_power, tau_count = labels.averages(inputs.mixture).power, components.tau_slopes.shape[2]
    # mean label if the target does not depend on tau
    no_tau = np.zeros((tau_count, *place_weights.shape, 1))
    mean_labels = components.mean_label(labels.combined_mean, label_places, no_tau)[:, 0]
    component_rules = []
    for j, L in enumerate(components.tau_slopes):
        members = np.flatnonzero(label_places.component == j)
        centre, L = components.mean_arguments(label_places.subset(members)), L[:, L.any(axis=0)]
        at_places = LabelsAtPlaces(
            labels, label_power, centre, L, mean_labels[members], offset[members], root
        )
        component_rules.append((members, at_places, _tau_rule(at_places, level)))

    known_means = inputs.known @ components.projection_means(label_places)
    projection_means = np.concatenate([np.ones((1, len(place_weights))), known_means])
    row_index, second_projection = np.triu_indices(len(projection_means))
    # means and covariances of the other directions given tau
    known_slopes = inputs.known @ components.root
    independent_tau = np.ones((len(known_slopes), 1, known_slopes.shape[2]))
    independent_tau[:, 0, :tau_count] = ~components.tau_slopes.any(axis=1)
    known_covariance = (known_slopes * independent_tau) @ known_slopes.swapaxes(1, 2)
    known_covariance = np.pad(known_covariance, [(0, 0), (1, 0), (1, 0)])[
        :, row_index, second_projection
    ]

    def rho_blocks() -> Iterator[Block]:
        for j, (members, at_places, (*_, tau_nodes)) in enumerate(component_rules):
            tau_slope = known_slopes[j][:, :tau_count][:, components.tau_slopes[j].any(axis=0)]
            for member_index, tau, tau_weight in tau_nodes:
                check_time()
                known_projections = projection_means[:, members[member_index]]
                known_projections[1:] += tau_slope @ tau
                moments = known_projections[row_index] * known_projections[second_projection]
                moments += known_covariance[j][:, None]
                moments *= place_weights[members[member_index]] * tau_weight
                yield Block(members[member_index], at_places.residual(member_index, tau), moments)

    lows, highs, _ = zip(*(tau_rule for *_, tau_rule in component_rules), strict=True)
    y_noisy = any(variance for variance, _ in labels.gaussians)
    rho_ends = None if not components.tau_slopes.any() and not y_noisy else (min(lows), max(highs))
    rho, moments = on_few_nodes(labels, offset, rho_ends, rho_blocks(), len(row_index), root, level)
    moments_x = np.empty((len(projection_means), len(projection_means), *moments.shape[1:]))
    moments_x[row_index, second_projection] = moments_x[second_projection, row_index] = moments
    return ResidualLaw(rho, moments_x)


class LabelsAtPlaces(NamedTuple):
    """Labels at N places of one component of the inputs.

    Attributes
    ----------
    labels : LabelLaw
    power : float
        E y^2.
    centre, L : (T, N), (T, q)
        The arguments of the target are centre + L tau.
    mean_without_tau : (N,)
        E[y | z] if there is no tau.
    offset : (N,)
        Output that the residual subtracts.
    root : float
        Averages vary with rho on the scale 1 / root.
    """

    labels: LabelLaw
    power: float
    centre: Array
    L: Array
    mean_without_tau: Array
    offset: Array
    root: float

    def residual(self, place_index: NDArray[np.int64], tau: Array) -> Array:
        """E[y | z] - offset at n of the places, with tau (q, n)."""
        if not self.L.shape[1]:
            return np.asarray(self.mean_without_tau[place_index] - self.offset[place_index])
        mean_label = self.labels.combined_mean(*(self.centre[:, place_index] + self.L @ tau))
        return np.asarray(mean_label - self.offset[place_index])


class TauRule(NamedTuple):
    """Nodes of tau at all places, in blocks, and the smallest and largest residual on them."""

    low: float
    high: float
    nodes: Iterator[TauNodes]


def _tau_rule(placed_labels: LabelsAtPlaces, level: int) -> TauRule:
    """Nodes of tau for a ``level`` of refinement.

    One direction of tau is integrated on panels.  Several are integrated by the target's own rules,
    while these have at most 128 nodes a direction, then on panels.
    """
    tau_count = placed_labels.L.shape[1]
    if not tau_count:
        return _nodes_by_rule(placed_labels, lambda centre: Rule(np.zeros((1, 0)), np.ones(1)))
    if tau_count == 1:
        return _nodes_on_panels(placed_labels, 10.0 ** -min(8 + level, 13))
    # panels need at most 128 nodes a direction
    tau_rules = takewhile(
        lambda tau_rule: tau_rule(placed_labels.centre[:, :1]).weights.shape[-1] <= 128**tau_count,
        placed_labels.labels.combined_mean.rules(placed_labels.L),
    )
    coarse_rules = list(islice(tau_rules, level + 1))
    if len(coarse_rules) > level:
        return _nodes_by_rule(placed_labels, coarse_rules[level])
    # tolerance for Gauss's rule; Kronrod's rule, which is used, is far more accurate
    return _nodes_on_panels(placed_labels, 10.0 ** -min(6 + level - len(coarse_rules), 8))


def _nodes_by_rule(at_places: LabelsAtPlaces, rule_at: Callable[[Array], Rule]) -> TauRule:
    """Nodes of tau by a fixed rule at every place; ``rule_at`` returns the rules at some
    ``centre``, or a single one for all."""
    tau_block = 2**14  # nodes of tau in a block, which fits in the processor's cache
    place_count, M = at_places.centre.shape[1], rule_at(at_places.centre[:, :1]).weights.shape[-1]
    place_block = max(1, tau_block // M)

    def nodes_of_tau() -> Iterator[TauNodes]:
        for index in np.split(np.arange(place_count), range(place_block, place_count, place_block)):
            tau, tau_weights = rule_at(at_places.centre[:, index])
            tau = np.broadcast_to(tau, (len(index), *tau.shape[-2:]))
            tau_weights = np.broadcast_to(tau_weights, (len(index), M))
            for tau_columns in (slice(k, k + tau_block) for k in range(0, M, tau_block)):
                block_weights = tau_weights[:, tau_columns]
                block_tau = tau[:, tau_columns].reshape(block_weights.size, tau.shape[2]).T
                yield np.repeat(index, block_weights.shape[1]), block_tau, block_weights.ravel()

    lowest_rho, highest_rho = np.inf, -np.inf
    for place_index, tau, _ in nodes_of_tau():
        check_time()
        rho = at_places.residual(place_index, tau)
        lowest_rho, highest_rho = min(lowest_rho, rho.min()), max(highest_rho, rho.max())
    return TauRule(lowest_rho, highest_rho, nodes_of_tau())


def _nodes_on_panels(at_places: LabelsAtPlaces, tol: float) -> TauRule:
    """Nodes of tau on panels that are halved until averages converge to ``tol``."""
    batch_labels, output_offset = at_places.labels, at_places.offset
    least_noise = min(variance for variance, _ in batch_labels.gaussians)
    root = at_places.root / np.sqrt(1 + at_places.root**2 * least_noise)  # noise smooths averages
    # the tolerance is relative to the moments, which are large in the tails of growing labels
    coarse_rule, rho_4 = trapezoid_tensor(24, at_places.L.shape[1]), np.zeros(len(output_offset))
    for index, tau, tau_weights in _nodes_by_rule(at_places, lambda centre: coarse_rule).nodes:
        rho_4 += np.bincount(
            index, tau_weights * at_places.residual(index, tau) ** 4, len(output_offset)
        )
    residual_size = np.maximum(np.sqrt(at_places.power) + np.abs(output_offset).max(), rho_4**0.25)
    lowest_rho, highest_rho = np.inf, -np.inf

    def rho_means(label_arguments: Array, rho_owner: NDArray[np.int64]) -> Array:
        """Functions whose averages over tau decide on the panels: functions of rho as smooth as the
        pencil's, and moments of rho."""
        nonlocal lowest_rho, highest_rho
        rho = batch_labels.combined_mean(*label_arguments) - output_offset[rho_owner, None]
        lowest_rho, highest_rho = min(lowest_rho, rho.min()), max(highest_rho, rho.max())
        pencil_term, rho2 = 1 / (1 + (root * rho) ** 2), (rho / residual_size[rho_owner, None]) ** 2
        return np.stack([pencil_term, root * rho * pencil_term, rho2, rho2**2])

    all_places = np.arange(len(output_offset))
    rho_tols = np.full(len(output_offset), tol)
    nested_panels = NestedPanels(
        rho_means, batch_labels, all_places, at_places.centre, at_places.L, rho_tols
    )
    tau_panels, _ = nested_panels.adapted()
    return TauRule(lowest_rho, highest_rho, nested_panels.nodes(tau_panels))

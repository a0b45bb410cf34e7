"""Adaptive panels over kappa, and over tau at each kappa, fitted to the overlaps of some points.

Given kappa and tau the prediction is a Gaussian whose standard deviation may be as small as 1 /
lambda.  Where it passes a kink of the loss, or an edge between two labels, the averages of
(6.2)-(6.3) and the loss on new samples vary on this scale.  At overlaps near the solution, panels
are halved until Gauss's and Kronrod's rules agree on all of these (``solvers.adaptive_panels``),
over tau at every kappa, and over kappa.  The equations are then solved on these nodes.
docs/theory.md 6
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive_panels import (
    GAUSS_WEIGHTS,
    KRONROD_NODES,
    Panels,
    halve_panels,
    panels_between,
)
from solvers.resources import GivenUp
from solvers.results import Array, Status
from solvers.rules import Rule, gaussian_density

from ..equivalence import Table, known_layers, tabulate, tabulate_at
from ..problem import Model, Places
from ..saddle_point import Field, Overlaps, field_at_nodes, responses_of
from .averages import average, scores
from .equations import Coordinates, Task
from .label_tables import (
    UNLIKELY,
    ConditionalLabels,
    LabelTable,
    has_jumps,
    labels_at,
    tau_kinks,
    tau_rule,
)

REACH = 7.5  # largest kappa: the Gaussian weight beyond is 1e-13
MOST_NODES = 2**20  # of kappa and tau together; a pass over them takes some .2 s


def fitted_table(task: Task, overlaps: Overlaps, accuracy: float, order: int) -> LabelTable:
    """Table and labels on panels fitted to ``overlaps`` (P, ...) near the points of a task.

    Gauss's rule on the panels gives averages over kappa and tau to the relative ``accuracy``.  A
    panel along a proximal map has ``order`` nodes.  Raises ``GivenUp`` if the computation takes too
    long or too many nodes.
    """
    model = task.model
    panel_places, panel_weights, over_tau = fitted_rules(task, overlaps, accuracy, order)
    # averages over tau need no nodes if labels are steps
    node_count = (panel_weights if has_jumps(model) else over_tau.weights).size
    if node_count * len(task.alpha) > MOST_NODES:
        raise GivenUp(Status.MEMORY)
    panel_table = tabulate_at(model, panel_places, panel_weights)
    return LabelTable(panel_table, labels_at(model, panel_places, over_tau, order))


def average_over_tau(
    model: Model,
    places: Places,
    values: Callable[[ConditionalLabels, NDArray[np.int64]], Array],
    tol: Array,
    order: int,
) -> tuple[Panels, Array] | None:
    """Panels over tau at N places, and averages (k, N) of ``values`` on them to tolerances ``tol``
    (N,).

    ``values`` maps labels at the nodes of n panels, and the indices of their places, to an array
    (k, n, 15).  None if the panels are too many.
    """

    def values_on_panels(panels: Panels) -> Array:
        panel_tau = panels.nodes
        rule = Rule(panel_tau[..., None], np.ones_like(panel_tau))
        return values(labels_at(model, places.subset(panels.owner), rule, order), panels.owner)

    # panels end at the target's kinks
    tau_reach = np.sqrt(np.maximum(UNLIKELY - places.z[0] ** 2, 1.0))[:, None]
    even_breaks = tau_reach * np.linspace(-1, 1, 9)
    tau_breaks = np.clip(tau_kinks(model, places), -tau_reach, tau_reach)
    tau_panels = panels_between(np.sort(np.concatenate([even_breaks, tau_breaks], axis=1), axis=1))
    return halve_panels(values_on_panels, tau_panels, tol, MOST_NODES // KRONROD_NODES.size)


def fitted_rules(
    task: Task, overlaps: Overlaps, accuracy: float, order: int
) -> tuple[Places, Array, Rule]:
    """Fitted rule: N places, their weights (N,), and a rule over tau at each, (N, T, 1) and
    (N, T)."""
    tau_level = 2  # level of rules over tau where panels over tau are not needed
    model, loss = task.model, task.loss
    first_panels = initial_panels(model, task.folded)
    tau_ends: dict[tuple[int, float], tuple[Array, Array]] = {}  # ends of panels over tau, by place
    inputs = model.components
    closed_form = has_jumps(model) or not inputs.tau_slopes.any()

    def field_on_panels(panels: Panels) -> tuple[Table, Field]:
        """Table of the features' moments at the nodes of ``panels``, and the local field."""
        panel_nodes = panels.nodes.ravel()
        table = tabulate(model, Rule(panel_nodes, np.ones_like(panel_nodes)), target=False)
        return table, field_at_nodes(responses_of(table), overlaps).project_tau(1)

    def given_kappa(table: Table, panel_field: Field) -> Array:
        """Averages given kappa, (5, P, N): E s, -E s', E s^2, E[tau s - P s'] and the loss on a new
        sample.  They are closed forms for labels that are steps, sums over tau otherwise."""
        labels = labels_at(model, table.places, tau_rule(model, table.places, tau_level), order)
        s = scores(labels, loss, panel_field)
        new_loss = average("residual", labels, loss, panel_field.for_new_samples)[2]
        return np.stack([s.mean, s.slope, s.square, s.p_hat_term(panel_field)[..., 0], new_loss])

    def over_tau(places: Places, panel_field: Field, factors: Array) -> Array:
        """Averages given kappa times ``factors``, on panels over tau fitted at each of N places."""

        def at_nodes(labels: ConditionalLabels, owner: NDArray[np.int64]) -> Array:
            local, tau = panel_field.select(owner), labels.tau[..., 0]
            s, slope, square = average("score", labels, loss, local, each_tau=True)
            new_loss = average("residual", labels, loss, local.for_new_samples, each_tau=True)[2]
            tau_sums = np.stack([s, slope, square, tau * s + local.tau_slope * slope, new_loss])
            tau_sums *= labels.weights * factors[:, :, owner, None]
            return tau_sums.reshape(-1, *tau.shape)

        # an error at one place may occur at all places
        tol = accuracy / (2 * REACH) / gaussian_density(places.z[0])
        panels, tau_sums = _require_panels(average_over_tau(model, places, at_nodes, tol, order))
        place_splits = np.cumsum(np.bincount(panels.owner))[:-1]
        panel_ends = (np.split(x, place_splits) for x in (panels.low, panels.high))
        tau_ends.update(zip(_place_keys(places), zip(*panel_ends, strict=True), strict=True))
        return tau_sums

    def panel_sums(panels: Panels) -> Array:
        is_first = panels is first_panels
        table, panel_field = first_pair if is_first else field_on_panels(panels)
        factors = bounds(table) / value_units
        if not closed_form:
            averages = over_tau(table.places, panel_field, factors)
        else:
            averages = (first_averages if is_first else given_kappa(table, panel_field)) * factors
        panel_terms = (averages * table.weights).reshape(-1, len(inputs.shares), panels.nodes.size)
        return panel_terms.sum(axis=1).reshape(-1, *panels.nodes.shape)

    first_pair = field_on_panels(first_panels)
    first_averages = given_kappa(*first_pair)
    weights = inputs.weights_in_components(first_panels.rule().weights[0])
    table = first_pair[0].select_nodes(slice(None), weights)
    bounds = _factor_bounds(table)
    value_units, jump_accuracy = _value_scales(first_averages * bounds(table), table, first_pair[1])
    # averages over tau, which blur a jump more, need no such accuracy
    accuracy = min(accuracy, jump_accuracy) if closed_form else accuracy
    panels, _ = _require_panels(halve_panels(panel_sums, first_panels, accuracy, max_panels=400))
    kappa_rule = Rule(*(panel_part[0] for panel_part in panels.rule(GAUSS_WEIGHTS)))
    panel_places, panel_weights = inputs.places_and_weights(kappa_rule)
    if closed_form:
        return panel_places, panel_weights, tau_rule(model, panel_places, tau_level)
    tau_low, high = zip(*(tau_ends[place] for place in _place_keys(panel_places)), strict=True)
    owner = np.repeat(np.arange(len(tau_low)), [panel_part.size for panel_part in tau_low])
    tau, weights = Panels(owner, np.concatenate(tau_low), np.concatenate(high)).rule(GAUSS_WEIGHTS)
    return panel_places, panel_weights, Rule(tau[..., None], weights)


def _factor_bounds(first_table: Table) -> Callable[[Table], Array]:
    """Function of a table with smooth bounds (5, 1, N) on the factors of E s, -E s', E s^2 and
    E[tau s - P s'] in (6.2)-(6.3), and 1 for the loss.

    Units are the averages of the factors on the ``first_table`` table.
    """
    combine = Coordinates(first_table).combine
    loading_size = np.maximum((first_table.loadings**2) @ first_table.weights, 1e-300)[..., None]

    def feature_power_at(table: Table) -> Array:
        return np.asarray(table.fractions @ (table.mu1**2 + table.mu2sq))

    feature_power = float(feature_power_at(first_table) @ first_table.weights) or 1.0

    def bounds(table: Table) -> Array:
        offsets = ((combine.T @ table.offsets) ** 2).sum(axis=0)
        loadings = (table.loadings**2 / loading_size).sum(axis=(0, 1))
        power_ratio = feature_power_at(table) / feature_power
        factors = [(1 + offsets + loadings) / 2, power_ratio, power_ratio, (1 + power_ratio) / 2]
        return np.stack([*factors, np.ones_like(power_ratio)])[:, None]

    return bounds


def _value_scales(panel_values: Array, table: Table, field: Field) -> tuple[Array, float]:
    """Scales (5, P, 1) of the ``panel_values`` (5, P, N), by their averages over kappa; and the
    accuracy at which nodes resolve a blurred jump of E s: the standard deviation of predictions
    given kappa, relative to their size.
    """
    sizes = np.abs(panel_values) @ table.weights
    mean_variance, mean_square = field.variance @ table.weights, field.centre**2 @ table.weights
    prediction_size = np.sqrt(mean_variance + mean_square)  # of predictions
    # nodes that do not resolve a blurred jump of E s do not resolve its slope E s'
    jump_accuracy = np.clip(np.sqrt(mean_variance) / prediction_size, 1e-9, 1).min()
    # Layers between the nodes may contain most of E s^2, and all of E s'.  The scales are therefore
    # at least fractions of the values for which training changes every prediction by its size.
    root = np.maximum(np.sqrt(sizes[2]), 1e-6 * prediction_size / (field.response @ table.weights))
    slope_size = np.maximum(sizes[1], 1e-2 * root / prediction_size)
    new_loss = np.maximum(sizes[4], 1e-300)
    return np.stack([root, slope_size, root**2, root, new_loss])[..., None], float(jump_accuracy)


def initial_panels(model: Model, folded: bool) -> Panels:
    """Initial panels over kappa, for one integral, with ends at the known layers; over kappa > 0
    where they are ``folded``."""
    layers = [layer_place for layer_place, _ in known_layers(model) if abs(layer_place) < REACH]
    panel_ends = (1.0, 2.0, 3.0, 5.0, REACH)
    panel_breaks = np.unique([0.0, *panel_ends, *(-end for end in panel_ends), *layers])
    return panels_between(panel_breaks[None, panel_breaks >= 0] if folded else panel_breaks[None])


def _place_keys(places: Places) -> list[tuple[int, float]]:
    """Pairs of component and z of places, for one spike."""
    return list(zip(places.component.tolist(), places.z[0].tolist(), strict=True))


def _require_panels(panels_and_averages: tuple[Panels, Array] | None) -> tuple[Panels, Array]:
    """Result of ``halve_panels``; raises ``GivenUp`` if it needs too many panels."""
    if panels_and_averages is None:
        raise GivenUp(Status.MEMORY)
    return panels_and_averages

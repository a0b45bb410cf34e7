"""Classification error P(y f < 0) of labels +-1 on new samples.

Given kappa, or kappa and tau, the probability has a closed form.  As a function of kappa it varies
quickly where C changes sign, in a layer as thin as the standard deviation of the prediction.  The
tables that all points share resolve most layers; for the others panels are halved until they do.
"""

from collections.abc import Iterable

import numpy as np
from scipy.special import ndtr

from solvers.adaptive_panels import KRONROD_NODES, Panels, halve_panels, panels_between
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, gaussian_density

from ..equivalence import tabulate
from ..problem import Model, Places
from ..saddle_point import Field, Overlaps, field_at_nodes, responses_of, variance_given_tau
from .averages import step_labels
from .label_tables import (
    ConditionalLabels,
    LabelTable,
    has_jumps,
    is_odd,
    labels_at,
    shared_tables,
    tau_rule,
)
from .panels import average_over_tau

BLOCK_SIZE = 2**18  # points or places, times the nodes of each


def classification_error(model: Model, overlaps: Overlaps, tol: float) -> Array:
    """Classification error for readouts with these overlaps, (P,), to the absolute error ``tol``.

    NaN unless labels are +-1, and where neither tables nor panels resolve it.
    """
    settled_errors = np.full(len(overlaps.V2), np.nan)
    if not model.labels.binary:
        return settled_errors
    one_spike, several_tau = len(model.geometry.r[0]) == 1, model.components.tau_slopes.shape[2] > 1
    for point_block in (slice(i, i + 16) for i in range(0, len(settled_errors), 16)):
        part = Overlaps(*(x[point_block] for x in overlaps))
        if one_spike and several_tau:  # tables would have too many nodes
            class_errors = (_error_on_panels(model, part, tol, level) for level in range(5))
            settled_errors[point_block] = _settled_value(class_errors, len(part.V2), tol)
            continue
        class_errors = (_error_on_table(x, part) for x in shared_tables(model, is_odd(model)))
        # beside panels, only tables that agree far more closely than is asked for: where they miss
        # a layer they differ by the kink or the jump that it leaves
        table_error = _settled_value(class_errors, len(part.V2), 1e-2 * tol if one_spike else tol)
        if one_spike and (rest := np.isnan(table_error)).any():
            table_error[rest] = _error_on_panels(model, Overlaps(*(x[rest] for x in part)), tol)
        settled_errors[point_block] = table_error
    return settled_errors


def _error_on_panels(model: Model, overlaps: Overlaps, tol: float, level: int = 0) -> Array:
    """Classification error of a few points, (P,), each on its own panels over kappa.

    ``level`` is the level of the rule over several components of tau.
    """

    def panel_values(panels: Panels) -> Array:
        panel_z = panels.nodes.ravel()
        table = tabulate(model, Rule(panel_z, np.ones_like(panel_z)), target=False)
        owner = np.tile(np.repeat(panels.owner, KRONROD_NODES.size), len(model.components.shares))
        field = field_at_nodes(responses_of(table), overlaps, owner)
        field = field.project_tau(model.components.tau_slopes.shape[2])
        negative_output = ndtr(-field.centre / np.sqrt(field.variance))  # to resolve hidden layers
        panel_places = table.places
        tolerances = tol / gaussian_density(panel_places.z[0])
        class_error = _error_at_places(model, panel_places, field, tolerances, level)
        class_sums = np.concatenate([class_error, negative_output]) * table.weights
        return class_sums.reshape(2, -1, *panels.nodes.shape).sum(axis=1)

    # no panel ends at 0, where the class changes for odd students: a layer at the end of a panel
    # may be invisible on both sides
    error_panels = panels_between(np.tile(np.linspace(-7.5, 8.0, 9), (len(overlaps.V2), 1)))
    class_sums = halve_panels(panel_values, error_panels, tol, max_panels=2**16)
    return np.full(len(overlaps.V2), np.nan) if class_sums is None else class_sums[1][0]


def _settled_value(finer_errors: Iterable[Array], points: int, tol: float) -> Array:
    """Limit of ``finer_errors`` (P,) each: the first that changed by at most ``tol``.

    NaN for points that the last value still changed by more.
    """
    coarser_error, settled_error = np.full((2, points), np.nan)
    for finer_error in finer_errors:
        coarser_error, settled_error = settled_error, finer_error
        if (np.abs(settled_error - coarser_error) <= tol).all():
            break
    return np.where(np.abs(settled_error - coarser_error) <= tol, settled_error, np.nan)


def _error_on_table(label_table: LabelTable, overlaps: Overlaps) -> Array:
    """Classification error on a table, (P,)."""
    (table, labels), class_errors = label_table, []
    block_size = max(1, BLOCK_SIZE // labels.weights.size)
    for point_block in (slice(i, i + block_size) for i in range(0, len(overlaps.V2), block_size)):
        check_time()
        point_overlaps = Overlaps(*(overlap[point_block] for overlap in overlaps))
        field = field_at_nodes(responses_of(table), point_overlaps).project_tau(labels.tau.shape[2])
        class_errors.append(_error_given_kappa(labels, field) @ table.weights)
    return np.concatenate(class_errors)


def _error_at_places(model: Model, places: Places, field: Field, tol: Array, level: int) -> Array:
    """Probability P(y f < 0) at M places, (1, M), to tolerances ``tol`` (M,).

    Over several components of tau it uses the rule ``level`` instead of a tolerance.
    """
    place_count, tau_slopes = len(places.component), model.components.tau_slopes
    if has_jumps(model) or not tau_slopes.any() or tau_slopes.shape[2] > 1:
        size = max(1, BLOCK_SIZE // tau_rule(model, places.subset(slice(1)), level).weights.size)
        class_errors = []
        for place_rows in (slice(start, start + size) for start in range(0, place_count, size)):
            check_time()
            block_places = places.subset(place_rows)
            labels = labels_at(model, block_places, tau_rule(model, block_places, level), 1)
            class_errors.append(_error_given_kappa(labels, field.select(place_rows)))
        return np.concatenate(class_errors, axis=1)
    panel_error = average_over_tau(
        model, places, lambda labels, owner: error_at_nodes(labels, field.select(owner)), tol, 1
    )
    return np.full(places.z.shape, np.nan) if panel_error is None else panel_error[1]


def _error_given_kappa(labels: ConditionalLabels, field: Field) -> Array:
    """P(y f < 0) at every kappa, (P, N)."""
    if labels.steps is None:
        return np.asarray(error_at_nodes(labels, field).sum(axis=-1))
    _, _, mean, sd, law = step_labels(labels, "margin", field)
    return np.asarray(law.moments_below((-mean / sd)[None])[0][0].sum(axis=0))


def error_at_nodes(labels: ConditionalLabels, field: Field) -> Array:
    """Contribution of every node of tau to P(y f < 0) at every kappa, (P, N, T)."""
    negative_output = _below_zero(labels, field)
    return np.asarray(labels.weights * ((1 - labels.mean) / 2 + labels.mean * negative_output))


def answers_of_two(labels: ConditionalLabels, field: Field, weights: Array) -> Array:
    """P(f < 0) and P(f > 0) where y = -1, and where y = +1, (2, 2), at the first of P points, of
    kappa with the ``weights`` (N,); NaN of a label that there is not."""
    below = _below_zero(labels, field)[0]
    label_shares = (1 + np.array([-1, 1])[:, None, None] * labels.mean) / 2 * labels.weights
    label_shares = label_shares * weights[:, None]
    with np.errstate(invalid="ignore"):
        label_shares = label_shares / label_shares.sum(axis=(1, 2), keepdims=True)
    return np.stack([(label_shares * part).sum(axis=(1, 2)) for part in (below, 1 - below)], axis=1)


def _below_zero(labels: ConditionalLabels, field: Field) -> Array:
    """P(f < 0) at every kappa and node of tau, (P, N, T)."""
    output_centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, labels.tau)
    return np.asarray(ndtr(-output_centre / np.sqrt(variance_given_tau(field))[..., None]))

"""The classification error P(y f < 0) of labels +-1 on new samples.

Given kappa, or kappa and tau, the probability is known in closed form; what is left has a layer
of its own, where C changes sign, as thin as the prediction's spread is small.  Panels are halved
until they resolve it.
"""

from collections.abc import Iterable

import numpy as np
from scipy.special import ndtr

from solvers.adaptive import NODES, Panels, halve_panels, panels_between
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, gaussian_density

from ..equivalence import tabulate
from ..problem import Model, Places
from ..saddle_point import Field, Overlaps, field_at_nodes, responses_of, variance_given_tau
from .label_tables import (
    ConditionalLabels,
    LabelTable,
    has_steps,
    is_odd,
    labels_at,
    shared_tables,
    tau_rule,
)
from .panels import average_over_tau
from .step_labels import step_law

AT_ONCE = 2**18  # places times nodes of several of tau
TAU_LEVELS = 5  # of rules for these


def classification_error(model: Model, overlaps: Overlaps, tol: float) -> Array:
    """P(y f < 0) for readouts with these overlaps, to the absolute error ``tol``; (P,), NaN unless
    labels are +-1, and where no panels resolve it."""
    points = len(overlaps.V2)
    if not (points and model.labels.binary):
        return np.full(points, np.nan)
    if model.geometry.r.shape[1] > 1:
        each = (_on_table(given, overlaps) for given in shared_tables(model, is_odd(model)))
        return _settled(each, points, tol)
    if model.components.rest.shape[2] > 1:  # over several of tau there are no panels
        each = (_of_all(model, overlaps, tol, level) for level in range(TAU_LEVELS))
        return _settled(each, points, tol)
    return _of_all(model, overlaps, tol)


def _of_all(model: Model, overlaps: Overlaps, tol: float, level: int = 0) -> Array:
    """P(y f < 0) on panels, of a few points at once, (P,); over several of tau on a rule of a
    ``level``."""
    few = np.array_split(np.arange(len(overlaps.V2)), -(-len(overlaps.V2) // 16))
    each = (Overlaps(*(x[rows] for x in overlaps)) for rows in few)
    return np.concatenate([_on_panels(model, some, tol, level) for some in each])


def _on_panels(model: Model, overlaps: Overlaps, tol: float, level: int) -> Array:
    """P(y f < 0) of a few points, (P,), each on panels of its own."""

    def values(panels: Panels) -> Array:
        z = panels.nodes.ravel()
        table = tabulate(model, Rule(z, np.ones_like(z)), target=False)
        owner = np.tile(np.repeat(panels.owner, NODES.size), len(model.components.shares))
        field = field_at_nodes(responses_of(table), overlaps, owner)
        field = field.project_tau(model.components.rest.shape[2])
        below = ndtr(-field.centre / np.sqrt(field.variance))  # shows a layer that errors may hide
        places = table.places
        each = tol / gaussian_density(places.z[0])
        wrong = _on_tau_panels(model, places, field, each, level)
        found = np.concatenate([wrong, below]) * table.weights
        return found.reshape(2, -1, *panels.nodes.shape).sum(axis=1)

    # none ends at 0, where the class of odd students changes: a layer at the end of a panel shows
    # on neither side
    panels = panels_between(np.tile(np.linspace(-7.5, 8.0, 9), (len(overlaps.V2), 1)))
    found = halve_panels(values, panels, tol, max_panels=2**16)
    return np.full(len(overlaps.V2), np.nan) if found is None else found[1][0]


def _settled(each: Iterable[Array], points: int, tol: float) -> Array:
    """The first of finer and finer values (P,) that none of them changes by more than ``tol``; NaN
    of points that the last still does."""
    before, value = np.full((2, points), np.nan)
    for now in each:
        before, value = value, now
        if (np.abs(value - before) <= tol).all():
            break
    return np.where(np.abs(value - before) <= tol, value, np.nan)


def _on_table(given: LabelTable, overlaps: Overlaps) -> Array:
    """P(y f < 0) on a table, (P,)."""
    table, labels = given
    field = field_at_nodes(responses_of(table), overlaps).project_tau(labels.tau.shape[2])
    return np.asarray(wrong_at_nodes(labels, field).sum(axis=-1) @ table.weights)


def _on_tau_panels(model: Model, places: Places, field: Field, tol: Array, level: int) -> Array:
    """P(y f < 0) at M places, each (1, M) to the tolerance ``tol`` (M,), or on a rule of a
    ``level``."""
    rest = model.components.rest
    if has_steps(model):
        law = step_law(labels_at(model, places, tau_rule(model, places, 0), 1), "margin", field)
        return np.asarray(law.integrals(-law.mean / law.sd)[0].sum(axis=0))
    if not rest.any() or rest.shape[2] > 1:
        M, wrong = len(places.component), []
        size = max(1, AT_ONCE // tau_rule(model, places.at(slice(1)), level).weights.size)
        for some in (slice(start, start + size) for start in range(0, M, size)):
            check_time()
            here = places.at(some)
            labels = labels_at(model, here, tau_rule(model, here, level), 1)
            wrong.append(wrong_at_nodes(labels, field.at(some)).sum(axis=-1))
        return np.concatenate(wrong, axis=1)
    found = average_over_tau(
        model, places, lambda labels, owner: wrong_at_nodes(labels, field.at(owner)), tol, order=1
    )
    return np.full(places.z.shape, np.nan) if found is None else found[1]


def wrong_at_nodes(labels: ConditionalLabels, field: Field) -> Array:
    """What every node of tau adds to P(y f < 0) at every kappa, (P, N, T)."""
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, labels.tau)
    below = ndtr(-centre / np.sqrt(variance_given_tau(field))[..., None])
    return np.asarray(labels.weights * ((1 - labels.mean) / 2 + labels.mean * below))

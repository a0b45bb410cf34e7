"""The classification error P(y f < 0) of labels +-1 on new samples.

Given kappa, or kappa and tau, the probability is known in closed form; what is left has a layer
of its own, where C changes sign, as thin as the prediction's spread is small.  It is
averaged over kappa on growing tables, and where these do not settle on panels that close in on
that layer.
"""

import itertools

import numpy as np
from scipy.special import ndtr, owens_t

from solvers.results import Array

from ..equivalence import tabulate
from ..problem import Model
from ..saddle_point import Overlaps, responses_of
from .field_of_overlaps import field_on
from .label_tables import LabelTable, first_level, label_table, label_table_at
from .labels import Steps
from .layers import decision, layers_near, panels
from .local_field import Field, given_tau

PANEL_NODES = (8, 12, 18, 27)  # over kappa, on panels, until two rules agree
TAU_LEVELS = 2  # by which rules over tau are finer there than the shared tables' first
SHARED_LEVELS = (0, 1, 3, 5)  # of shared tables tried before panels, for one spike
BLOCK_NODES = 2**20  # nodes of (kappa, tau) handled at once, of all points
SMALLEST_ARGUMENT = 1e-100  # of Owen's function, whose arguments are ratios


def classification_error(model: Model, overlaps: Overlaps, tol: float) -> tuple[Array, Array]:
    """P(y f < 0) for readouts with these overlaps and an estimate of its absolute error, at most
    ``tol`` where a rule is found; (P,) each, NaN unless labels are +-1."""
    points = len(overlaps.V2)
    value, error = np.full((2, points), np.nan)
    if not model.labels.binary:
        return value, error
    one_spike, first = model.geometry.r.shape[1] == 1, first_level(model)
    rows = np.arange(points)
    for level in SHARED_LEVELS if one_spike else itertools.count():
        labelled = label_table(model, first.along(by=level - first.kappa)) if rows.size else None
        if labelled is None:
            break
        wrong = _errors(labelled, _rows(overlaps, rows))
        error[rows], value[rows] = np.abs(wrong - value[rows]), wrong
        rows = rows[~(error[rows] <= tol)]
    for row in rows if one_spike else ():
        own = _rows(overlaps, np.array([row]))
        value[row], error[row] = np.nan, np.nan
        closer = first.along("tau", by=TAU_LEVELS)
        layers = layers_near(model, own, decision)
        for nodes in PANEL_NODES:
            if error[row] <= tol:
                break
            labelled = label_table_at(model, tabulate(model, panels(model, layers, nodes)), closer)
            if labelled is None:
                break
            wrong = _errors(labelled, own)[0]
            error[row], value[row] = abs(wrong - value[row]), wrong
    return value, error


def _rows(overlaps: Overlaps, rows: Array) -> Overlaps:
    """The overlaps of the points ``rows`` alone."""
    return Overlaps(*(part[rows] for part in overlaps))


def _errors(labelled: LabelTable, overlaps: Overlaps) -> Array:
    """P(y f < 0) on one table, (P,)."""
    responses = responses_of(labelled.table)
    size = max(1, BLOCK_NODES // labelled.labels.size)
    blocks = [slice(i, i + size) for i in range(0, len(overlaps.V2), size)]
    fields = (
        field_on(labelled.table, responses, Overlaps(*(x[b] for x in overlaps))) for b in blocks
    )
    return np.concatenate([_wrong(labelled, field) for field in fields])


def _wrong(labelled: LabelTable, field: Field) -> Array:
    """P(y f < 0) for one local field on a table, (P,)."""
    steps, (law,) = labelled.labels.steps, labelled.labels.components
    if steps is not None:
        wrong = _by_steps(steps, field)
    else:
        centre, sd = given_tau(law.tau, field)
        positive = (1 + law.mean) / 2
        below = ndtr(-centre / sd)
        wrong = (law.weights * (positive * below + (1 - positive) * (1 - below))).sum(axis=-1)
    return np.asarray(wrong @ labelled.table.weights)


def _by_steps(steps: Steps, field: Field) -> Array:
    """P(y f < 0) given kappa, (P, N): (f - C) / S and tau are two correlated Gaussians, and y
    changes where tau passes an edge."""
    S = np.sqrt(field.power)
    low = -field.centre / S
    below, correlation = ndtr(low), field.pull[..., 0] / S
    wrong = 0.5 + steps.values[0] * (below - 0.5)
    for edge, jump in zip(steps.edges.T, np.diff(steps.values), strict=True):
        # E[y (1/2 - 1{f > 0})], y = jump where tau > edge
        both = below - bivariate(low, edge, correlation)
        wrong += jump * (both - ndtr(-edge) / 2)
    return wrong


def bivariate(h: Array, k: Array, correlation: Array) -> Array:
    """P(x < h, y < k) of two standard Gaussians, by Owen's function.

    Examples
    --------
    >>> float(bivariate(np.array(0.0), np.array(0.0), np.array(0.5)).round(12))  # 1/4 + 1/12
    0.333333333333
    """
    h, k, correlation = np.broadcast_arrays(h, k, correlation)
    h, k = (np.where(np.abs(x) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, x) for x in (h, k))
    rest = np.sqrt(np.maximum(1 - correlation**2, SMALLEST_ARGUMENT))
    opposite = 0.5 * (h * k < 0)
    first = owens_t(h, (k / h - correlation) / rest)
    second = owens_t(k, (h / k - correlation) / rest)
    return np.asarray((ndtr(h) + ndtr(k)) / 2 - first - second - opposite)

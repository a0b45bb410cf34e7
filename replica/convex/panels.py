"""Panels over kappa, and over tau at each, fitted to the overlaps of some points.

Given kappa and tau the prediction is a Gaussian whose spread may be as small as 1 / lambda: where
it passes a kink of the loss, or an edge between two labels, the averages of (6.2)-(6.3) change as
fast; and so does the loss on new samples.  At overlaps near the solution panels are halved until
Gauss's and Kronrod's rules agree on all of these (``solvers.adaptive``), over tau at every kappa,
and over kappa.  The nodes are then held fixed, and the equations solved on them.  docs/theory.md 6
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive import GAUSS_WEIGHTS, NODES, Panels, halve_panels, panels_between
from solvers.resources import GivenUp
from solvers.results import Array, Status
from solvers.rules import Rule, gaussian_density

from ..equivalence import Table, known_layers, tabulate, tabulate_at
from ..problem import Model, Places
from ..saddle_point import Field, Overlaps, field_at_nodes, responses_of
from .averages import average, scores
from .coordinates import Coordinates
from .evaluation import Task
from .label_tables import (
    UNLIKELY,
    ConditionalLabels,
    LabelTable,
    has_steps,
    labels_at,
    tau_kinks,
    tau_rule,
)

REACH = 7.5  # of kappa: the Gaussian weight beyond is 1e-13
MOST_NODES = 2**20  # of kappa and tau together: a pass over them takes some .2 s
TAU_LEVEL = 2  # of rules over tau that no panels are fitted to


def fitted_table(task: Task, overlaps: Overlaps, accuracy: float, order: int) -> LabelTable:
    """The labels on panels fitted to ``overlaps`` (P, ...) near the points of a task.

    Gauss's rule on them gives averages over kappa and tau to the ``accuracy``, relative to their
    size; a proximal map has ``order`` nodes a panel.  Raises ``GivenUp`` if they take too long, or
    too many nodes.
    """
    model = task.model
    places, weights, over_tau = fitted_rules(task, overlaps, accuracy, order)
    # where labels are steps averages over tau take no nodes
    nodes = (weights if has_steps(model) else over_tau.weights).size
    if nodes * len(task.alpha) > MOST_NODES:
        raise GivenUp(Status.MEMORY)
    table = tabulate_at(model, places, weights)
    return LabelTable(table, labels_at(model, places, over_tau, order))


def has_panels(model: Model) -> bool:
    """Whether panels may be fitted: to one spike, and at most one direction of the target."""
    return model.geometry.r.shape[1] == 1 and model.components.rest.shape[2] <= 1


def average_over_tau(
    model: Model,
    places: Places,
    values: Callable[[ConditionalLabels, NDArray[np.int64]], Array],
    tol: Array,
    order: int,
) -> tuple[Panels, Array] | None:
    """Averages (k, N) over tau at N places, to the tolerances ``tol`` (N,), and the panels they
    take: of ``values`` (k, n, 15) at the nodes of labels, given which place these belong to.  None
    if these are too many."""

    def at_nodes(panels: Panels) -> Array:
        tau = panels.nodes
        rule = Rule(tau[..., None], np.ones_like(tau))
        return values(labels_at(model, places.at(panels.owner), rule, order), panels.owner)

    # they end at the target's kinks
    end = np.sqrt(np.maximum(UNLIKELY - places.z[0] ** 2, 1.0))[:, None]
    even = end * np.linspace(-1, 1, 9)
    kinks = np.clip(tau_kinks(model, places), -end, end)
    first = panels_between(np.sort(np.concatenate([even, kinks], axis=1), axis=1))
    return halve_panels(at_nodes, first, tol, MOST_NODES // NODES.size)


def fitted_rules(
    task: Task, overlaps: Overlaps, accuracy: float, order: int
) -> tuple[Places, Array, Rule]:
    """N places and their weights (N,), and a rule over tau at each, (N, T, 1) and (N, T)."""
    model, loss = task.model, task.loss
    first = first_panels(model, task.folded)
    ends: dict[tuple[int, float], tuple[Array, Array]] = {}  # of panels over tau, by place
    inputs = model.components
    closed = has_steps(model) or not inputs.rest.any()

    def at(panels: Panels) -> tuple[Table, Field]:
        """The features' moments at the nodes of ``panels``, and the local field."""
        nodes = panels.nodes.ravel()
        table = tabulate(model, Rule(nodes, np.ones_like(nodes)), target=False)
        return table, field_at_nodes(responses_of(table), overlaps).project_tau(1)

    def given_kappa(table: Table, field: Field) -> Array:
        """E s, -E s', E s^2, E[tau s - P s'] and the loss on a new sample given kappa, (5, P, N):
        of labels that are steps in closed form, else by one rule over tau."""
        labels = labels_at(model, table.places, tau_rule(model, table.places, TAU_LEVEL), order)
        s = scores(labels, loss, field)
        new = average("residual", labels, loss, field.for_new_samples)[2]
        return np.stack([s.mean, s.slope, s.square, s.p_hat_term(field)[..., 0], new])

    def over_tau(places: Places, field: Field, factors: Array) -> Array:
        """The same times ``factors``, on panels over tau that are fitted at each of N places."""

        def at_nodes(labels: ConditionalLabels, owner: NDArray[np.int64]) -> Array:
            there, tau = field.at(owner), labels.tau[..., 0]
            s, slope, square = average("score", labels, loss, there, each_tau=True)
            new = average("residual", labels, loss, there.for_new_samples, each_tau=True)[2]
            values = np.stack([s, slope, square, tau * s + there.tau_slope * slope, new])
            values *= labels.weights * factors[:, :, owner, None]
            return values.reshape(-1, *tau.shape)

        # an error at one place may be that at all
        tol = accuracy / (2 * REACH) / gaussian_density(places.z[0])
        panels, values = _found(average_over_tau(model, places, at_nodes, tol, order))
        last = np.cumsum(np.bincount(panels.owner))[:-1]
        each = (np.split(x, last) for x in (panels.low, panels.high))
        ends.update(zip(_keys(places), zip(*each, strict=True), strict=True))
        return values

    def values(panels: Panels) -> Array:
        known = panels is first
        table, field = at_first if known else at(panels)
        factors = bounds(table) / units
        if not closed:
            found = over_tau(table.places, field, factors)
        else:
            found = (at_once if known else given_kappa(table, field)) * factors
        shared = (found * table.weights).reshape(-1, len(inputs.shares), panels.nodes.size)
        return shared.sum(axis=1).reshape(-1, *panels.nodes.shape)

    at_first = at(first)
    at_once = given_kappa(*at_first)
    table = at_first[0].select_nodes(slice(None), inputs.weights(first.rule().weights[0]))
    bounds = _bounds(table)
    units, blurred = _units(at_once * bounds(table), table, at_first[1])
    # an average over tau blurs a jump more than that
    accuracy = min(accuracy, blurred) if closed else accuracy
    panels, _ = _found(halve_panels(values, first, accuracy, max_panels=400))
    places, kappa_weights = inputs.on(Rule(*(part[0] for part in panels.rule(GAUSS_WEIGHTS))))
    if closed:
        return places, kappa_weights, tau_rule(model, places, TAU_LEVEL)
    low, high = zip(*(ends[place] for place in _keys(places)), strict=True)
    owner = np.repeat(np.arange(len(low)), [part.size for part in low])
    tau, weights = Panels(owner, np.concatenate(low), np.concatenate(high)).rule(GAUSS_WEIGHTS)
    return places, kappa_weights, Rule(tau[..., None], weights)


def _bounds(first: Table) -> Callable[[Table], Array]:
    """Bounds, smooth in kappa, of what E s, -E s', E s^2 and E[tau s - P s'] are multiplied with in
    (6.2)-(6.3), in units of their averages on the ``first`` table, and 1 for the loss: functions of
    a table, (5, 1, N)."""
    combine = Coordinates(first).combine
    loading_size = np.maximum((first.loadings**2) @ first.weights, 1e-300)[..., None]

    def power(table: Table) -> Array:
        return np.asarray(table.fractions @ (table.mu1**2 + table.mu2sq))

    size = float(power(first) @ first.weights) or 1.0

    def bounds(table: Table) -> Array:
        offsets = ((combine.T @ table.offsets) ** 2).sum(axis=0)
        loadings = (table.loadings**2 / loading_size).sum(axis=(0, 1))
        features = power(table) / size
        each = [(1 + offsets + loadings) / 2, features, features, (1 + features) / 2]
        return np.stack([*each, np.ones_like(features)])[:, None]

    return bounds


def _units(values: Array, table: Table, field: Field) -> tuple[Array, float]:
    """What the ``values`` (5, P, N) amount to over all kappa, (5, P, 1), and the accuracy at which
    nodes see how a jump of E s is blurred: the spread of predictions given kappa, over their size.
    """
    sizes = np.abs(values) @ table.weights
    variance, square = field.variance @ table.weights, field.centre**2 @ table.weights
    size = np.sqrt(variance + square)  # of predictions
    # nodes that do not see how a jump of E s is blurred do not see E s', which is its slope
    blurred = np.clip(np.sqrt(variance) / size, 1e-9, 1).min()
    # Layers that none of these nodes sees may hold most of E s^2, and all of E s': no less than
    # parts of what they would be if every prediction had to move by its size.
    root = np.maximum(np.sqrt(sizes[2]), 1e-6 * size / (field.response @ table.weights))
    slope = np.maximum(sizes[1], 1e-2 * root / size)
    new = np.maximum(sizes[4], 1e-300)
    return np.stack([root, slope, root**2, root, new])[..., None], float(blurred)


def first_panels(model: Model, folded: bool) -> Panels:
    """Panels over kappa to begin with, of one integral: they end at layers that are known, and are
    ``folded`` to kappa > 0 where the rest is the same."""
    layers = [at for at, _ in known_layers(model) if abs(at) < REACH]
    inner = (1.0, 2.0, 3.0, 5.0, REACH)
    breaks = np.unique([0.0, *inner, *(-x for x in inner), *layers])
    return panels_between(breaks[None, breaks >= 0] if folded else breaks[None])


def _keys(places: Places) -> list[tuple[int, float]]:
    """Components and z of places, of one spike."""
    return list(zip(places.component.tolist(), places.z[0].tolist(), strict=True))


def _found(adapted: tuple[Panels, Array] | None) -> tuple[Panels, Array]:
    if adapted is None:
        raise GivenUp(Status.MEMORY)
    return adapted

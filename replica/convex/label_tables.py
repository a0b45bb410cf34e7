"""The labels given kappa, on quadrature nodes: what (6.1)-(6.3) need beside ``Table``.

Given kappa, tau ~ N(0, 1) in the K' directions of the target that are left, and y follows the
law of the labels at z = Gamma kappa + L tau.  The integral over tau is split where the target
jumps or has a kink.  Nothing here depends on the unknowns: (tau, y) is tabulated once, and the
local field is integrated afterwards, given tau: for a piecewise quadratic loss exactly.  Where
E[y | z] is piecewise constant, as that of a sign, the law of (y, tau) given the local field is
known in closed form, and its steps are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, gauss_legendre, graded, trapezoid_tensor

from ..equivalence import Table, jumps, known_layers, layers, rules, tabulate
from ..problem import Model, remainder
from .labels import Component, Labels, Series, Steps

# Nodes of every level of refinement: over kappa, trapezoidal; over tau likewise, or per panel with
# half the interval where it is split; per panel of a proximal map.  kappa is what
# may have thin layers, and goes on to panels that close in on them.
KAPPA = (24, 36, 54, 80, 128, 192, 288, 432, 648, 972)
TAU = (12, 16, 20, 24, 30, 38, 48, 60, 76, 96, 120, 150)
SPLIT = tuple(
    (n, min(6.2 + 0.3 * level, 8.8))
    for level, n in enumerate((6, 8, 9, 10, 12, 14, 17, 20, 24, 28, 34, 40))
)
PANEL = 5.7  # longest, where it is split
LONGEST = 2.0  # spacing of trapezoidal nodes, in widths of the thinnest layer known
DENSE = 128  # trapezoidal nodes: a thinner jump takes panels at once
FIELD = (6, 9, 11, 12, 13, 14, 16, 18, 20, 24, 28, 32)
GRADED = (6, 9, 14)
TERMS = 40  # of a series,
DENSER = 3  # from that many times the nodes
LARGEST = 3 * 2**20  # nodes: 300 ms for one evaluation
OUTERMOST = 13.0  # arguments at which the values of a piecewise constant target are read
TENSORS = {2: (12, 18, 27, 40, 60, 90), 3: (10, 15, 22, 33), 4: (8, 12, 18)}


class Level(NamedTuple):
    """Of refinement: over kappa, over tau, and along a proximal map."""

    kappa: int
    tau: int
    field: int

    def along(self, *axes: str, by: int = 1) -> "Level":
        """The level further ``by`` that much along these axes, or along all."""
        return Level(*(n + by * (not axes or name in axes) for name, n in self._asdict().items()))


class LabelTable(NamedTuple):
    """The features' moments, and the labels given the same kappa."""

    table: Table
    labels: Labels


Source = Callable[[Level], LabelTable | None]  # tables by their level; None where there is none


def first_level(model: Model) -> Level:
    """Of the shared tables that points are solved on.  Nodes over tau are many, where one
    direction is left."""
    return Level(kappa=1, tau=4 if len(model.geometry.gamma) == 1 else 1, field=2)


@lru_cache(maxsize=24)  # of up to 50 MB each
def label_table(model: Model, level: Level) -> LabelTable | None:
    """The table of the given ``level`` of refinement, or None past the last or the largest."""
    kappa = next(islice(_kappa_rules(model), level.kappa, None), None)
    return None if kappa is None else label_table_at(model, tabulate(model, kappa), level)


def label_table_at(
    model: Model, table: Table, level: Level, over_tau: Sequence[Rule] | None = None
) -> LabelTable | None:
    """The labels given the kappa of ``table``, of the given ``level`` in everything else, or None
    if they were too many.  ``over_tau`` has nodes (N, T, K') and weights (N, T) for each
    Gaussian that labels have."""
    gaussians = model.labels.gaussians
    if over_tau is None:
        over_tau = [_tau_rule(model, table.kappa, level.tau)] * len(gaussians)
    if sum(rule.weights.size for rule in over_tau) > LARGEST:
        return None
    components = tuple(
        _component(model, table.kappa, rule, *each)
        for rule, each in zip(over_tau, gaussians, strict=True)
    )
    steps, series = _steps(model, table.kappa), None
    free = remainder(model.geometry.gamma)
    if steps is None and model.labels.binary and free.shape[1] == 1 and free.any():
        rule = _tau_rule(model, table.kappa, level.tau, DENSER)
        series = _series(_component(model, table.kappa, rule, *gaussians[0]), table.weights)
    order, square = _at(FIELD, level.field), (table.kappa**2).sum(axis=0)
    law = model.labels
    labels = Labels(components, law.binary, order, square, law.student_t, steps, series)
    return LabelTable(table, labels)


def axes(model: Model, *, exact: bool) -> list[str]:
    """Of a level's axes those that matter; ``exact`` if averages over the local field are."""
    there = {"kappa": True, "tau": bool(remainder(model.geometry.gamma).any()), "field": not exact}
    return [name for name, matters in there.items() if matters]


def within(model: Model, level: Level) -> bool:
    """Whether rules still grow up to this level: what did not would not show in differences."""
    over_tau = TENSORS.get(remainder(model.geometry.gamma).shape[1], TAU)
    sizes = (level.tau, over_tau), (level.field, FIELD)
    return all(n < len(rules) for n, rules in sizes)


def _component(model: Model, kappa: Array, rule: Rule, variance: float, share: float) -> Component:
    alignment, (tau, weights) = model.geometry.gamma, rule
    z = (alignment @ kappa)[:, :, None] + np.einsum("tk,nmk->tnm", remainder(alignment), tau)
    return Component(tau, weights, np.asarray(model.labels.mean(*z)), variance, share)


def _kappa_rules(model: Model) -> Iterator[Rule]:
    """Rules over kappa of growing size."""
    spikes = model.geometry.r.shape[1]
    if spikes in TENSORS:
        yield from (trapezoid_tensor(n, spikes) for n in TENSORS[spikes])
    elif jumps(model):
        yield from rules(model)
    else:
        width = min((width for _, width in known_layers(model)), default=np.inf)
        smooth = [trapezoid_tensor(n, 1) for n in KAPPA]
        # Nodes that do not see how a jump is blurred see labels that kappa decides: separable.
        fitting = [x for x in smooth if np.ptp(x.nodes) / (x.nodes.size - 1) / LONGEST <= width]
        if fitting and fitting[0].nodes.size <= DENSE:
            yield from (Rule(rule.nodes[:, 0], rule.weights) for rule in fitting)
        for n in GRADED:
            yield gauss_legendre(n, graded(layers(model), 9.0), 9.0)


def _at(sizes: Any, level: int) -> Any:
    return sizes[max(0, min(level, len(sizes) - 1))]


def _steps(model: Model, kappa: Array) -> Steps | None:
    """The steps at each kappa (K, N) of a mean label that is constant between its kinks."""
    target, alignment = model.labels.mean, model.geometry.gamma
    rest = remainder(alignment)
    if not (target.kinks and rest.any()):
        return None
    kinks = np.asarray(target.kinks)
    ends = np.concatenate([[min(-OUTERMOST, kinks[0] - 1)], kinks, [max(OUTERMOST, kinks[-1] + 1)]])
    inside = np.linspace(0, 1, 18)[1:-1]
    values = target(ends[:-1, None] + np.diff(ends)[:, None] * inside)
    if np.ptp(values, axis=1).any():
        return None
    return Steps((kinks - (alignment @ kappa).T) / rest[0, 0], values[:, 0])


def _series(given: Component, over_kappa: Array) -> Series:
    """The series of the mean label, as long as the nodes allow, with ``over_kappa`` (N,) the
    weights there."""
    tau, weights, mean = given.tau[..., 0], given.weights, given.mean
    count = min(tau.shape[1] // 2, TERMS)
    before, hermite = np.zeros_like(tau), np.ones_like(tau)
    coefficients = np.empty((len(tau), count))
    for k in range(count):
        coefficients[:, k] = (weights * mean * hermite).sum(axis=1)
        before, hermite = hermite, (tau * hermite - np.sqrt(k) * before) / np.sqrt(k + 1)
    rest = (weights * mean**2).sum(axis=1) - (coefficients**2).sum(axis=1)
    return Series(coefficients, over_kappa * np.sqrt(np.maximum(rest, 0.0)))


def _tau_rule(model: Model, kappa: Array, level: int, denser: int = 1) -> Rule:
    """Nodes (N, T, K') and weights (N, T) over tau at each kappa (K, N), where nothing splits
    them ``denser`` times as many."""
    alignment, target = model.geometry.gamma, model.labels.mean
    rest = remainder(alignment)
    N, free = kappa.shape[1], rest.shape[1]
    if not rest.any():
        return Rule(np.zeros((N, 1, free)), np.ones((N, 1)))
    if target.kinks:
        n, half_width = _at(SPLIT, level)
        breaks = (np.asarray(target.kinks) - (alignment @ kappa).T) / rest[0, 0]
        split = gauss_legendre(n, breaks, half_width, PANEL)
        return Rule(split.nodes[..., None], split.weights)
    rule = trapezoid_tensor(denser * _at(TENSORS.get(free, TAU), level), free)
    shape = (N, *rule.nodes.shape)
    return Rule(np.broadcast_to(rule.nodes, shape), np.broadcast_to(rule.weights, shape[:2]))

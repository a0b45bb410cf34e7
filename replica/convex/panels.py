"""Panels over kappa, and over tau at each, fitted to the overlaps of some points.

Given kappa and tau the prediction is a Gaussian whose spread may be as small as 1 / lambda: where
it passes a kink of the loss, or an edge between two labels, the averages of (6.2)-(6.3) change as
fast; and so does the loss on new samples.  At overlaps near the solution panels are halved until
Gauss's and Kronrod's rules agree on all of these (``solvers.adaptive``), over tau at every kappa,
and over kappa.  The nodes are then held fixed, and the equations solved on them.  docs/theory.md 6
"""

import numpy as np

from solvers.adaptive import NODES, WEIGHTS, Panels, adapt, between
from solvers.results import Array, Status
from solvers.rules import Rule, gaussian_weights

from ..equivalence import Table, known_layers, tabulate
from ..problem import Model, remainder
from ..saddle_point import Overlaps, responses_of
from .averages import average, scores
from .coordinates import Coordinates
from .evaluation import GivenUp, Task
from .label_tables import UNLIKELY, LabelTable, has_steps, labels_at, tau_kinks, tau_rule
from .local_field import Field, field_on

REACH = 7.5  # of kappa: the Gaussian weight beyond is 1e-13
# over kappa, beside known layers
FIRST_BREAKS = (-REACH, -5.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, REACH)
FIRST_TAU_PANELS = 8  # at each kappa, beside the kinks of the target
MOST_KAPPA_PANELS = 400
MOST_NODES = 2**20  # of kappa and tau together: a pass over them takes some .2 s
TAU_LEVEL = 2  # of rules over tau that no panels are fitted to
# Least scores and slopes, of what they would be if every prediction had to move by its size.
UNSEEN, UNSEEN_SLOPE = 1e-6, 1e-2
# The spread of predictions given kappa blurs a jump of E s: panels see that if the jump's average
# is as accurate as that spread over the predictions' size.  No finer accuracy is asked for so.
FINEST = 1e-9
TINY = 1e-300


def fitted_table(task: Task, overlaps: Overlaps, accuracy: float, order: int) -> LabelTable:
    """The labels on panels fitted to ``overlaps`` (P, ...) near the points of a task.

    Gauss's rule on them gives averages over kappa and tau to the ``accuracy``, relative to their
    size; a proximal map has ``order`` nodes a panel.

    Raises
    ------
    GivenUp
        If they take too long, or too many nodes.
    """
    averages = _Averages(task, overlaps, order)
    kappa, weights = averages.kappa_panels(accuracy).gauss
    table = _moments(task.model, kappa.ravel())
    if averages.fitted:
        tau = averages.rule_over_tau(table.kappa[0])
        nodes = tau.weights.size
    else:
        tau, nodes = tau_rule(task.model, table.kappa, TAU_LEVEL), kappa.size
    if nodes * len(task.alpha) > MOST_NODES:
        raise GivenUp(Status.MEMORY)
    table = table.at(slice(None), gaussian_weights(table.kappa[0], weights.ravel()).weights)
    return LabelTable(table, labels_at(task.model, table.kappa, tau, order))


def has_panels(model: Model) -> bool:
    """Whether panels may be fitted: to one spike, and one direction of the target beside it."""
    return model.geometry.r.shape[1] == 1 and remainder(model.geometry.gamma).shape[1] == 1


class _Averages:
    """The averages of (6.2)-(6.3), and the loss on new samples, at fixed overlaps, as functions of
    kappa and tau, in units of what they amount to over all kappa."""

    def __init__(self, task: Task, overlaps: Overlaps, order: int) -> None:
        self.task, self.model, self.overlaps, self.order = task, task.model, overlaps, order
        # whether the integral over tau is not in closed form
        self.along_tau = bool(
            remainder(self.model.geometry.gamma).any() and not has_steps(self.model)
        )
        self.fitted: dict[float, tuple[Array, Array]] = {}  # ends of panels over tau, by kappa
        self.first = first_panels(self.model, task.folded)
        table, field = self.at_first = self._at(self.first)
        rule = gaussian_weights(table.kappa[0], (self.first.half * WEIGHTS).ravel())
        table = table.at(slice(None), rule.weights)
        self.combine = Coordinates(table).combine
        self.feature_size = float(self._features(table) @ table.weights) or 1.0
        self.loading_size = np.maximum((table.loadings**2) @ table.weights, TINY)
        self.values_at_first = self._values(table, field)
        sizes = np.abs(self.values_at_first) * self._multipliers(table) @ table.weights
        variance, square = field.power @ table.weights, field.centre**2 @ table.weights
        size = np.sqrt(variance + square)  # of predictions
        # nodes that do not see how a jump of E s is blurred do not see E s', which is its slope; an
        # average over tau blurs it more than that
        blurred = np.clip(np.sqrt(variance) / size, FINEST, 1).min()
        self.accuracy = np.inf if self.along_tau else float(blurred)
        # layers that none of these nodes sees may hold most of E s^2, and all of E s'
        root = np.maximum(np.sqrt(sizes[2]), UNSEEN * size / (field.response @ table.weights))
        slope = np.maximum(sizes[1], UNSEEN_SLOPE * root / size)
        new = np.maximum(sizes[4], TINY)
        self.units = np.stack([root, slope, root**2, root, new])[..., None]

    def kappa_panels(self, accuracy: float) -> Panels:
        """Panels over kappa."""
        accuracy = min(accuracy, self.accuracy)

        def integrands(panels: Panels) -> Array:
            known = panels is self.first
            table, field = self.at_first if known else self._at(panels)
            factors = self._multipliers(table) * table.weights / self.units
            if self.along_tau:
                values = self._over_tau(table.kappa, field, factors, accuracy)
            else:
                values = self.values_at_first if known else self._values(table, field)
                values = values * factors
            return values.reshape(-1, *panels.nodes.shape)

        return _found(adapt(integrands, self.first, accuracy, MOST_KAPPA_PANELS))[0]

    def _at(self, panels: Panels) -> tuple[Table, Field]:
        """The features' moments at the nodes of ``panels``, and the local field."""
        table = _moments(self.model, panels.nodes.ravel(), target=False)
        return table, field_on(table, responses_of(table), self.overlaps)

    def _over_tau(self, kappa: Array, field: Field, factors: Array, accuracy: float) -> Array:
        """The averages at every ``kappa`` (1, N), times ``factors``, on panels fitted there."""

        def integrands(panels: Panels) -> Array:
            tau, there = panels.nodes, field.at(panels.owner)
            density = np.exp(-(tau**2) / 2) / np.sqrt(2 * np.pi)
            rule = Rule(tau[..., None], density)
            labels = labels_at(self.model, kappa[:, panels.owner], rule, self.order)
            given, check = (labels, self.task.loss), self.task.check_time
            s, slope, square = average("score", *given, there, check, each_tau=True)
            new = average("residual", *given, there.unmoved, check, each_tau=True)[2]
            values = np.stack([s, slope, square, tau * s + there.pull * slope, new])
            values *= labels.weights * factors[:, :, panels.owner, None]
            return values.reshape(-1, *tau.shape)

        first = first_tau_panels(self.model, kappa)
        # an error at one kappa may be that at all
        tol, most = accuracy / (2 * REACH), MOST_NODES // NODES.size
        panels, values = _found(adapt(integrands, first, tol, most))
        last = np.cumsum(np.bincount(panels.owner))[:-1]
        ends = (np.split(x, last) for x in (panels.low, panels.high))
        self.fitted.update(zip(kappa[0].tolist(), zip(*ends, strict=True), strict=True))
        return values

    def rule_over_tau(self, kappa: Array) -> Rule:
        """Nodes (N, T, 1) and weights (N, T) over tau at some of the ``kappa`` (N,) that panels
        were fitted at; where one has fewer nodes than others the rest weigh nothing."""
        ends = [self.fitted[at] for at in kappa.tolist()]
        count = np.array([low.size for low, _ in ends])
        owner = np.repeat(np.arange(len(ends)), count)
        rule = Panels(owner, *map(np.concatenate, zip(*ends, strict=True))).gauss
        place = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        both = np.zeros((2, len(count), count.max(), rule.nodes.shape[1]))
        both[:, owner, place] = rule
        tau, over_tau = gaussian_weights(*both.reshape(2, len(count), -1))
        return Rule(tau[..., None], over_tau)

    def _values(self, table: Table, field: Field) -> Array:
        """E s, -E s', E s^2, E[tau s - P s'] and the loss on a new sample given
        kappa, (5, P, N): of labels that are steps in closed form, else by one rule over tau."""
        rule = tau_rule(self.model, table.kappa, TAU_LEVEL)
        labels = labels_at(self.model, table.kappa, rule, self.order)
        given, check = (labels, self.task.loss), self.task.check_time
        s = scores(*given, field, check)
        new = average("residual", *given, field.unmoved, check)[2]
        return np.stack([s.mean, s.slope, s.square, s.pulled(field)[..., 0], new])

    def _multipliers(self, table: Table) -> Array:
        """Bounds, smooth in kappa, of what E s, -E s', E s^2 and E[tau s - P s'] are multiplied
        with in (6.2)-(6.3), and 1 for the loss, (5, 1, N)."""
        offsets = ((self.combine.T @ table.offsets) ** 2).sum(axis=0)
        loadings = (table.loadings**2 / self.loading_size[..., None]).sum(axis=(0, 1))
        features = self._features(table) / self.feature_size
        bounds = [(1 + offsets + loadings) / 2, features, features, (1 + features) / 2]
        return np.stack([*bounds, np.ones_like(features)])[:, None]

    def _features(self, table: Table) -> Array:
        return np.asarray(table.fractions @ (table.mu1**2 + table.mu2sq))


def first_panels(model: Model, folded: bool) -> Panels:
    """Panels over kappa to begin with, of one integral: they end at layers that are known, and are
    ``folded`` to kappa > 0 where the rest is the same."""
    layers = [at for at, _ in known_layers(model) if abs(at) < REACH]
    breaks = np.unique([*FIRST_BREAKS, *layers])
    return between(breaks[None, breaks >= 0] if folded else breaks[None])


def first_tau_panels(model: Model, kappa: Array) -> Panels:
    """Panels over tau to begin with at each kappa (1, N): they end at the target's kinks."""
    end = np.sqrt(np.maximum(UNLIKELY - kappa[0] ** 2, 1.0))[:, None]
    even = end * np.linspace(-1, 1, FIRST_TAU_PANELS + 1)
    kinks = np.clip(tau_kinks(model, kappa), -end, end)
    return between(np.sort(np.concatenate([even, kinks], axis=1), axis=1))


def _found(adapted: tuple[Panels, Array] | None) -> tuple[Panels, Array]:
    if adapted is None:
        raise GivenUp(Status.MEMORY)
    return adapted


def _moments(model: Model, kappa: Array, *, target: bool = True) -> Table:
    """The moments at all of kappa (N,), with the density for weights."""
    density = np.exp(-(kappa**2) / 2) / np.sqrt(2 * np.pi)
    return tabulate(model, Rule(kappa, density), target=target)

"""The labels given kappa, on quadrature nodes: what (6.1)-(6.3) need beside ``Table``.

Given kappa, tau ~ N(0, 1) in the K' directions of the target that are left, and y follows the
law of the labels at z = Gamma kappa + L tau.  The integral over tau is split where the target
jumps or has a kink.  Nothing here depends on the unknowns: (tau, y) is tabulated once, and the
local field is integrated afterwards, given tau: for a piecewise quadratic loss exactly.  Where
E[y | z] is piecewise constant, as that of a sign, the law of (y, tau) given the local field is
known in closed form, and its steps are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from solvers.quadrature import Rule, gauss_legendre, graded, trapezoid_tensor
from solvers.results import Array

from .activations import Activation
from .equivalence import Table, jumps, known_layers, layers, rules, tabulate
from .labels import REACH
from .network import Model
from .targets import remainder

# Nodes of every level, the last for all further ones: over kappa, trapezoidal; over tau likewise,
# or per panel with half the interval where it is split; of Student's t; per panel of a proximal
# map.  kappa is what may have thin layers, and goes on to panels that close in on them.
KAPPA = (24, 36, 54, 80, 128, 192, 288, 432)
TAU = (24, 36, 54, 80)
SPLIT = ((6, 6.2), (9, 7.2), (13, 8.2))
LONGEST = 2.0  # spacing of trapezoidal nodes, in widths of the thinnest layer known
DENSE = 128  # trapezoidal nodes: a thinner jump takes panels at once
MIXTURE = (12, 16, 24)
FIELD = (8, 11, 14, 17, 20, 24, 28)
GRADED = (6, 9, 14)
TERMS = 40  # of a series
LARGEST = 2**20  # nodes: 200 ms for one evaluation
TENSORS = {2: (12, 18, 27, 40, 60, 90), 3: (10, 15, 22, 33), 4: (8, 12, 18)}


class Steps(NamedTuple):
    """A piecewise constant E[y | z] as a function of tau: ``values`` (b + 1,) between its jumps
    at ``edges`` (N, b)."""

    edges: Array
    values: Array


class Series(NamedTuple):
    """E[y | z] as a series in He_k(tau) / sqrt(k!): coefficients (N, K), and the norm of what is
    left (N,)."""

    coefficients: Array
    rest: Array


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels at N nodes of kappa and T of tau.

    Attributes
    ----------
    table : Table
        The features' moments, and h, g and the spread of E[y | z].
    tau : (N, T, K')
    weights : (N, T), summing to 1 over tau
    mean : (N, T)
        E[y | z].  Labels +-1 are 1 with probability (1 + mean) / 2.
    variances, shares : (J,)
        The Gaussians of which the rest of a real label is a mixture; none for labels +-1.
    binary : bool
        Whether labels are +-1.
    order : int
        Nodes a panel along a proximal map, for losses that need it.
    steps : Steps, optional
        Of E[y | z], where it is piecewise constant and one direction tau is left.
    series : Series, optional
        Of E[y | z], where labels are +-1, it has no steps and one direction tau is left.
    """

    table: Table
    tau: Array
    weights: Array
    mean: Array
    variances: Array
    shares: Array
    binary: bool
    order: int
    steps: Steps | None = None
    series: Series | None = None

    @property
    def size(self) -> int:
        """Nodes of (kappa, tau, component) together."""
        return self.weights.size * (2 if self.binary else len(self.shares))


@lru_cache(maxsize=64)
def label_table(model: Model, level: int) -> LabelTable | None:
    """The table of the given ``level`` of refinement, or None past the last or the largest."""
    kappa = next(islice(_kappa_rules(model), level, None), None)
    return None if kappa is None else label_table_at(model, kappa, level)


def label_table_at(
    model: Model, kappa: Rule, level: int, over_tau: Rule | None = None
) -> LabelTable | None:
    """The table at the nodes of ``kappa``, of the given ``level`` in everything else, or None if
    it were too large.  ``over_tau`` has nodes and weights (N, T) of its own for one direction."""
    table = tabulate(model, kappa)
    alignment = model.geometry.gamma
    rest = remainder(alignment)
    if over_tau is None:
        tau, weights = _tau_rule(model, table.kappa, level)
    else:
        tau, weights = over_tau.nodes[..., None], over_tau.weights
    z = (alignment @ table.kappa)[:, :, None] + np.einsum("tk,nmk->tnm", rest, tau)
    mean = np.asarray(model.mean_label(*z))
    steps = _steps(model, table.kappa)
    summed = steps is None and model.binary and tau.shape[2] == 1 and rest.any()
    law = model.label_noise
    variances, shares = np.zeros(1), np.ones(1)
    if law is not None:
        variances, shares = law.components(_at(MIXTURE, level))
    if weights.size * len(shares) > LARGEST:
        return None
    return LabelTable(
        table=table,
        tau=tau,
        weights=weights,
        mean=mean,
        variances=variances + model.noise,
        shares=shares,
        binary=model.binary,
        order=_at(FIELD, level),
        steps=steps,
        series=_series(tau[..., 0], weights, mean) if summed else None,
    )


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
        fitting = [x for x in smooth if np.ptp(x.nodes) <= LONGEST * width * (x.nodes.size - 1)]
        if fitting and fitting[0].nodes.size <= DENSE:
            yield from (Rule(rule.nodes[:, 0], rule.weights) for rule in fitting)
        for n in GRADED:
            yield gauss_legendre(n, graded(layers(model), 9.0), 9.0)


def _at(sizes: Any, level: int) -> Any:
    return sizes[min(level, len(sizes) - 1)]


def _steps(model: Model, kappa: Array) -> Steps | None:
    """The steps at each kappa (K, N) of a mean label that is constant between its kinks."""
    target, alignment = model.mean_label, model.geometry.gamma
    rest = remainder(alignment)
    if not (isinstance(target, Activation) and target.kinks and rest.any()):
        return None
    kinks = np.asarray(target.kinks)
    ends = np.concatenate([[min(-REACH, kinks[0] - 1)], kinks, [max(REACH, kinks[-1] + 1)]])
    inside = np.linspace(0, 1, 18)[1:-1]
    values = target(ends[:-1, None] + np.diff(ends)[:, None] * inside)
    if np.ptp(values, axis=1).any():
        return None
    return Steps((kinks - (alignment @ kappa).T) / rest[0, 0], values[:, 0])


def _series(tau: Array, weights: Array, mean: Array) -> Series:
    """The series of ``mean`` at nodes ``tau``, (N, T) all, as long as they allow."""
    count = min(tau.shape[1] // 2, TERMS)
    before, hermite = np.zeros_like(tau), np.ones_like(tau)
    coefficients = np.empty((len(tau), count))
    for k in range(count):
        coefficients[:, k] = (weights * mean * hermite).sum(axis=1)
        before, hermite = hermite, (tau * hermite - np.sqrt(k) * before) / np.sqrt(k + 1)
    rest = (weights * mean**2).sum(axis=1) - (coefficients**2).sum(axis=1)
    return Series(coefficients, np.sqrt(np.maximum(rest, 0.0)))


def _tau_rule(model: Model, kappa: Array, level: int) -> tuple[Array, Array]:
    """Nodes (N, T, K') and weights (N, T) over tau at each kappa (K, N)."""
    alignment, target = model.geometry.gamma, model.mean_label
    rest = remainder(alignment)
    N, free = kappa.shape[1], rest.shape[1]
    if not rest.any():
        return np.zeros((N, 1, free)), np.ones((N, 1))
    if isinstance(target, Activation) and target.kinks:
        n, half_width = _at(SPLIT, level)
        breaks = (np.asarray(target.kinks) - (alignment @ kappa).T) / rest[0, 0]
        split = gauss_legendre(n, breaks, half_width)
        return split.nodes[..., None], split.weights
    rule = trapezoid_tensor(_at(TENSORS.get(free, TAU), level), free)
    shape = (N, *rule.nodes.shape)
    return np.broadcast_to(rule.nodes, shape), np.broadcast_to(rule.weights, shape[:2])

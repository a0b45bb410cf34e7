"""The labels given the nodes of a ``Table``, on T nodes of tau: what (6.1)-(6.3) need beside it.

At a node, tau ~ N(0, 1) in the q directions that the target has left, and y follows the law of the
labels at its arguments, centre + L tau.  The integral over tau is split where the target
jumps or has a kink.  Nothing here depends on the unknowns: (tau, y) is tabulated once, and the
local field is integrated afterwards, given tau: for a piecewise quadratic loss exactly.  Where
E[y | z] is piecewise constant, as that of a sign, the law of (y, tau) given the local field is
known in closed form, and its steps are kept.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, gauss_legendre, trapezoid_tensor

from ..equivalence import Table, known_layers, tabulate, target_jumps
from ..problem import LabelNoise, Model, Places

UNLIKELY = 64.0  # kappa^2 + tau^2: two Gaussians are beyond with probability 1e-14


# Of the rules that all points of a model share, by level: trapezoidal nodes over kappa and tau, and
# over each of several such directions, by their number; nodes on each panel between the target's
# kinks, with half the interval; nodes on each panel along a proximal map.
KAPPA, TAU = (24, 36, 54, 80, 128), (20, 24, 30, 38, 48)
TENSORS = {2: (12, 18, 27, 40, 60, 90), 3: (10, 15, 22, 33), 4: (8, 12, 18)}
SPLIT = (9, 7.0), (10, 7.4), (12, 7.7), (14, 8.0), (17, 8.3)
ORDERS = (6, 7, 8, 9, 10)


class Steps(NamedTuple):
    """A piecewise constant E[y | z] as a function of tau: ``values`` (b + 1,) between its jumps
    at ``edges`` (N, b)."""

    edges: Array
    values: Array


class ConditionalLabels(NamedTuple):
    """The law of the labels at each of N nodes.

    Attributes
    ----------
    tau, weights, mean : arrays (N, T, q), (N, T), (N, T)
        Nodes, weights that sum to 1, and E[y | z].  Labels +-1 are 1 with probability
        (1 + mean) / 2.
    variances, shares : arrays (M,)
        Of the Gaussians that are mixed around the mean of real labels.
    binary : bool
        Whether labels are +-1.
    order : int
        Nodes a panel along a proximal map, for losses that need it.
    noise : LabelNoise, optional
        What the Gaussians are a mixture for.
    steps : Steps, optional
        Of E[y | z], where it is piecewise constant and one direction tau is left.
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

    def at(self, rows: slice) -> "ConditionalLabels":
        """At those nodes alone."""
        tau, weights, mean = (part[rows] for part in (self.tau, self.weights, self.mean))
        steps = self.steps and self.steps._replace(edges=self.steps.edges[rows])
        return self._replace(tau=tau, weights=weights, mean=mean, steps=steps)


class LabelTable(NamedTuple):
    """The features' moments, and the labels at the same nodes."""

    table: Table
    labels: ConditionalLabels


@lru_cache(maxsize=256)
def is_odd(model: Model) -> bool:
    """Whether the mean feature and the mean label change sign with (kappa, tau), and nothing else
    does: at kappa < 0 all is as at kappa > 0 then, for a loss that treats signs alike."""
    if model.train_bias or model.inputs is not None:  # the neighbours of the one are not odd
        return False
    draw = np.random.default_rng(0)
    kappa = draw.standard_normal((24, model.geometry.r.shape[1]))
    there, back = (tabulate(model, Rule(x, np.ones(24)), target=False) for x in (kappa, -kappa))
    z = draw.standard_normal((model.target.dimension, 24))
    pairs = [(there.offsets, -back.offsets), (there.mu1, back.mu1), (there.mu2sq, back.mu2sq)]
    pairs += [(there.loadings, -back.loadings), (model.labels.mean(*z), -model.labels.mean(*-z))]
    return all(np.abs(a - b).max() <= 1e-12 * np.abs(a).max(initial=1e-300) for a, b in pairs)


def has_steps(model: Model) -> bool:
    """Whether E[y | x] is piecewise constant, and one direction tau is left."""
    nowhere = model.components.places(np.zeros((model.geometry.r.shape[1], 0)))
    return _steps(model, nowhere) is not None


def shared_tables(model: Model, folded: bool) -> Iterator[LabelTable]:
    """The tables that all points of a model share, the coarsest first, up to the largest: those
    whose nodes are not too far apart for the layers that are known.  They are ``folded`` to
    kappa > 0 where the rest is the same."""
    for level in range(len(TENSORS.get(model.geometry.r.shape[1], KAPPA))):
        if (table := shared_table(model, level, folded)) is not None:
            yield table


@lru_cache(maxsize=8)  # of up to 100 MB each
def shared_table(model: Model, level: int, folded: bool) -> LabelTable | None:
    """That of ``shared_tables`` of one level; None where its nodes are too far apart, or too
    many."""
    spikes = model.geometry.r.shape[1]
    nodes, weights = trapezoid_tensor(_of_level(TENSORS.get(spikes, KAPPA), level), spikes)
    if spikes == 1:
        widths = [width for _, width in known_layers(model)]
        if target_jumps(model) or nodes[1, 0] - nodes[0, 0] > 2 * min(widths, default=np.inf):
            return None
        nodes = nodes[:, 0]
    if folded:
        first = nodes.reshape(len(nodes), -1)[:, 0]  # 0 in the middle of a rule of an odd size
        half = first > -1e-9
        nodes, weights = nodes[half], np.where(first > 1e-9, 2.0, 1.0)[half] * weights[half]
    table = tabulate(model, Rule(nodes, weights))
    over_tau = tau_rule(model, table.places, level)
    if over_tau.weights.size > 3 * 2**20:  # one evaluation takes 300 ms
        return None
    order = _of_level(ORDERS, level)
    return LabelTable(table, labels_at(model, table.places, over_tau, order))


def labels_at(model: Model, at: Places, over_tau: Rule, order: int) -> ConditionalLabels:
    """The labels at N places, on nodes ``over_tau`` (N, T, q) with weights (N, T), for ``order``
    nodes a panel along a proximal map."""
    law = model.labels
    variances, shares = np.array(law.gaussians).T
    # real targets may grow: where z and tau are unlikely together nothing is averaged
    tau, weights = over_tau
    likely = (at.z**2).sum(axis=0)[:, None] + (tau**2).sum(axis=-1) < UNLIKELY
    likely |= law.binary
    tau, weights = np.where(likely[..., None], tau, 0.0), np.where(likely, weights, 0.0)
    mean = model.components.mean_label(law.combined_mean, at, np.moveaxis(tau, 2, 0))
    given = tau, weights, mean, variances, shares, law.binary, order
    return ConditionalLabels(*given, noise=law.added, steps=_steps(model, at))


def tau_rule(model: Model, at: Places, level: int) -> Rule:
    """Nodes (N, T, q) and weights (N, T) over tau at N places."""
    inputs, mean, N = model.components, model.labels.combined_mean, len(at.component)
    rest, free = inputs.rest, inputs.rest.shape[2]
    if not rest.any():
        return Rule(np.zeros((N, 1, free)), np.ones((N, 1)))
    if free == 1 and mean.planes:
        n, half_width = _of_level(SPLIT, level)
        split = gauss_legendre(n, tau_kinks(model, at), half_width, panel=5.7)
        return Rule(split.nodes[..., None], split.weights)
    if not mean.planes:
        rule = trapezoid_tensor(_of_level(TENSORS.get(free, TAU), level), free)
        return Rule(*(np.broadcast_to(part, (N, *part.shape)) for part in rule))
    owned = [at.component == j for j in np.unique(at.component)]
    each = [
        _of_level([*mean.rules(rest[at.component[own][0]])], level)(inputs.centre(at.at(own)))
        for own in owned
    ]
    count = max(one.weights.shape[-1] for one in each)
    nodes, weights = np.zeros((N, count, free)), np.zeros((N, count))
    for own, one in zip(owned, each, strict=True):
        nodes[own, : one.weights.shape[-1]] = one.nodes
        weights[own, : one.weights.shape[-1]] = one.weights
    return Rule(nodes, weights)


def tau_kinks(model: Model, at: Places) -> Array:
    """Where the mean label has kinks, as a function of the one tau at N places: (N, b)."""
    inputs, planes = model.components, model.labels.combined_mean.planes
    if not planes:
        return np.empty((len(at.component), 0))
    normals, places = map(np.array, zip(*planes, strict=True))
    rest, slope = np.abs(inputs.rest[..., 0]), inputs.rest[..., 0] @ normals.T
    slope = np.where(np.abs(slope) > 1e-12 * rest @ np.abs(normals.T), slope, 0.0)[at.component]
    from_centre, across = places - inputs.centre(at).T @ normals.T, slope != 0
    # of a component that leaves nothing of the target across a plane, beyond all nodes
    far = np.copysign(1e3, from_centre)
    return np.where(across, from_centre / np.where(across, slope, 1.0), far)


def _of_level(sizes: Sequence[Any], level: int) -> Any:
    """That of a level, or of the last."""
    return sizes[min(level, len(sizes) - 1)]


def _steps(model: Model, at: Places) -> Steps | None:
    """The steps at N places of a mean label that is constant between its kinks."""
    target = model.labels.combined_mean
    if not (target.kinks and model.components.rest.any()):
        return None
    kinks = np.asarray(target.kinks)
    # arguments further out are met with probability 1e-38
    ends = np.concatenate([[min(-13.0, kinks[0] - 1)], kinks, [max(13.0, kinks[-1] + 1)]])
    inside = np.linspace(0, 1, 18)[1:-1]
    values = target(ends[:-1, None] + np.diff(ends)[:, None] * inside)
    if np.ptp(values, axis=1).any():
        return None
    return Steps(tau_kinks(model, at), values[:, 0])

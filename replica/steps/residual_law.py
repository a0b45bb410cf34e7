"""The law of the residual of a sample, rho = y - mu_0(kappa), on few nodes.  docs/theory.md 16, 18

At every kappa, E[y | z] - mu_0 is integrated over the rest tau of the target's arguments, on panels
that are halved until averages settle, those of one direction within those of another.  It is
carried, with the moments of the input along the directions that the labels know, to nodes that all
kappa share (``residual_nodes``): block after block, as there may be millions of nodes of tau.
"""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, trapezoid_tensor

from ..problem import Components, GaussianMixture, LabelLaw
from .residual_nodes import Block, on_few_nodes
from .step import Step
from .tau_panels import SHORTEST, Nest, TauNodes

AT_ONCE = 2**14  # nodes of tau, whose numbers stay in the processor's cache


class ResidualLaw(NamedTuple):
    """The law of rho given kappa: nodes rho (N, m), or (1, m) for all kappa, with the weights
    (D + 1, D + 1, N, m) of E x_a x_b f(rho), x = (1, projections)."""

    rho: Array
    weights: Array


class KnownInputs(NamedTuple):
    """What the batch of a step sees of its inputs, given kappa, the projection on the spike u.

    Attributes
    ----------
    law : GaussianMixture or None
    components : Components
        On u and the directions zeta that the D coordinates which labels know have beside it.
    known : (D or D + 1, S)
        These coordinates and the direction of the rest of u, where u has one, in u and zeta.
    """

    law: GaussianMixture | None
    components: Components
    known: Array


def known_inputs(step: Step, t: int, unit: Array) -> KnownInputs:
    """Of the batch of step t, whose rows have their spike along ``unit``, of which the first D
    coordinates are those of the inputs."""
    D, length = step.known, np.linalg.norm(unit[step.known :])
    gamma = unit[:D, None]
    components = Components.of(step.inputs, gamma, step.labels_at(t).combinations)
    known = components.basis
    if length > SHORTEST:  # zeta has a direction of that length
        rest = np.append(length, -gamma[:, 0] @ known[:, 1:] / length)
        known = np.vstack([known, rest])
    return KnownInputs(step.inputs, components, known)


def residuals(
    labels: LabelLaw, inputs: KnownInputs, rule: Rule, offset: Array, root: float, level: int
) -> ResidualLaw:
    """The law of rho = y - ``offset`` (N,), or (1,), at the N nodes of ``rule`` for z in all
    components of the inputs.  Eq. (19.5)

    Averages vary with rho on a scale 1 / root: the pencil has 1 / (1 + x root^2 rho^2), x <= 1.

    Raises
    ------
    QuadratureError
        If the target varies too quickly.
    """
    of = inputs.components
    places, weights = of.on(rule)
    offset = np.broadcast_to(offset, weights.shape)
    power, q = labels.averages(inputs.law).power, of.rest.shape[2]
    # where nothing of tau enters
    plain = of.mean_label(labels.combined_mean, places, np.zeros((q, *weights.shape, 1)))[:, 0]
    parts = []
    for j, L in enumerate(of.rest):
        own = np.flatnonzero(places.component == j)
        centre, L = of.centre(places.at(own)), L[:, L.any(axis=0)]
        some = Some(labels, power, centre, L, plain[own], offset[own], root)
        parts.append((own, some, _over_tau(some, level)))

    x = np.concatenate([np.ones((1, len(weights))), inputs.known @ of.special(places)])
    first, second = np.triu_indices(len(x))
    # of the other directions the mean and the covariance given tau
    seen = inputs.known @ of.root
    apart = np.ones((len(seen), 1, seen.shape[2]))
    apart[:, 0, :q] = ~of.rest.any(axis=1)
    left = np.pad((seen * apart) @ seen.swapaxes(1, 2), [(0, 0), (1, 0), (1, 0)])[:, first, second]

    def blocks() -> Iterator[Block]:
        for j, (own, some, (*_, nodes)) in enumerate(parts):
            along = seen[j][:, :q][:, of.rest[j].any(axis=0)]
            for at, tau, more in nodes:
                check_time()
                here = x[:, own[at]]
                here[1:] += along @ tau
                moments = here[first] * here[second]
                moments += left[j][:, None]
                moments *= weights[own[at]] * more
                yield Block(own[at], some.residual(at, tau), moments)

    lows, highs, _ = zip(*(over_tau for *_, over_tau in parts), strict=True)
    one = not of.rest.any() and not any(variance for variance, _ in labels.gaussians)
    ends = None if one else (min(lows), max(highs))
    rho, moments = on_few_nodes(labels, offset, ends, blocks(), len(first), root, level)
    matrix = np.empty((len(x), len(x), *moments.shape[1:]))
    matrix[first, second] = matrix[second, first] = moments
    return ResidualLaw(rho, matrix)


class Some(NamedTuple):
    """Labels, of that ``power`` E y^2, at N places of one component: E[y | z] at the arguments
    ``centre`` (T, N) + L tau, L (T, q), or ``plain`` (N,) where there is no tau; and the ``offset``
    (N,) and the scale 1 / ``root`` of their residuals."""

    labels: LabelLaw
    power: float
    centre: Array
    L: Array
    plain: Array
    offset: Array
    root: float

    def residual(self, at: NDArray[np.int64], tau: Array) -> Array:
        """E[y | z] less the offset at n of the places, with tau (q, n)."""
        if not self.L.shape[1]:
            return np.asarray(self.plain[at] - self.offset[at])
        mean = self.labels.combined_mean(*(self.centre[:, at] + self.L @ tau))
        return np.asarray(mean - self.offset[at])


class OverTau(NamedTuple):
    """The nodes of tau at all places, in blocks, and the smallest and largest residual there."""

    low: float
    high: float
    nodes: Iterator[TauNodes]


def _over_tau(of: Some, level: int) -> OverTau:
    """Nodes of tau: along several of them, on finer and finer levels, by the target's own rules
    while these have few nodes a direction, then on panels."""
    q = of.L.shape[1]
    if not q:
        return _by_rule(of, lambda centre: Rule(np.zeros((1, 0)), np.ones(1)))
    if q == 1:
        return _on_panels(of, 10.0 ** -min(8 + level, 13))
    # panels have no more than 128 nodes a direction
    own = takewhile(
        lambda rule: rule(of.centre[:, :1]).weights.shape[-1] <= 128**q,
        of.labels.combined_mean.rules(of.L),
    )
    few = list(islice(own, level + 1))
    if len(few) > level:
        return _by_rule(of, few[level])
    # left by Gauss's rule; Kronrod's, the one used, is far better
    return _on_panels(of, 10.0 ** -min(6 + level - len(few), 8))


def _by_rule(of: Some, rule_at: Callable[[Array], Rule]) -> OverTau:
    """The same nodes at all places, or those that a rule has at each."""
    N, M = of.centre.shape[1], rule_at(of.centre[:, :1]).weights.shape[-1]
    some = max(1, AT_ONCE // M)

    def nodes() -> Iterator[TauNodes]:
        for at in np.split(np.arange(N), range(some, N, some)):
            tau, weights = rule_at(of.centre[:, at])
            tau = np.broadcast_to(tau, (len(at), *tau.shape[-2:]))
            weights = np.broadcast_to(weights, (len(at), M))
            for part in (slice(k, k + AT_ONCE) for k in range(0, M, AT_ONCE)):
                more = weights[:, part]
                own = tau[:, part].reshape(more.size, tau.shape[2]).T
                yield np.repeat(at, more.shape[1]), own, more.ravel()

    low, high = np.inf, -np.inf
    for at, tau, _ in nodes():
        check_time()
        rho = of.residual(at, tau)
        low, high = min(low, rho.min()), max(high, rho.max())
    return OverTau(low, high, nodes())


def _on_panels(of: Some, tol: float) -> OverTau:
    """Nodes on panels that are halved until averages settle to ``tol``."""
    labels, offset, noise = of.labels, of.offset, min(v for v, _ in of.labels.gaussians)
    root = of.root / np.sqrt(1 + of.root**2 * noise)  # averages over the noise vary no faster
    # of labels that grow, moments far out in kappa are large, and known to their own rounding
    few, fourth = trapezoid_tensor(24, of.L.shape[1]), np.zeros(len(offset))
    for at, tau, weights in _by_rule(of, lambda centre: few).nodes:
        fourth += np.bincount(at, weights * of.residual(at, tau) ** 4, len(offset))
    size = np.maximum(np.sqrt(of.power) + np.abs(offset).max(), fourth**0.25)
    low, high = np.inf, -np.inf

    def averages(z: Array, owner: NDArray[np.int64]) -> Array:
        """Such as the pencil takes, and those that a moment of rho does."""
        nonlocal low, high
        rho = labels.combined_mean(*z) - offset[owner, None]
        low, high = min(low, rho.min()), max(high, rho.max())
        inverse, power = 1 / (1 + (root * rho) ** 2), (rho / size[owner, None]) ** 2
        return np.stack([inverse, root * rho * inverse, power, power**2])

    each = np.arange(len(offset))
    nest = Nest(averages, labels, each, of.centre, of.L, np.full(len(offset), tol))
    panels, _ = nest.adapted()
    return OverTau(low, high, nest.nodes(panels))

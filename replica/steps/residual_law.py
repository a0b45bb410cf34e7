"""The law of the residual of a sample, rho = y - mu_0(kappa), on few nodes.  docs/theory.md 16, 18

At every kappa, E[y | z] - mu_0 is integrated over the rest tau of the target's arguments, on panels
that are halved until averages settle, those of one direction within those of another.  It is
carried, with the moments of the input along the directions that the labels know, to nodes that all
kappa share (``residual_nodes``).
"""

from collections.abc import Callable
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive import Panels, adapt, between
from solvers.quadrature import QuadratureError
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, gaussian_density, trapezoid_tensor

from ..problem import Components, GaussianMixture, LabelLaw
from .residual_nodes import with_noise
from .step import Step

SHORTEST = 1e-7  # part of u beside the target's directions: less is rounding
TAU_PANELS = np.array([-9.2, -6.0, -3.0, 0.0, 3.0, 6.0, 9.2])  # to begin with


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
    check_time()
    of = inputs.components
    places, weights = of.on(rule)
    offset = np.broadcast_to(offset, weights.shape)[:, None]
    power, parts = labels.averages(inputs.law).power, []
    for j, L in enumerate(of.rest):
        own, entering = places.component == j, L.any(axis=0)
        some = Some(labels, power, of.centre(places.at(own)), L[:, entering], offset[own], root)
        along, more = np.zeros((0, len(rule.weights), 1)), np.ones((len(rule.weights), 1))
        if entering.sum() == 1:
            along, more = _on_panels(some, 10.0 ** -min(8 + level, 13))
        elif entering.any():
            along, more = _beside(some, level)
        tau = np.zeros((L.shape[1], *more.shape))
        tau[entering] = along
        parts.append((tau, more))
    count = max(more.shape[1] for _, more in parts)
    # of components that take fewer nodes, the others have no weight
    tau = np.concatenate([_padded(tau, count) for tau, _ in parts], axis=1)
    weights = weights[:, None] * np.concatenate([_padded(more, count) for _, more in parts])

    mean = of.mean_label(labels.combined_mean, places, tau)
    # of the other directions the mean and the covariance given tau
    seen = inputs.known @ of.root
    x = (inputs.known @ of.special(places))[..., None]
    x = x + places.times(seen[..., : len(tau)], tau)
    x = np.concatenate([np.ones((1, *mean.shape)), x])
    apart = np.ones((len(seen), 1, seen.shape[2]))
    apart[:, 0, : len(tau)] = ~of.rest.any(axis=1)
    left = (seen * apart) @ seen.swapaxes(1, 2)
    first, second = np.triu_indices(len(x))
    more = np.pad(left, [(0, 0), (1, 0), (1, 0)])[places.component]
    moments = np.empty((len(first), *mean.shape))
    for moment, a, b in zip(moments, first, second, strict=True):  # of all at once, copies are GBs
        np.multiply(x[a], x[b], out=moment)
        moment += more[:, a, b, None]
        moment *= weights
    if labels.channel:
        rho = np.concatenate([1 - offset, -1 - offset], axis=1)
        moments = np.stack([(moments * (1 + s * mean)).sum(axis=2) / 2 for s in (1, -1)], axis=2)
    else:
        rho, moments = with_noise(labels, mean - offset, moments, root, level)
    size = len(x)
    del x, tau, parts
    matrix = np.empty((size, size, *moments.shape[1:]))
    matrix[first, second] = matrix[second, first] = moments
    return ResidualLaw(rho, matrix)


def _padded(nodes: Array, count: int) -> Array:
    """``nodes`` (..., n) with zeros up to ``count``."""
    return np.pad(nodes, [(0, 0)] * (nodes.ndim - 1) + [(0, count - nodes.shape[-1])])


class Some(NamedTuple):
    """Labels, of that ``power`` E y^2, at N nodes of one component: arguments ``centre`` (T, N) +
    L tau, L (T, q); and the ``offset`` (N, 1) and the scale 1 / ``root`` of their residuals."""

    labels: LabelLaw
    power: float
    centre: Array
    L: Array
    offset: Array
    root: float


def _on_panels(of: Some, tol: float) -> tuple[Array, Array]:
    """Nodes tau (q, N, m) and weights (N, m): on panels that are halved until averages settle to
    ``tol``."""
    labels, power, centre, L, offset, root = of
    noise = min(variance for variance, _ in labels.gaussians)
    root = root / np.sqrt(1 + root**2 * noise)  # averages over the noise vary no faster
    # of labels that grow, moments far out in kappa are large, and known to their own rounding
    few = trapezoid_tensor(24, L.shape[1])
    rho = labels.combined_mean(*(centre[..., None] + (L @ few.nodes.T)[:, None])) - offset
    size = np.sqrt(power) + np.abs(offset).max()
    size = np.maximum(size, (rho**4 @ few.weights) ** 0.25)

    def averages(z: Array, owner: Array) -> Array:
        """Such as the pencil takes, and those that a moment of rho does."""
        rho, unit = labels.combined_mean(*z) - offset[owner], size[owner, None]
        inverse = 1 / (1 + (root * rho) ** 2)
        return np.stack([inverse, root * rho * inverse, (rho / unit) ** 2, (rho / unit) ** 4])

    each = np.arange(centre.shape[1])
    return _nested(averages, labels, each, centre, L, tol)[:2]


def _nested(
    averages: Callable[[Array, Array], Array],
    labels: LabelLaw,
    owner: NDArray[np.int64],
    centre: Array,
    L: Array,
    tol: Array | float,
) -> tuple[Array, Array, Array]:
    """Nodes tau (K', M, m) and weights (M, m) about each ``centre`` (K, M), and the averages (k, M)
    there of ``averages`` (z, owner), which has its kinks at the planes of the target of ``labels``:
    on panels of the first of tau, those of the others within each of its nodes."""
    M, along, rest = centre.shape[1], L[:, 0], L[:, 1:]
    tol = np.broadcast_to(tol, M)

    def within(at: Array, whose: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """The same for the others, at values ``at`` (n, l) of the first: to few digits where it
        weighs little."""
        z = centre[:, whose, None] + along[:, None, None] * at
        inner = (0.01 * tol[whose, None] / gaussian_density(at)).ravel()
        owners = np.repeat(owner[whose], at.shape[1])
        return _nested(averages, labels, owners, z.reshape(len(z), -1), rest, inner)

    def values(panels: Panels) -> Array:
        if not rest.size:
            z = centre[:, panels.owner, None] + along[:, None, None] * panels.nodes
            return averages(z, owner[panels.owner])
        nodes = panels.nodes
        some = np.split(np.arange(len(nodes)), range(64, len(nodes), 64))  # at once
        parts = [within(nodes[i], panels.owner[i])[2] for i in some]
        return np.concatenate(parts, axis=1).reshape(-1, *nodes.shape)

    breaks = np.broadcast_to(TAU_PANELS, (M, len(TAU_PANELS)))
    # planes that the others do not cross
    planes = labels.combined_mean.planes
    own = [(np.array(v), t) for v, t in planes if not (np.abs(v @ rest) > SHORTEST).any()]
    own = [(v, t) for v, t in own if abs(v @ along) > SHORTEST]
    places = [((t - v @ centre) / (v @ along))[:, None] for v, t in own]
    breaks = np.concatenate([breaks, *places], axis=1).clip(TAU_PANELS[0], TAU_PANELS[-1])
    adapted = adapt(values, between(np.sort(breaks, axis=1)), tol, 2**17)
    if adapted is None:
        raise _too_quick(labels)
    tau, weights = adapted[0].gaussian()
    if not rest.size:
        return tau[None], weights, adapted[1]
    inner, more, _ = within(tau, np.arange(M))
    tau = np.repeat(tau[..., None], more.shape[1], axis=2).reshape(1, M, -1)
    weights = (weights[..., None] * more.reshape(*weights.shape, -1)).reshape(M, -1)
    return np.concatenate([tau, inner.reshape(len(inner), M, -1)]), weights, adapted[1]


def _beside(of: Some, level: int) -> tuple[Array, Array]:
    """Such nodes and weights along several columns, on finer and finer levels: by the target's own
    rules while these have few nodes a direction, then on panels."""
    labels, L, N = of.labels, of.L, of.centre.shape[1]
    rules = (rule_at(of.centre) for rule_at in labels.combined_mean.rules(L))
    # panels have no more than 128 nodes a direction
    few = takewhile(lambda rule: rule.weights.shape[-1] <= 128 ** L.shape[1], rules)
    own = list(islice(few, level + 1))
    if len(own) <= level:
        # left by Gauss's rule; Kronrod's, the one used, is far better
        tol = 10.0 ** -min(6 + level - len(own), 8)
        return _on_panels(of, tol)
    rule = own[level]
    if N * rule.weights.shape[-1] > 2**21:  # values of the target at once
        raise _too_quick(labels)
    weights = np.broadcast_to(rule.weights, (N, rule.weights.shape[-1]))
    nodes = np.broadcast_to(rule.nodes, (*weights.shape, L.shape[1]))
    return np.moveaxis(nodes, -1, 0), weights


def _too_quick(labels: LabelLaw) -> QuadratureError:
    """What is raised where no rule is fine enough."""
    return QuadratureError(
        f"the averages over the batch of a step: target {labels.target.name} less the network's "
        "output varies too quickly at these rates; the sRF (--model srf) needs no such averages"
    )

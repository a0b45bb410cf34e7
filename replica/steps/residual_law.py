"""The law of the residual of a sample, rho = y - mu_0(kappa), on few nodes.  docs/theory.md 16, 18

At every kappa, E[y | z] - mu_0 is integrated over the rest tau of the target's arguments, on panels
that are halved until averages settle, those of one direction within those of another.  It is
carried, with the moments of the input along the directions that the labels know, to nodes that all
kappa share.  What label noise adds is one more such step, the same for all kappa: a matrix between
two sets of nodes.
"""

from collections.abc import Callable
from itertools import islice, product, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.typing import NDArray

from solvers.adaptive import Panels, adapt_gaussian, between
from solvers.chebyshev import to_coefficients
from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import HALF_WIDTH, Rule, gaussian_density, trapezoid, trapezoid_tensor

from ..problem import Components, GaussianMixture, LabelLaw, MultiIndex, Places
from .step import Step

SHORTEST = 1e-7  # part of u beside the target's directions: less is rounding
RHO_NODES = (16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40)  # on a panel, on finer levels
TAU_PANELS = np.array([-9.2, -6.0, -3.0, 0.0, 3.0, 6.0, 9.2])  # to begin with
# Noise over the square of 1 / root, from which a rule for rho needs fewer nodes than one for the
# noise.
WIDE_NOISE = 0.5


class ResidualLaw(NamedTuple):
    """The law of rho given kappa: nodes rho (N, m), or (1, m) for all kappa, with the weights
    (D + 1, D + 1, N, m) of E x_a x_b f(rho), x = (1, projections)."""

    rho: Array
    weights: Array


class Nodes(NamedTuple):
    """Panels of ``length`` in arcsinh(root rho), from ``low`` on, each with ``points`` Chebyshev
    nodes that interpolate smooth functions of rho."""

    root: float
    low: float
    length: float
    panels: int
    points: int

    @property
    def rho(self) -> Array:
        """All nodes, (m,)."""
        place = np.arange(self.panels)[:, None] + (chebpts1(self.points) + 1) / 2
        return np.asarray(np.sinh(self.low + self.length * place.ravel()) / self.root)

    def carry(self, rho: Array, weights: Array) -> Array:
        """Weights (l, N, m) on these nodes of the same averages of smooth functions as those with
        ``weights`` (l, N, n) at ``rho`` (N, n).

        Panels keep the rounding of large values out of the small weights of the tails.
        """
        (N, n), kinds = rho.shape, len(weights)
        place = (np.arcsinh(self.root * rho) - self.low) / self.length
        panel = np.clip(place.astype(int), 0, self.panels - 1)
        total = np.zeros((N, kinds, self.panels, self.points))
        block = 2**14  # values at once: with their polynomials they take a few MB
        some, few = max(1, block // n), min(n, block)
        for k, j in product(range(0, N, some), range(0, n, few)):
            at = slice(k, k + some), slice(j, j + few)
            basis = chebvander(2 * (place[at] - panel[at]) - 1, self.points - 1)
            own = weights[:, *at].swapaxes(0, 1)
            for p in range(self.panels):
                total[at[0], :, p] += (own * (panel[at] == p)[:, None]) @ basis
        total = total @ to_coefficients(self.points)
        return np.asarray(total.swapaxes(0, 1).reshape(kinds, N, -1))


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

    def on(self, rule: Rule) -> tuple[Places, Array]:
        """Nodes and weights of a rule for z, as ``Components`` have them."""
        return self.components.on(rule)

    def special(self, at: Places) -> Array:
        """Means of kappa and zeta."""
        return self.components.special(at)


def known_inputs(step: Step, t: int, unit: Array) -> KnownInputs:
    """Of the batch of step t, whose rows have their spike along ``unit``, of which the first D
    coordinates are those of the inputs."""
    D, length = step.known, np.linalg.norm(unit[step.known :])
    gamma = unit[:D, None]
    components = Components.of(step.inputs, gamma, step.labels_at(t).target.dimension)
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
    of, (places, weights) = inputs.components, inputs.on(rule)
    offset = np.broadcast_to(offset, weights.shape)[:, None]
    power = labels.averages(inputs.law).power
    parts = []
    for j, L in enumerate(of.rest):
        own = places.component == j
        centre = of.centre(places.at(own))
        tau, more = np.zeros((L.shape[1], len(rule.weights), 1)), np.ones((len(rule.weights), 1))
        entering = L.any(axis=0)
        if entering.any():
            along = L[:, entering]
            of_labels = labels, power, centre, along, offset[own], root, level
            tau_entering, more = _beside(*of_labels) if along.shape[1] > 1 else _alone(*of_labels)
            tau = np.zeros((L.shape[1], *more.shape))
            tau[entering] = tau_entering
        parts.append((tau, more))
    count = max(more.shape[1] for _, more in parts)
    # of components that take fewer nodes, the others have no weight
    tau = np.concatenate([_padded(tau, count) for tau, _ in parts], axis=1)
    weights = weights[:, None] * np.concatenate([_padded(more, count) for _, more in parts])

    arguments = of.centre(places)[..., None] + _combined(of.rest, places, tau)
    mean = of.mean_label(labels.mean, places.component, arguments)
    # of the other directions the mean and the covariance given tau
    seen = inputs.known @ of.root
    x = (inputs.known @ inputs.special(places))[..., None]
    x = x + _combined(seen[..., : len(tau)], places, tau)
    x = np.concatenate([np.ones((1, *mean.shape)), x])
    apart = np.ones((len(seen), 1, seen.shape[2]))
    apart[:, 0, : len(tau)] = ~of.rest.any(axis=1)
    left = (seen * apart) @ seen.swapaxes(1, 2)
    first, second = np.triu_indices(len(x))
    moments = np.stack([x[a] * x[b] * weights for a, b in zip(first, second, strict=True)])
    more = np.pad(left, [(0, 0), (1, 0), (1, 0)])[:, first, second]
    moments += more[places.component].T[..., None] * weights
    if labels.channel:
        rho = np.concatenate([1 - offset, -1 - offset], axis=1)
        moments = np.stack([(moments * (1 + s * mean)).sum(axis=2) / 2 for s in (1, -1)], axis=2)
    else:
        rho, moments = _with_noise(labels, mean - offset, moments, root, level)
    matrix = np.empty((len(x), len(x), *moments.shape[1:]))
    matrix[first, second] = matrix[second, first] = moments
    return ResidualLaw(rho, matrix)


def _padded(nodes: Array, count: int) -> Array:
    """``nodes`` (..., n) with zeros up to ``count``."""
    return np.pad(nodes, [(0, 0)] * (nodes.ndim - 1) + [(0, count - nodes.shape[-1])])


def _combined(L: Array, places: Places, tau: Array) -> Array:
    """L tau (T, N, m) at places of the components that L (J, T, q) is of, for tau (q, N, m)."""
    if len(L) == 1:
        return np.tensordot(L[0], tau, axes=1)
    return np.einsum("ntq,qnm->tnm", L[places.component], tau)


def _alone(
    labels: LabelLaw,
    power: float,
    centre: Array,
    L: Array,
    offset: Array,
    root: float,
    level: int,
) -> tuple[Array, Array]:
    """Nodes tau (1, N, m) and weights (N, m) along the one column of L."""
    return _on_panels(labels, power, centre, L, offset, root, 10.0 ** -min(8 + level, 13))


def _on_panels(
    labels: LabelLaw,
    power: float,
    centre: Array,
    L: Array,
    offset: Array,
    root: float,
    tol: float,
) -> tuple[Array, Array]:
    """Nodes tau (K', N, m) and weights (N, m) along the columns of L, where the target has its
    arguments ``centre`` (T, N): on panels that are halved until averages settle to ``tol``, for
    labels of that ``power``."""
    noise = min(variance for variance, _ in labels.gaussians)
    root = root / np.sqrt(1 + root**2 * noise)  # averages over the noise vary no faster
    # of labels that grow, moments far out in kappa are large, and known to their own rounding
    few = trapezoid_tensor(24, L.shape[1])
    rho = labels.mean(*(centre[..., None] + (L @ few.nodes.T)[:, None])) - offset
    size = np.sqrt(power) + np.abs(offset).max()
    size = np.maximum(size, (rho**4 @ few.weights) ** 0.25)

    def averages(z: Array, owner: Array) -> Array:
        """Such as the pencil takes, and those that a moment of rho does."""
        rho, unit = labels.mean(*z) - offset[owner], size[owner, None]
        inverse = 1 / (1 + (root * rho) ** 2)
        return np.stack([inverse, root * rho * inverse, (rho / unit) ** 2, (rho / unit) ** 4])

    each = np.arange(centre.shape[1])
    try:
        return _nested(averages, labels.mean.planes, each, centre, L, tol)[:2]
    except OverflowError:
        raise _too_quick(labels) from None


def _nested(
    averages: Callable[[Array, Array], Array],
    planes: Any,
    owner: NDArray[np.int64],
    centre: Array,
    L: Array,
    tol: Array | float,
) -> tuple[Array, Array, Array]:
    """Nodes tau (K', M, m) and weights (M, m) about each ``centre`` (K, M), and the averages (k, M)
    there of ``averages`` (z, owner), which has its kinks at the target's ``planes``: on panels of
    the first of tau, those of the others within each of its nodes.

    Raises
    ------
    OverflowError
        If that takes too many panels.
    """
    M, along, rest = centre.shape[1], L[:, 0], L[:, 1:]
    tol = np.broadcast_to(tol, M)

    def within(at: Array, whose: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """The same for the others, at values ``at`` (n, l) of the first: to few digits where it
        weighs little."""
        z = centre[:, whose, None] + along[:, None, None] * at
        inner = (0.01 * tol[whose, None] / gaussian_density(at)).ravel()
        owners = np.repeat(owner[whose], at.shape[1])
        return _nested(averages, planes, owners, z.reshape(len(z), -1), rest, inner)

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
    own = [(np.array(v), t) for v, t in planes if not (np.abs(v @ rest) > SHORTEST).any()]
    own = [(v, t) for v, t in own if abs(v @ along) > SHORTEST]
    places = [((t - v @ centre) / (v @ along))[:, None] for v, t in own]
    breaks = np.concatenate([breaks, *places], axis=1).clip(TAU_PANELS[0], TAU_PANELS[-1])
    adapted = adapt_gaussian(values, between(np.sort(breaks, axis=1)), tol, 2**17)
    if adapted is None:
        raise OverflowError
    tau, weights = adapted[0].gaussian()
    if not rest.size:
        return tau[None], weights, adapted[1]
    inner, more, _ = within(tau, np.arange(M))
    tau = np.repeat(tau[..., None], more.shape[1], axis=2).reshape(1, M, -1)
    weights = (weights[..., None] * more.reshape(*weights.shape, -1)).reshape(M, -1)
    return np.concatenate([tau, inner.reshape(len(inner), M, -1)]), weights, adapted[1]


def _beside(
    labels: LabelLaw,
    power: float,
    centre: Array,
    L: Array,
    offset: Array,
    root: float,
    level: int,
) -> tuple[Array, Array]:
    """Such nodes and weights along several columns, on finer and finer levels: by the target's own
    rules while these have few nodes a direction, then on panels."""
    target, N = labels.mean, centre.shape[1]
    assert isinstance(target, MultiIndex)
    rules = (rule_at(centre) for rule_at in target.rules(L))
    # panels have no more than 128 nodes a direction
    few = takewhile(lambda rule: rule.weights.shape[-1] <= 128 ** L.shape[1], rules)
    own = list(islice(few, level + 1))
    if len(own) <= level:
        # left by Gauss's rule; Kronrod's, the one used, is far better
        tol = 10.0 ** -min(6 + level - len(own), 8)
        return _on_panels(labels, power, centre, L, offset, root, tol)
    rule = own[level]
    if N * rule.weights.shape[-1] > 2**21:  # values of the target at once
        raise _too_quick(labels)
    weights = np.broadcast_to(rule.weights, (N, rule.weights.shape[-1]))
    nodes = np.broadcast_to(rule.nodes, (*weights.shape, L.shape[1]))
    return np.moveaxis(nodes, -1, 0), weights


def _too_quick(labels: LabelLaw) -> QuadratureError:
    """What is raised where no rule is fine enough."""
    return QuadratureError(
        f"the averages over the batch of a later step: target {labels.target.name} less the "
        "network's output varies too quickly at these rates"
    )


def _with_noise(
    labels: LabelLaw, mean: Array, moments: Array, root: float, level: int
) -> tuple[Array, Array]:
    """Nodes rho (1, m), or (N, 1), and the weights there (l, N, m), of values ``mean`` (N, n) with
    ``moments`` (l, N, n) as weights and the labels' noise."""
    widest = max(variance for variance, _ in labels.gaussians)
    if mean.shape[1] == 1 and not widest:
        return mean, moments
    plain = _nodes(mean, 0.0, root, RHO_NODES[level])
    carried = plain.carry(mean, moments)
    if not widest:
        return plain.rho[None], carried
    nodes = _nodes(mean, HALF_WIDTH * np.sqrt(widest), root, RHO_NODES[level])
    blur = sum(
        share * _blur(nodes, plain.rho, variance, root, level)
        for variance, share in labels.gaussians
    )
    return nodes.rho[None], carried @ blur


def _nodes(values: Array, margin: float, root: float, count: int) -> Nodes:
    """Nodes for functions of the scale 1 / root, from ``margin`` below all values to as much
    above."""
    low, high = float(values.min()) - margin, float(values.max()) + margin
    # more than one panel, as tails have tiny weights, which are lost in rounding on longer ones
    root = max(root, 5.0 / max(-low, high, 1e-300))
    low, high = float(np.arcsinh(root * low)), float(np.arcsinh(root * high))
    panels = max(1, int(np.ceil((high - low) / 1.5)))
    return Nodes(root, low, max((high - low) / panels, 1e-300), panels, count)


def _blur(nodes: Nodes, mean: Array, noise: float, root: float, level: int) -> Array:
    """Weights (M, m) on ``nodes`` of each of ``mean`` (M,) + Gaussian ``noise`` (a variance)."""
    deviation, blur = np.sqrt(noise), np.empty((len(mean), len(nodes.rho)))
    # functions vary on the scale 1 / root near 0 alone
    near = (np.abs(mean) < HALF_WIDTH * deviation) & (root * deviation > np.sqrt(WIDE_NOISE))
    for which, values in ((near, _by_density), (~near, _by_values)):
        if which.any():
            rho, weights = values(mean[which], deviation, root, level)
            blur[which] = nodes.carry(rho, weights[None])[0]
    return blur


def _by_values(mean: Array, deviation: float, root: float, level: int) -> tuple[Array, Array]:
    """Values and weights (M, n) of each of ``mean`` (M,) and a Gaussian of that ``deviation``: by
    values of the Gaussian."""
    scale = min(root * deviation, np.sqrt(WIDE_NOISE))
    xi, w = trapezoid(int((22 + 50 * scale) * (1 + level / 8)) if deviation else 1)
    rho = mean[:, None] + deviation * xi
    return rho, np.broadcast_to(w, rho.shape)


def _by_density(mean: Array, deviation: float, root: float, level: int) -> tuple[Array, Array]:
    """The same by its density, on values that are evenly spaced in arcsinh(root rho)."""
    margin = HALF_WIDTH * deviation
    low, high = np.arcsinh(root * np.array([mean.min() - margin, mean.max() + margin]))
    narrowest = deviation * root / np.sqrt(1 + (root * np.abs(mean).max()) ** 2)
    spacing = min(0.15, 0.6 * narrowest) * 0.85**level
    u, step = np.linspace(low, high, int(np.ceil((high - low) / spacing)) + 1, retstep=True)
    rho = np.sinh(u) / root
    density = gaussian_density((rho - mean[:, None]) / deviation)
    weights = density * np.cosh(u) * step / root / deviation
    return np.broadcast_to(rho, weights.shape), weights

"""The conditional Gaussian equivalence as a finite table.  docs/theory.md 3, [C] Result 3.2.

Given the projection kappa of an input on the spikes, a feature is equivalent to

    mu_0(kappa) + mu_1(kappa) sqrt(c) w.x + mu_2(kappa) xi,                    (3.1)

and the target has moments h, g, k.  Their values at quadrature nodes kappa_j, with
(beta, fractions, c, Delta), are all that the rest of the theory uses.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from ..problem import FINITE, ConditionalMoments, Model, Moments, Places, plain_array
from .one_group import OneGroup, Several
from .rules import rules

UNSEEN = 1e-8  # of what acts by its square alone, mu_1 and d mu_0 / d c


@dataclass(frozen=True)
class Table:
    """Moments of features and target at N nodes, for A kinds of neurons, K spikes and K'
    remaining target directions.

    Attributes
    ----------
    weights : (N,), summing to 1
    places : Places
        The nodes: standard normal coordinates z (K, N), and components of the inputs (N,).
    kappa : (K, N)
        Projections of the input on the spikes: of N(0, I), z.
    mean, root : (K', N), (K', K', N)
        Of the other directions of the target, mean + root tau with tau ~ N(0, 1): of N(0, I), tau.
    offsets : (G, N) or (G + 1, N)
        mu_0 of Eq. (3.2) and, where an output intercept is trained, the constant 1: what the
        readout combines without a penalty.
    mu1, mu2sq : (A, N)
        mu_1 and mu_2^2 of Eq. (3.2).
    loadings : (A, K, N), or (A, K + 1, N) for a network
        Change of a neuron's mean feature with its component along each spike, kappa_k mu_1,
        and with its squared norm, d mu_0 / d c.  Eq. (4.5)
    h : (N,)
        Conditional mean of the target.  Eq. (3.3)
    g : (K', N)
        E tau sigma_*.
    spread : (N,)
        k - h^2, the conditional variance of the target.
    fractions, c : (A,)
        Share of the neurons of each kind, and their bulk variance.
    beta, noise, dimension : float
        p/d, the variance of what labels add to the target, and d.
    covariance : Rows or TabulatedRows, optional
        Of the network's own bulk; that of an sRF is isotropic.
    classes, shares : (G,)
        For each of the model's G groups, its place among the A here and its share of that one.
        Groups that differ in mu_0 alone respond alike and are one: the opposite readouts of an
        odd activation.
    signs : (G, K + K'), or (G, K + 1 + K') for a network
        Of each group's overlaps with the special directions beside those of the first of its
        kind: -1 on the norm, where it is the mirror image of that one.
    """

    weights: Array
    places: Places
    kappa: Array
    mean: Array
    root: Array
    offsets: Array
    mu1: Array
    mu2sq: Array
    loadings: Array
    h: Array
    g: Array
    spread: Array
    fractions: Array
    c: Array
    beta: float
    noise: float
    dimension: float
    classes: Array
    shares: Array
    signs: Array
    covariance: Any = None

    # Products that every point (alpha, lam) needs, formed once.

    # A node is a stratum of inputs.  In it kappa is known along the spikes, and the special
    # directions beside them are Gaussian, mean + root tau.  What is linear in them has 1 + K' parts
    # at every node, side by side: its mean, and its slope in each tau.

    @cached_property
    def regressors(self) -> Array:
        """What m, and the overlaps of each kind with the special directions, theta, then psi, have
        in the output: (G + A (K + K'), (1 + K') N).  Eqs. (4.5), (4.6)"""
        A, K, N = self.loadings.shape
        rest = len(self.g)
        parts = np.zeros((A, K + rest, 1 + rest, N), self.loadings.dtype)
        parts[:, :K, 0] = self.loadings
        parts[:, K:, 0] = self.mu1[:, None] * self.mean
        parts[:, K:, 1:] = self.mu1[:, None, None] * self.root
        offsets = np.pad(self.offsets, [(0, 0), (0, rest * N)])
        return np.concatenate([offsets, parts.reshape(A * (K + rest), -1)])

    @cached_property
    def seen(self) -> Array:
        """What the target has in them, ((1 + K') N,): h and g.  Eq. (3.3)"""
        return np.append(self.h, self.g)

    @cached_property
    def unseen(self) -> Array:
        """The target's variance given the node that is not linear in tau, (N,)."""
        return self.spread - (self.g**2).sum(axis=0)

    def on_parts(self, weighted: Array) -> Array:
        """Weights at the nodes (P, N) as weights of all parts there, (P, (1 + K') N)."""
        return np.tile(weighted, 1 + len(self.g))

    @cached_property
    def isotropic(self) -> bool:
        """Whether the directions beside the spikes are N(0, 1) at every node."""
        identity = np.eye(len(self.g))[..., None]
        return not self.mean.any() and bool((self.root == identity).all())

    @cached_property
    def one_group(self) -> OneGroup | None:
        """This table as that of one group; None where there are more, or an intercept."""
        rows = getattr(self.covariance, "table", None)
        if len(self.offsets) > 1 or (rows is None) != (self.covariance is None):
            return None
        (mu1,), (b,), loadings = self.mu1, self.mu2sq, self.loadings[0]
        norms = len(loadings) - 1 if rows else 0  # of a network that have any
        special, usual, several = (np.empty(0),) * 3, None, None
        if len(loadings) - norms == len(self.g) == 1 and self.isotropic:
            norm = loadings[1] if norms else np.zeros_like(mu1)
            special, usual = (loadings[0], norm, mu1 * self.g[0]), True
        else:
            several = self._several(rows is not None and not norms)
        means = float(self.weights @ mu1**2), float(self.weights @ b), float(self.c[0])
        numbers = *means, float(self.beta), float(self.noise), float(self.dimension)
        columns = self.weights, self.offsets[0], *special, mu1**2, b, self.h, self.spread
        return OneGroup(*columns, *numbers, rows, usual, several)

    def _several(self, no_norms: bool) -> Several:
        """The special directions of one group; of a network, the norms are one even where they do
        not move."""
        parts = self.regressors.reshape(len(self.regressors), 1 + len(self.g), -1)
        if no_norms:
            parts = np.insert(parts, 2, 0.0, axis=0)
        seen = self.seen.reshape(parts.shape[1:])
        i, j = np.triu_indices(len(parts) + 1)
        both = np.concatenate([parts, seen[None]])
        products = (both[i] * both[j]).sum(axis=1)
        products[-1] += self.unseen
        return Several(parts[1:].copy(), seen, self.unseen, products, len(self.g))

    @cached_property
    def power(self) -> Array:
        """k = E_tau sigma_*^2, (N,).  Eq. (3.3)"""
        return self.h**2 + self.spread

    def at(self, which: Array | slice, weights: Array) -> "Table":
        """The moments at some of the nodes, with other ``weights`` there."""
        parts = ("kappa", "mean", "root", "offsets", "mu1", "mu2sq", "loadings", "h", "g", "spread")
        chosen = {name: getattr(self, name)[..., which] for name in parts}
        return replace(self, weights=weights, places=self.places.at(which), **chosen)


def tabulate(model: Model, rule: Rule, *, target: bool = True) -> Table:
    """The table of a model at the nodes of a rule for z, (N,) for one spike and (N, K) for K, in
    every component of the inputs: of those J N nodes."""
    return tabulate_at(model, *model.components.on(rule), target=target)


def tabulate_at(
    model: Model, places: Places, weights: Array, *, target: bool = True, merged: bool = True
) -> Table:
    """The table of a model at N places.  Eqs. (3.2)-(3.3)

    Parameters
    ----------
    model : Model
    places : Places
    weights : (N,)
        Of the nodes.
    target : bool
        Whether the moments of the target, which may cost more than all others, are wanted; else
        they are NaN.
    merged : bool
        Whether groups that respond alike become one.
    """
    groups, rows, inputs = model.geometry, model.rows, model.components
    N, spikes = len(places.component), len(places.z)
    if not N:  # what is measured by the largest moment needs one
        one = Places(np.zeros((spikes, 1)), np.zeros(1, np.int64))
        return tabulate_at(model, one, np.ones(1)).at(slice(0), weights)
    kappa, mean = np.split(inputs.special(places), [spikes])
    root = np.moveaxis(inputs.root[:, spikes:][places.component], 0, -1)
    features, size = _feature_moments(model, kappa)
    mu1 = features.first / np.sqrt(groups.c[:, None])
    loadings = mu1[:, None] * kappa[model.resolved :]
    if rows is not None and rows.v > 0:
        slopes = _slope_in_norm(model, kappa, size)
        loadings = np.concatenate([loadings, slopes[:, None]], axis=1)
    constant = np.ones((1 if model.intercept else 0, N))
    if target:
        labels = inputs.moments(model.labels.mean, places)
    else:
        nothing = np.full(N, np.nan)
        labels = ConditionalMoments(nothing, np.full(mean.shape, np.nan), nothing)
    kinds, classes = alike(model) if merged else (np.arange(len(groups.c)),) * 2
    fractions = np.bincount(classes, weights=groups.fractions)
    signs = np.where(np.vecdot(loadings, loadings[kinds][classes]) < 0, -1.0, 1.0)
    return Table(
        weights=weights,
        places=places,
        kappa=kappa,
        mean=mean,
        root=root,
        offsets=np.concatenate([features.mean, constant]),
        mu1=mu1[kinds],
        mu2sq=features.variance[kinds],
        loadings=loadings[kinds],
        h=labels.h,
        g=labels.g,
        spread=labels.spread,
        fractions=fractions,
        c=groups.c[kinds],
        beta=model.beta,
        noise=model.labels.variance,
        dimension=model.dimension,
        classes=classes,
        shares=groups.fractions / fractions[classes],
        signs=np.pad(signs, [(0, 0), (0, len(labels.g))], constant_values=1.0),
        covariance=None if rows is None else rows.covariance_of(groups.first[kinds]),
    )


def _feature_moments(model: Model, kappa: Array) -> tuple[Moments, float]:
    """The moments (3.2) of all groups, (G, N), at kappa (K, N), and the largest root of E sigma^2
    among them: a mu_0 that is only rounding beside it, or a mu_1 whose square is beside the largest
    spread's, is 0."""
    groups = model.geometry
    shift = groups.r @ kappa + groups.bias[:, None]
    mean, first, variance = model.student.moments(shift, groups.c[:, None])
    variance = variance + model.feature_noise
    size = float(np.sqrt((mean**2 + first**2 + variance).max()))
    spread = float(np.sqrt((first**2 + variance).max()))
    return Moments(_clean(mean, size), _clean(first, spread, UNSEEN), variance), size


def _slope_in_norm(model: Model, kappa: Array, size: float) -> Array:
    """d mu_0 / d c of all groups, (G, N), at kappa (K, N), for features of that ``size``."""
    groups = model.geometry
    shift, c = groups.r @ kappa + groups.bias[:, None], groups.c[:, None]
    return _clean(model.student.second_hermite(shift, c) / (2 * c), size, UNSEEN)


def projections(kappa: ArrayLike, count: int) -> tuple[Array, tuple[int, ...]]:
    """kappa (...) or, of several directions, (count, ...), as an array (count, N), and the shape
    (...); an InvalidArgument if the first axis is not that of the directions."""
    points = plain_array("kappa", kappa)
    if not (np.abs(points) <= FINITE).all():  # NaN too
        raise InvalidArgument("kappa", "inf or nan", f"finite, up to {FINITE:g}")
    if count > 1 and not (points.ndim and len(points) == count):
        raise InvalidArgument("kappa", f"shape {points.shape}", f"of shape ({count}, ...)")
    return points.reshape(count, -1), points.shape[1:] if count > 1 else points.shape


def average(weights: Array, shape: tuple[int, ...], values: Array) -> Array:
    """Averages of values (M N,) by ``weights`` (M, N), in a ``shape`` of N numbers."""
    return np.asarray((weights * values.reshape(weights.shape)).sum(axis=0).reshape(shape))


def at_points(model: Model, kappa: ArrayLike) -> tuple[Table, Callable[[Array], Array]]:
    """The table of ``model`` at values of kappa (...) or, with K spikes, (K, ...): a node for each
    in every component of the inputs; and what averages values at the nodes (J N,) over these, as
    they are likely given kappa, (...).  An InvalidArgument if kappa is out of range."""
    nodes, shape = projections(kappa, model.geometry.r.shape[1])
    places, chance = model.components.given(nodes)
    return tabulate_at(model, places, chance.ravel()), partial(average, chance, shape)


@lru_cache(maxsize=256)
def alike(model: Model) -> tuple[Array, Array]:
    """Indices (A,) of one group of each kind, and the kind of every group (G,).

    Groups are of a kind if mu_1, mu_2^2 and c (at a finite dimension mu_0, up to its sign; of a
    network, what the step does to their rows) agree to 13 digits of their largest value at 24
    random points: different functions differ at some of them.
    """
    groups = model.geometry
    if len(groups.c) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    K = groups.r.shape[1]
    kappa = np.random.default_rng(0).standard_normal((K, 24))
    features, size = _feature_moments(model, kappa)
    rows = np.column_stack([features.first, features.variance, groups.c])
    if np.isfinite(model.dimension):  # m_hat^2 acts then on the responses, m_hat averages mu_0
        sign = np.sign(features.mean[:, :1])
        rows = np.column_stack([rows, np.where(sign, sign, 1.0) * features.mean])
    if model.rows is not None:
        slopes = _slope_in_norm(model, kappa, size)
        rows = np.column_stack([rows, model.rows.agreeing(groups.first, slopes)])
    size = np.abs(rows).max(axis=0)
    rows = rows / np.where(size > 0, size, 1.0)
    first = (np.abs(rows[:, None] - rows).max(axis=2) <= 1e-13).argmax(axis=1)
    kinds, classes = np.unique(first, return_inverse=True)
    return kinds, classes


def _clean(values: Array, size: float, least: float = 1e-14) -> Array:
    """``values`` (G, N) with zeros for functions that are smaller than ``least`` of that ``size``,
    so that an odd activation's mu_0 at r = 0 is exactly 0: by rounding alone, unless said, as any
    readout may multiply mu_0."""
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(largest < least * size, 0.0, values)


def table_of_size(model: Model, nodes: int) -> Table:
    """The table with that many nodes, as a Solution of ``model`` reports them.

    Raises
    ------
    LookupError
        If there is none.
    """
    for level, rule in enumerate(rules(model)):
        if len(rule.weights) == nodes and (table := table_at(model, level)) is not None:
            return table
    raise LookupError(f"none of the model's rules has {nodes} nodes")


@lru_cache(maxsize=64)  # of many groups, a table is some MB
def table_at(model: Model, level: int, family: str = "auto") -> Table | None:
    """The table of the rule ``level`` of a family of :func:`rules`, or None past the last."""
    rule = next(islice(rules(model, family), level, None), None)
    return None if rule is None else tabulate(model, rule)


def tables(model: Model, first: int = 0) -> Iterator[Table]:
    """The tables of :func:`rules`, finer and finer, from the level ``first`` on."""
    while (table := table_at(model, first)) is not None:
        yield table
        first += 1

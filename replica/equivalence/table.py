"""The conditional Gaussian equivalence as a finite table.  docs/theory.md 3, [C] Result 3.2.

Given the projection kappa of an input on the spikes, a feature is equivalent to

    mu_0(kappa) + mu_1(kappa) sqrt(c) w.x + mu_2(kappa) xi,                    (3.1)

and the target has moments h, g, k.  Their values at quadrature nodes kappa_j, with
(beta, fractions, c, Delta), are all that the rest of the theory uses: activations appear
nowhere after this table.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from ..problem import ConditionalMoments, Model, distinct
from .rules import rules


@dataclass(frozen=True)
class Table:
    """Moments of features and target at N nodes, for A kinds of neurons, K spikes and K'
    remaining target directions.

    Attributes
    ----------
    weights : (N,), summing to 1
    kappa : (K, N)
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
        Share of the neurons in each group, and their bulk variance.
    beta, noise, dimension : float
    covariance : RowCovariance or GroupCovariance, optional
        Of the network's own bulk; that of an sRF is isotropic.
    classes, shares : (G,)
        For each of the model's G groups, its place among the A here and its share of that one.
        Groups that differ in mu_0 alone respond alike and are one: the opposite readouts of an
        odd activation.
    """

    weights: Array
    kappa: Array
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
    covariance: Any = None

    # Products that every point needs, formed once.

    @cached_property
    def regressors(self) -> Array:
        """offsets and loadings, (G + A K, N): what C(kappa) is made of.  Eq. (4.5)"""
        return np.concatenate([self.offsets, self.loadings.reshape(-1, self.weights.size)])

    @cached_property
    def regressor_pairs(self) -> Array:
        """Products of two regressors, one row a node."""
        pairs = np.einsum("in,jn->nij", self.regressors, self.regressors)
        return pairs.reshape(self.weights.size, -1)

    @cached_property
    def slope_target(self) -> Array:
        """mu_1^b g, (A K', N): what p_hat averages.  Eq. (4.6)"""
        return np.einsum("an,kn->akn", self.mu1, self.g).reshape(-1, self.weights.size)

    @cached_property
    def slope_pairs(self) -> Array:
        """mu_1^a mu_1^b, (N, A^2)."""
        pairs = np.einsum("an,bn->nab", self.mu1, self.mu1)
        return pairs.reshape(self.weights.size, -1)

    @cached_property
    def members(self) -> Array:
        """One group of each kind, (A,)."""
        return np.unique(self.classes, return_index=True)[1]

    @cached_property
    def power(self) -> Array:
        """k = E_tau sigma_*^2, (N,).  Eq. (3.3)"""
        return self.h**2 + self.spread


def tabulate(model: Model, rule: Rule, *, target: bool = True, merged: bool = True) -> Table:
    """The table of ``model`` at the nodes of ``rule``, (N,) or (N, K).  Eqs. (3.2)-(3.3)

    The moments of the target may cost more than all others: without it they are NaN.  If not
    ``merged``, groups that respond alike stay apart.
    """
    kappa = rule.nodes.T if rule.nodes.ndim == 2 else rule.nodes[None]
    groups = model.geometry
    c = groups.c[:, None]
    features = model.student.moments(groups.r @ kappa + groups.bias[:, None], c)
    if target:
        labels = model.labels.given(groups.gamma, kappa)
    else:
        labels = ConditionalMoments(
            *(np.full((*k, kappa.shape[1]), np.nan) for k in ((), (1,), ()))
        )
    size = float(np.sqrt((features.mean**2 + features.first**2 + features.variance).max()))
    mu0 = _clean(features.mean, size)
    mu1 = _clean(features.first, size) / np.sqrt(c)
    loadings = mu1[:, None] * kappa
    rows = model.rows
    if rows is not None and rows.covariance.v > 0:
        curvature = model.student.second_hermite(groups.r @ kappa, c) / (2 * c)
        loadings = np.concatenate([loadings, _clean(curvature, size)[:, None]], axis=1)
    kinds, classes = alike(model) if merged else (np.arange(len(c)),) * 2
    fractions = np.bincount(classes, weights=groups.fractions)
    constant = np.ones((1, mu0.shape[1])) if model.intercept else np.empty((0, mu0.shape[1]))
    return Table(
        weights=rule.weights,
        kappa=kappa,
        offsets=np.concatenate([mu0, constant]),
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
        covariance=None if rows is None else rows.of(groups, kinds),
    )


def at_points(model: Model, kappa: ArrayLike) -> tuple[Table, tuple[int, ...]]:
    """The table of ``model`` at values of kappa (...) or, with K spikes, (K, ...), and the
    shape (...).

    Raises
    ------
    InvalidArgument
        If the first axis is not that of the spikes, where there are several.
    """
    points: Array = np.asarray(kappa, dtype=float)
    spikes = model.geometry.r.shape[1]
    if spikes == 1:
        nodes: Array = points.ravel()
        shape = points.shape
    elif points.ndim and len(points) == spikes:
        nodes, shape = points.reshape(spikes, -1).T, points.shape[1:]
    else:
        raise InvalidArgument("kappa", f"shape {points.shape}", f"of shape ({spikes}, ...)")
    return tabulate(model, Rule(nodes, np.full(len(nodes), 1 / max(len(nodes), 1)))), shape


@lru_cache(maxsize=256)
def alike(model: Model) -> tuple[Array, Array]:
    """Indices (A,) of one group of each kind, and the kind of every group (G,).

    Groups are of a kind if mu_1, mu_2^2 and c (at a finite dimension mu_0, too) agree to 13
    digits of their largest value, at points that tell different neurons apart.
    """
    groups = model.geometry
    K = groups.r.shape[1]
    kappa = np.random.default_rng(0).standard_normal((K, 24))
    features = model.student.moments(groups.r @ kappa + groups.bias[:, None], groups.c[:, None])
    rows = np.column_stack([features.first, features.variance, groups.c])
    if np.isfinite(model.dimension):  # m then has a price, which mu_0 decides
        rows = np.column_stack([rows, features.mean])
    size = np.abs(rows).max(axis=0)
    digits = np.round(rows / np.where(size > 0, size, 1.0), 13) + 0.0
    return distinct(digits)


def _clean(values: Array, size: float) -> Array:
    """Zero what is only rounding of a function of that size, so that an odd activation's mu_0
    at r = 0 is exactly 0."""
    return np.where(np.abs(values) < 1e-14 * size, 0.0, values)


@lru_cache(maxsize=256)
def tables(model: Model, level: int) -> tuple[Table, Table] | None:
    """The tables at successive rules ``level`` and ``level + 1``, or None past the last.

    The second is used; what the equations say of its answer on the first is the estimate
    of the quadrature error.
    """
    coarse, fine = table_at(model, level), table_at(model, level + 1)
    return None if coarse is None or fine is None else (coarse, fine)


def table_of_size(model: Model, nodes: int) -> Table:
    """The table with that many nodes, as reported by a Solution of ``model``."""
    found = itertools.takewhile(
        lambda table: table is not None, (table_at(model, level) for level in itertools.count())
    )
    return next(table for table in found if table is not None and len(table.weights) == nodes)


@lru_cache(maxsize=256)
def table_at(model: Model, level: int) -> Table | None:
    """The table of the rule ``level``, or None past the last."""
    for index, rule in enumerate(rules(model)):
        if index == level:
            return tabulate(model, rule)
    return None

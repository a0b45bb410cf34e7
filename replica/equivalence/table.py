"""Table of the conditional Gaussian equivalence.  docs/theory.md 3, [C] Result 3.2.

Given the projection kappa of an input on the spikes, a feature is equivalent to

    mu_0(kappa) + mu_1(kappa) sqrt(c) w.x + mu_2(kappa) xi,                    (3.1)

and the target has moments h, g, k.  The rest of the theory uses only their values at quadrature
nodes kappa_j, with (beta, fractions, c, Delta).
The effect of a batch of a gradient step on the rows is tabulated likewise.  docs/theory.md 18
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from ..problem import ConditionalMoments, Model, Moments, Places, plain_array
from .rules import rules


@dataclass(frozen=True, eq=False)
class Table:
    """Moments of features and target at N nodes, for A kinds of neurons, K spikes and K'
    remaining target directions.

    Attributes
    ----------
    weights : (N,), summing to 1
    places : Places
        The nodes: standard normal coordinates z (K, N), and components of the inputs (N,).
    kappa : (K, N)
        Projections of the input on the spikes; equal to z for inputs N(0, I).
    mean, root : (K', N), (K', K', N)
        The other target directions of an input are mean + root tau with tau ~ N(0, 1); for inputs
        N(0, I) they are tau.
    offsets : (G, N) or (G + 1, N)
        Functions that the readout combines without a penalty: mu_0 of Eq. (3.2) and, where an
        output intercept is trained, the constant 1.
    mu1, mu2sq : (A, N)
        mu_1 and mu_2^2 of Eq. (3.2).
    loadings : (A, K, N), or (A, K + 1, N) for a network
        Derivative of a neuron's mean feature in its component along each spike, kappa_k mu_1, and
        in its squared norm, d mu_0 / d c.  Eq. (4.5)
    h : (N,)
        Conditional mean of the target.  Eq. (3.3)
    g : (K', N)
        E tau sigma_*.  Eq. (3.3)
    spread : (N,)
        k - h^2, the conditional variance of the target.
    fractions, c : (A,)
        Share of the neurons of each kind, and their bulk variance.
    beta, noise, dimension : float
        p/d, the variance of the label noise, and d.
    covariance : Rows or TabulatedRows, optional
        Row covariance of a network's bulk; None for an sRF, whose bulk is isotropic.
    kinds, shares : (G,)
        Index of the kind of each of the model's G groups, and the group's share of its kind.
        Groups that differ in mu_0 alone respond alike and are of one kind, such as the opposite
        readouts of an odd activation.
    signs : (G, K + K'), or (G, K + 1 + K') for a network
        Signs of a group's overlaps with the special directions, relative to the first group of its
        kind: -1 on the norm, where the group is the mirror image of the first.
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
    kinds: Array
    shares: Array
    signs: Array
    covariance: Any = None

    # Products that every point (alpha, lam) needs, computed once.

    # A node is a stratum of inputs.  In it kappa is fixed, and the other special directions are
    # Gaussian, mean + root tau.  A linear function of them has 1 + K' parts at every node, stored
    # next to each other: its mean, and its slope in each tau.

    @cached_property
    def regressors(self) -> Array:
        """Derivatives of the output in m and in the overlaps of each kind with the special
        directions, theta, then psi: (G + A (K + K'), (1 + K') N).  Eqs. (4.5), (4.6)"""
        A, K, N = self.loadings.shape
        tau_count = len(self.g)
        regressor_slopes = np.zeros((A, K + tau_count, 1 + tau_count, N), self.loadings.dtype)
        regressor_slopes[:, :K, 0] = self.loadings
        regressor_slopes[:, K:, 0] = self.mu1[:, None] * self.mean
        regressor_slopes[:, K:, 1:] = self.mu1[:, None, None] * self.root
        offset_parts = np.pad(self.offsets, [(0, 0), (0, tau_count * N)])
        return np.concatenate([offset_parts, regressor_slopes.reshape(A * (K + tau_count), -1)])

    @cached_property
    def target_parts(self) -> Array:
        """Parts of the target that are linear in tau, h and g, ((1 + K') N,).  Eq. (3.3)"""
        return np.append(self.h, self.g)

    @cached_property
    def weighted_products(self) -> Array:
        """Products of any two of the regressors and the target, summed over the parts of a node,
        times the weights of the nodes, ((n + 1)^2, N) for n regressors."""
        tau_parts = np.vstack([self.regressors, self.target_parts])
        tau_parts = tau_parts.reshape(len(tau_parts), -1, self.weights.size)
        part_products = np.einsum("iln,jln->ijn", tau_parts, tau_parts) * self.weights
        return part_products.reshape(-1, self.weights.size)

    @cached_property
    def weighted_powers(self) -> Array:
        """Squares of the regressors, summed over the parts of a node, and the second moment of the
        target, times the weights of the nodes, (n + 1, N)."""
        regressor_parts = self.regressors.reshape(len(self.regressors), -1, self.weights.size)
        return np.vstack([(regressor_parts**2).sum(axis=1), self.power]) * self.weights

    @cached_property
    def unexplained(self) -> Array:
        """Variance of the labels at a node that is not linear in tau, (N,)."""
        return self.spread - (self.g**2).sum(axis=0) + self.noise

    @cached_property
    def label_power(self) -> Array:
        """Second moment of the labels at the nodes, times their weights, (N,)."""
        return self.weights * (self.power + self.noise)

    def per_part(self, node_weights: Array) -> Array:
        """Weights at the nodes (P, N), repeated for each of their parts, (P, (1 + K') N)."""
        return np.tile(node_weights, 1 + len(self.g))

    @cached_property
    def isotropic(self) -> bool:
        """True if the other special directions are N(0, 1) at every node."""
        tau_identity = np.eye(len(self.g))[..., None]
        return not self.mean.any() and bool((self.root == tau_identity).all())

    @cached_property
    def response_products(self) -> Array:
        """Functions that (4.2) averages: mu_1^a mu_1^b (a <= b), then mu_2^2, (D, N)."""
        kind_a, kind_b = np.triu_indices(len(self.mu1))
        return np.concatenate([self.mu1[kind_a] * self.mu1[kind_b], self.mu2sq])

    @cached_property
    def response_coefficients(self) -> Array:
        """Coefficients B (D, N) in V(kappa) = V . B(kappa), for packed V.  They are the
        ``response_products``, doubled for two different groups, which V contains once.  Eq.
        (4.1)"""
        kind_a, b = np.triu_indices(len(self.mu1))
        multiplicity = np.concatenate([np.where(kind_a == b, 1.0, 2.0), np.ones(len(self.mu1))])
        return multiplicity[:, None] * self.response_products

    @cached_property
    def weighted_response_products(self) -> Array:
        """The ``response_products`` times the weights of the nodes."""
        return self.response_products * self.weights

    @cached_property
    def power(self) -> Array:
        """Second moment of the target, k = E_tau sigma_*^2, (N,).  Eq. (3.3)"""
        return self.h**2 + self.spread

    def select_nodes(self, node_index: Array | slice, weights: Array) -> "Table":
        """Table restricted to some of the nodes, with other ``weights`` there."""
        names = ("kappa", "mean", "root", "offsets", "mu1", "mu2sq", "loadings", "h", "g", "spread")
        node_moments = {name: getattr(self, name)[..., node_index] for name in names}
        return replace(self, weights=weights, places=self.places.subset(node_index), **node_moments)


class Batch(NamedTuple):
    """Law of a sample of one step at M nodes, and its effect on A groups.  Eqs. (18.4)-(18.10)

    Attributes
    ----------
    alpha : float
        Number of samples over the input dimension.
    products : (D + 2, D + 2, M)
        Quadrature weights times products of two of (1, x_1, ..., x_D, phi).  The x_i are the
        projections of the input on the D directions on which labels depend, and phi is the sample's
        coefficient in the batch's noise vector.  The entry of 1 with 1 is the weights themselves.
    t11, t12 : (A, M)
        Contribution of a sample to the pencil.  Eq. (18.5)
    F, lam, L : (A, M)
        The sample's weights in the vectors f, l and Lam of (18.2), in this order.  Eq. (18.5)
    g, v : (A,)
        Factor g of delta in the recursion (18.1), and d times the variance of the noise added to
        delta, v_f of (18.7).
    directions : (D + 1, S)
        The D directions on which labels depend and, last, the batch's noise vector, in the
        coordinates of the special directions.
    decay_factor : float
        Factor of the rows by weight decay, 1 without decay.
    """

    alpha: float
    products: Array
    t11: Array
    t12: Array
    F: Array
    lam: Array
    L: Array
    g: Array
    v: Array
    directions: Array
    decay_factor: float = 1.0

    @property
    def weights(self) -> Array:
        """Quadrature weights of the nodes, (M,)."""
        return self.products[0, 0]

    def select(self, groups: NDArray[np.int64]) -> "Batch":
        """Batch restricted to some of the groups."""
        weight_fields = ("t11", "t12", "F", "lam", "L", "g", "v")
        return self._replace(**{name: getattr(self, name)[groups] for name in weight_fields})


# mu_1 and d mu_0 / d c act by their squares: values of less than this relative size are taken for 0
SMALLEST = 1e-8


def tabulate(model: Model, rule: Rule, *, target: bool = True) -> Table:
    """Table of a model at the nodes of a rule for z, (N,) for one spike and (N, K) for K.

    With J components of the inputs it has J N nodes.
    """
    return tabulate_at(model, *model.components.places_and_weights(rule), target=target)


def tabulate_at(
    model: Model, places: Places, node_weights: Array, *, target: bool = True, merged: bool = True
) -> Table:
    """Table of a model at N places.  Eqs. (3.2)-(3.3)

    Parameters
    ----------
    model : Model
    places : Places
    weights : (N,)
        Quadrature weights of the places.
    target : bool
        Whether to compute the moments of the target, which may cost more than all others; NaN
        otherwise.
    merged : bool
        Whether to merge groups that respond alike into one kind.
    """
    model_groups, rows, model_inputs = model.geometry, model.rows, model.components
    N, spike_count = len(places.component), len(places.z)
    if not N:  # rounding is measured by the largest moment, which needs a node
        origin_places = Places(np.zeros((spike_count, 1)), np.zeros(1, np.int64))
        return tabulate_at(model, origin_places, np.ones(1)).select_nodes(slice(0), node_weights)
    kappa, zeta_mean = np.split(model_inputs.projection_means(places), [spike_count])
    zeta_root = np.moveaxis(model_inputs.root[:, spike_count:][places.component], 0, -1)
    feature_moments, feature_size = _feature_moments(model, kappa)
    mu1 = feature_moments.first / np.sqrt(model_groups.c[:, None])
    group_loadings = mu1[:, None] * kappa[model.resolved :]
    if rows is not None and rows.v > 0:
        norm_slopes = _slope_in_norm(model, kappa, feature_size)
        group_loadings = np.concatenate([group_loadings, norm_slopes[:, None]], axis=1)
    constant_offset = np.ones((1 if model.intercept else 0, N))
    if target:
        label_moments = model_inputs.moments(model.labels.combined_mean, places)
    else:
        no_target = np.full(N, np.nan)
        label_moments = ConditionalMoments(no_target, np.full(zeta_mean.shape, np.nan), no_target)
    first_groups, kinds = group_kinds(model) if merged else (np.arange(len(model_groups.c)),) * 2
    kind_fractions = np.bincount(kinds, weights=model_groups.fractions)
    signs = np.where(np.vecdot(group_loadings, group_loadings[first_groups][kinds]) < 0, -1.0, 1.0)
    return Table(
        weights=node_weights,
        places=places,
        kappa=kappa,
        mean=zeta_mean,
        root=zeta_root,
        offsets=np.concatenate([feature_moments.mean, constant_offset]),
        mu1=mu1[first_groups],
        mu2sq=feature_moments.variance[first_groups],
        loadings=group_loadings[first_groups],
        h=label_moments.h,
        g=label_moments.g,
        spread=label_moments.spread,
        fractions=kind_fractions,
        c=model_groups.c[first_groups],
        beta=model.beta,
        noise=model.labels.variance,
        dimension=model.dimension,
        kinds=kinds,
        shares=model_groups.fractions / kind_fractions[kinds],
        signs=np.pad(signs, [(0, 0), (0, len(label_moments.g))], constant_values=1.0),
        covariance=None if rows is None else rows.covariance_of(model_groups.first[first_groups]),
    )


def _feature_moments(model: Model, kappa: Array) -> tuple[Moments, float]:
    """Moments (3.2) of all groups, (G, N), at kappa (K, N), and the largest root of E sigma^2.

    A mu_0 that is only rounding of this root is set to 0.  So is a mu_1 whose square is only
    rounding of the largest conditional variance.
    """
    model_groups = model.geometry
    feature_shift = model_groups.r @ kappa + model_groups.bias[:, None]
    mu_0, mu_1, mu_2 = model.student.moments(feature_shift, model_groups.c[:, None])
    mu_2 = mu_2 + model.feature_noise
    mu_size = float(np.sqrt((mu_0**2 + mu_1**2 + mu_2).max()))
    mu_spread = float(np.sqrt((mu_1**2 + mu_2).max()))
    return Moments(zero_small(mu_0, mu_size), zero_small(mu_1, mu_spread, SMALLEST), mu_2), mu_size


def _slope_in_norm(model: Model, kappa: Array, size: float) -> Array:
    """Derivatives d mu_0 / d c of all groups, (G, N), at kappa (K, N);
    ``size`` is the root of E sigma^2."""
    model_groups = model.geometry
    feature_shift, c = model_groups.r @ kappa + model_groups.bias[:, None], model_groups.c[:, None]
    return zero_small(model.student.second_hermite(feature_shift, c) / (2 * c), size, SMALLEST)


def flat_kappa(kappa: ArrayLike, spike_count: int) -> tuple[Array, tuple[int, ...]]:
    """Array (spike_count, N) of the values of kappa (...), or (spike_count, ...) for several, and
    the shape (...).  Raises InvalidArgument if the first axis has not length ``spike_count``."""
    kappas = plain_array("kappa", kappa)
    if spike_count > 1 and not (kappas.ndim and len(kappas) == spike_count):
        raise InvalidArgument("kappa", f"shape {kappas.shape}", f"of shape ({spike_count}, ...)")
    return kappas.reshape(spike_count, -1), kappas.shape[1:] if spike_count > 1 else kappas.shape


def average_components(weights: Array, shape: tuple[int, ...], values: Array) -> Array:
    """Averages over components of values (M N,) with ``weights`` (M, N), in a ``shape`` of N."""
    return np.asarray((weights * values.reshape(weights.shape)).sum(axis=0).reshape(shape))


def table_at_kappa(
    model: Model, kappa: ArrayLike, *, merged: bool = True
) -> tuple[Table, Callable[[Array], Array]]:
    """Table of ``model`` at values of kappa (...) or, with K spikes, (K, ...); and a function that
    averages values at its nodes over the components of the inputs.

    There is a node for each kappa in each of J components.  The function takes values (J N,), and
    weighs components by their probability given kappa.  Groups are ``merged`` into kinds as by
    ``tabulate_at``.  Raises InvalidArgument if kappa is out of range.
    """
    kappa_nodes, kappa_shape = flat_kappa(kappa, model.geometry.r.shape[1])
    kappa_places, component_chances = model.components.places_of_kappa(kappa_nodes)
    kappa_table = tabulate_at(model, kappa_places, component_chances.ravel(), merged=merged)
    return kappa_table, partial(average_components, component_chances, kappa_shape)


@lru_cache(maxsize=256)
def group_kinds(model: Model) -> tuple[Array, Array]:
    """Kinds of groups: the index of one group of each kind, (A,), and the kind of each group, (G,).

    Groups are of one kind if mu_1, mu_2^2 and c agree.  At a finite dimension mu_0 has to agree up
    to its sign; in a network, the effect of the step on their rows.  Functions are compared at 24
    random points, to 13 digits of their largest value.
    """
    all_groups = model.geometry
    if len(all_groups.c) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    K = all_groups.r.shape[1]
    random_kappa = np.random.default_rng(0).standard_normal((K, 24))
    feature_moments, feature_size = _feature_moments(model, random_kappa)
    criteria = np.column_stack([feature_moments.first, feature_moments.variance, all_groups.c])
    if np.isfinite(model.dimension):  # then m_hat, an average of mu_0, acts on the responses
        sign = np.sign(feature_moments.mean[:, :1])
        criteria = np.column_stack([criteria, np.where(sign, sign, 1.0) * feature_moments.mean])
    if model.rows is not None:
        slopes = _slope_in_norm(model, random_kappa, feature_size)
        criteria = np.column_stack([criteria, model.rows.kind_invariants(all_groups.first, slopes)])
    criteria_size = np.abs(criteria).max(axis=0)
    criteria = criteria / np.where(criteria_size > 0, criteria_size, 1.0)
    group_of_kind = (np.abs(criteria[:, None] - criteria).max(axis=2) <= 1e-13).argmax(axis=1)
    first_groups, kind_of_group = np.unique(group_of_kind, return_inverse=True)
    return first_groups, kind_of_group


def zero_small(function_values: Array, size: float, least: float = 1e-14) -> Array:
    """The ``function_values`` (G, N), replaced by 0 if smaller than ``least`` times ``size``.

    An odd activation's mu_0 at r = 0 is then exactly 0.  The default removes rounding alone, as a
    readout of any size may multiply mu_0.
    """
    largest_value = np.abs(function_values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(largest_value < least * size, 0.0, function_values)


def table_of_size(model: Model, nodes: int) -> Table:
    """Table with a number of ``nodes``, as reported by a Solution of ``model``."""
    return next(level_table for level_table in tables(model) if level_table.weights.size == nodes)


@lru_cache(maxsize=80)  # a scan of 33 rates takes 66; a table of many groups takes some MB
def table_at(model: Model, level: int) -> Table | None:
    """Table of the rule ``level`` of :func:`rules`, or None past the last."""
    table_rule = next(islice(rules(model), level, None), None)
    return None if table_rule is None else tabulate(model, table_rule)


def tables(model: Model, first: int = 0) -> Iterator[Table]:
    """Iterate over the tables of :func:`rules`, finer and finer, from the level ``first`` on."""
    while (level_table := table_at(model, first)) is not None:
        yield level_table
        first += 1

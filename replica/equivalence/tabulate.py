"""Tabulation: the moments of a model at nodes of a rule, or at given kappa.  docs/theory.md 3

So is the effect of a batch of a gradient step on the rows.  docs/theory.md 18
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from ..problem import ConditionalMoments, Model, Moments, Places, plain_array
from .rules import rules
from .table import Table


class Batch(NamedTuple):
    """Law of a sample of one step at M nodes, and its effect on A groups.  Eqs. (18.4)-(18.10)

    Attributes
    ----------
    alpha : float
        Number of samples over the input dimension.
    pairs : (D + 2, D + 2, M)
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
    pairs: Array
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
        return self.pairs[0, 0]

    def select(self, groups: NDArray[np.int64]) -> "Batch":
        """Batch restricted to some of the groups."""
        fields = ("t11", "t12", "F", "lam", "L", "g", "v")
        return self._replace(**{name: getattr(self, name)[groups] for name in fields})


# mu_1 and d mu_0 / d c act by their squares: values of less than this relative size are taken for 0
SMALLEST = 1e-8


def tabulate(model: Model, rule: Rule, *, target: bool = True) -> Table:
    """Table of a model at the nodes of a rule for z, (N,) for one spike and (N, K) for K.

    With J components of the inputs it has J N nodes.
    """
    return tabulate_at(model, *model.components.places_and_weights(rule), target=target)


def tabulate_at(
    model: Model, places: Places, weights: Array, *, target: bool = True, merged: bool = True
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
    groups, rows, inputs = model.geometry, model.rows, model.components
    N, spikes = len(places.component), len(places.z)
    if not N:  # rounding is measured by the largest moment, which needs a node
        origin = Places(np.zeros((spikes, 1)), np.zeros(1, np.int64))
        return tabulate_at(model, origin, np.ones(1)).select_nodes(slice(0), weights)
    kappa, mean = np.split(inputs.projection_means(places), [spikes])
    root = np.moveaxis(inputs.root[:, spikes:][places.component], 0, -1)
    features, size = _feature_moments(model, kappa)
    mu1 = features.first / np.sqrt(groups.c[:, None])
    loadings = mu1[:, None] * kappa[model.resolved :]
    if rows is not None and rows.v > 0:
        slopes = _slope_in_norm(model, kappa, size)
        loadings = np.concatenate([loadings, slopes[:, None]], axis=1)
    constant = np.ones((1 if model.intercept else 0, N))
    if target:
        labels = inputs.moments(model.labels.combined_mean, places)
    else:
        unknown = np.full(N, np.nan)
        labels = ConditionalMoments(unknown, np.full(mean.shape, np.nan), unknown)
    kinds, classes = group_kinds(model) if merged else (np.arange(len(groups.c)),) * 2
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
    """Moments (3.2) of all groups, (G, N), at kappa (K, N), and the largest root of E sigma^2.

    A mu_0 that is only rounding of this root is set to 0.  So is a mu_1 whose square is only
    rounding of the largest conditional variance.
    """
    groups = model.geometry
    shift = groups.r @ kappa + groups.bias[:, None]
    mean, first, variance = model.student.moments(shift, groups.c[:, None])
    variance = variance + model.feature_noise
    size = float(np.sqrt((mean**2 + first**2 + variance).max()))
    spread = float(np.sqrt((first**2 + variance).max()))
    return Moments(_zero_small(mean, size), _zero_small(first, spread, SMALLEST), variance), size


def _slope_in_norm(model: Model, kappa: Array, size: float) -> Array:
    """Derivatives d mu_0 / d c of all groups, (G, N), at kappa (K, N);
    ``size`` is the root of E sigma^2."""
    groups = model.geometry
    shift, c = groups.r @ kappa + groups.bias[:, None], groups.c[:, None]
    return _zero_small(model.student.second_hermite(shift, c) / (2 * c), size, SMALLEST)


def flat_kappa(kappa: ArrayLike, count: int) -> tuple[Array, tuple[int, ...]]:
    """Array (count, N) of the values of kappa (...), or (count, ...) for several directions, and
    the shape (...).  Raises InvalidArgument if the first axis has not ``count`` directions."""
    points = plain_array("kappa", kappa)
    if count > 1 and not (points.ndim and len(points) == count):
        raise InvalidArgument("kappa", f"shape {points.shape}", f"of shape ({count}, ...)")
    return points.reshape(count, -1), points.shape[1:] if count > 1 else points.shape


def average_components(weights: Array, shape: tuple[int, ...], values: Array) -> Array:
    """Averages over components of values (M N,) with ``weights`` (M, N), in a ``shape`` of N."""
    return np.asarray((weights * values.reshape(weights.shape)).sum(axis=0).reshape(shape))


def table_at_kappa(model: Model, kappa: ArrayLike) -> tuple[Table, Callable[[Array], Array]]:
    """Table of ``model`` at values of kappa (...) or, with K spikes, (K, ...); and a function that
    averages values at its nodes over the components of the inputs.

    There is a node for each kappa in each of J components.  The function takes values (J N,), and
    weighs components by their probability given kappa.  Raises InvalidArgument if kappa is out of
    range.
    """
    nodes, shape = flat_kappa(kappa, model.geometry.r.shape[1])
    places, chance = model.components.places_of_kappa(nodes)
    return tabulate_at(model, places, chance.ravel()), partial(average_components, chance, shape)


@lru_cache(maxsize=256)
def group_kinds(model: Model) -> tuple[Array, Array]:
    """Kinds of groups: the index of one group of each kind, (A,), and the kind of each group, (G,).

    Groups are of one kind if mu_1, mu_2^2 and c agree.  At a finite dimension mu_0 has to agree up
    to its sign; in a network, the effect of the step on their rows.  Functions are compared at 24
    random points, to 13 digits of their largest value.
    """
    groups = model.geometry
    if len(groups.c) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    K = groups.r.shape[1]
    kappa = np.random.default_rng(0).standard_normal((K, 24))
    features, size = _feature_moments(model, kappa)
    criteria = np.column_stack([features.first, features.variance, groups.c])
    if np.isfinite(model.dimension):  # then m_hat, an average of mu_0, acts on the responses
        sign = np.sign(features.mean[:, :1])
        criteria = np.column_stack([criteria, np.where(sign, sign, 1.0) * features.mean])
    if model.rows is not None:
        slopes = _slope_in_norm(model, kappa, size)
        criteria = np.column_stack([criteria, model.rows.kind_invariants(groups.first, slopes)])
    size = np.abs(criteria).max(axis=0)
    criteria = criteria / np.where(size > 0, size, 1.0)
    representative = (np.abs(criteria[:, None] - criteria).max(axis=2) <= 1e-13).argmax(axis=1)
    kinds, classes = np.unique(representative, return_inverse=True)
    return kinds, classes


def _zero_small(values: Array, size: float, least: float = 1e-14) -> Array:
    """Functions ``values`` (G, N), replaced by 0 if they are smaller than ``least`` times ``size``.

    An odd activation's mu_0 at r = 0 is then exactly 0.  The default removes rounding alone, as a
    readout of any size may multiply mu_0.
    """
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(largest < least * size, 0.0, values)


def table_of_size(model: Model, nodes: int) -> Table:
    """Table with a number of ``nodes``, as reported by a Solution of ``model``."""
    return next(table for table in tables(model) if table.weights.size == nodes)


@lru_cache(maxsize=64)  # a table of many groups takes some MB
def table_at(model: Model, level: int) -> Table | None:
    """Table of the rule ``level`` of :func:`rules`, or None past the last."""
    rule = next(islice(rules(model), level, None), None)
    return None if rule is None else tabulate(model, rule)


def tables(model: Model, first: int = 0) -> Iterator[Table]:
    """Iterate over the tables of :func:`rules`, finer and finer, from the level ``first`` on."""
    while (table := table_at(model, first)) is not None:
        yield table
        first += 1

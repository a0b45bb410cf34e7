"""Tables made: the moments of a model at nodes of a rule, or at any kappa.  docs/theory.md 3"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from ..problem import ConditionalMoments, Model, Moments, Places, plain_array
from .rules import rules
from .table import Table

UNSEEN = 1e-8  # of what acts by its square alone, mu_1 and d mu_0 / d c


def tabulate(model: Model, rule: Rule, *, target: bool = True) -> Table:
    """The table of a model at the nodes of a rule for z, (N,) for one spike and (N, K) for K, in
    every component of the inputs: of those J N nodes."""
    return tabulate_at(model, *model.components.places_and_weights(rule), target=target)


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
    places, chance = model.components.places_of_kappa(nodes)
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
        rows = np.column_stack([rows, model.rows.kind_invariants(groups.first, slopes)])
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
    """The table with that many nodes, as a Solution of ``model`` reports them."""
    return next(table for table in tables(model) if table.weights.size == nodes)


@lru_cache(maxsize=64)  # of many groups, a table is some MB
def table_at(model: Model, level: int) -> Table | None:
    """The table of the rule ``level`` of :func:`rules`, or None past the last."""
    rule = next(islice(rules(model), level, None), None)
    return None if rule is None else tabulate(model, rule)


def tables(model: Model, first: int = 0) -> Iterator[Table]:
    """The tables of :func:`rules`, finer and finer, from the level ``first`` on."""
    while (table := table_at(model, first)) is not None:
        yield table
        first += 1

"""Tables of a network at its own dimension: a node of a row's loadings is a member of the one kind
of neurons, and its share is the node's weight.  docs/theory.md 23"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtri

from solvers.results import Array
from solvers.rules import Rule, drop_light_nodes, gauss_hermite, tensor_rule

from ..equivalence import Table
from ..problem import Components, Model
from .rows import LoadedRows, loaded_rows


class Sizes(NamedTuple):
    """Numbers of nodes of the rules of one level.

    Attributes
    ----------
    labels, spike, noise
        Along a coordinate of the labels, the rest of u, and the noise direction b.
    loadings
        Along the leading directions of the loadings.
    points
        Points of a quasi-Monte-Carlo rule, for three coordinates of the labels or more.
    """

    labels: int
    spike: int
    noise: int
    loadings: tuple[int, ...]
    points: int


LEVELS = (
    Sizes(10, 6, 5, (5, 5, 5), 2**12),
    Sizes(12, 8, 6, (7, 5, 5), 2**13),
    Sizes(16, 10, 8, (9, 7, 7), 2**14),
)
MOST_ON_GRID = 2  # coordinates of the labels in a product of Gauss rules
KNOTS = 6000  # of the splines through the student's Gaussian means
SMALLEST_GAIN = 1e-5  # of a function of the inputs that the table keeps


@lru_cache(maxsize=8)  # a table takes some 10 MB
def table_at_dimension(model: Model, dimension: float, level: int) -> Table | None:
    """Table of a network at an input ``dimension`` or in the limit, of one of ``LEVELS``; None past
    the last."""
    return tabulate(model, dimension, LEVELS[level]) if level < len(LEVELS) else None


def tabulate(model: Model, dimension: float, sizes: Sizes) -> Table:
    """Table of a network at an input ``dimension``, or in the limit, on rules of given ``sizes``.
    Eqs. (23.3)-(23.5)

    The offsets are the mean feature and, at a finite dimension, the functions of degree two or more
    in a row's loadings, each of which has the price of m.
    """
    rows = loaded_rows(model)
    n, D = len(rows.coordinates), len(model.components.basis)
    cosines = np.eye(D, n + 1)
    components = Components.from_law(model.inputs, cosines, model.labels.combinations)
    places, weights = components.places_and_weights(_input_rule(D, n - D, sizes))
    kappa = components.projection_means(places)[: n + 1]
    labels = components.moments(model.labels.combined_mean, places)
    loadings, nodes, shares = _loadings(rows, dimension, sizes)
    geometry: Any = model.geometry
    along_u = geometry.r[0, 0] * rows.coordinates[:, 0] @ kappa[:n] + geometry.bias[0]
    mean, slope, square, by_norm = _averages(model, along_u, loadings @ kappa, float(geometry.c[0]))
    first = (nodes.T * shares) @ mean  # Hermite degree 1, which theta has
    average = shares @ mean
    beyond = np.sqrt(shares)[:, None] * (mean - average - nodes @ first)
    mu1, variance = shares @ slope, shares @ (square - mean**2)
    mu2sq = np.maximum(variance - geometry.c[0] * mu1**2, 0.0)
    offsets = np.vstack([average, _leading(beyond, weights, dimension, weights @ mu2sq)])
    special = mu1 * kappa
    if model.rows is not None and model.rows.v > 0:
        special = np.insert(special, 1, shares @ by_norm, axis=0)
    count, N, one = len(offsets), len(weights), np.ones(1)
    constant = np.ones((int(model.intercept), N))
    return Table(
        weights=weights,
        places=places,
        kappa=kappa,
        mean=np.zeros((0, N)),
        root=np.zeros((0, 0, N)),
        offsets=np.vstack([offsets, constant]),
        mu1=mu1[None],
        mu2sq=mu2sq[None],
        loadings=special[None],
        h=labels.h,
        g=np.zeros((0, N)),
        spread=labels.spread,
        fractions=one,
        c=geometry.c[:1],
        beta=model.beta,
        noise=model.labels.variance,
        dimension=dimension,
        classes=np.zeros(count, np.int64),
        shares=np.ones(count),
        signs=np.ones((count, len(special))),
        covariance=rows,
    )


def _input_rule(coordinates: int, rest: int, sizes: Sizes) -> Rule:
    """Rule for standard normal coordinates of the labels, of the rest of u, and along b."""
    if coordinates > MOST_ON_GRID:
        from scipy.stats.qmc import Sobol

        points = Sobol(coordinates + rest + 1, rng=0).random(sizes.points)
        return Rule(ndtri(points), np.full(sizes.points, 1 / sizes.points))
    counts = [sizes.labels] * coordinates + [sizes.spike] * rest + [sizes.noise]
    return drop_light_nodes(tensor_rule(*map(gauss_hermite, counts)))


def _loadings(rows: LoadedRows, dimension: float, sizes: Sizes) -> tuple[Array, Array, Array]:
    """Nodes of a row's loadings (J, n + 1), in standard normal coordinates (J, k), and weights
    (J,).

    These are along the leading eigenvectors of the variance of s.x over rows s and inputs x.  In
    the limit all loadings are 0.
    """
    C = rows.loading_covariance
    if np.isinf(dimension):
        return np.zeros((1, len(C))), np.zeros((1, 1)), np.ones(1)
    second = np.eye(len(C))
    second[:-1, :-1] = rows.second
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    leading = np.linalg.eigh(root @ second @ root)[1][:, ::-1][:, : len(sizes.loadings)]
    rule = tensor_rule(*map(gauss_hermite, sizes.loadings[: leading.shape[1]]))
    return rule.nodes @ (root @ leading).T / np.sqrt(dimension), rule.nodes, rule.weights


def _averages(model: Model, along_u: Array, shift: Array, c: float) -> list[Array]:
    """Gaussian means at pre-activations ``along_u`` (N,) plus ``shift`` (J, N): mu_0, mu_1,
    E sigma^2 and d mu_0 / d c, (J, N) each."""

    def means(x: Array) -> Array:
        mean, first, variance = model.student.moments(x, c)
        square = mean**2 + first**2 + variance + model.feature_noise
        by_norm = model.student.second_hermite(x, c) / (2 * c)
        return np.array([mean, first / np.sqrt(c), square, by_norm])

    at = along_u + shift
    if at.size <= KNOTS:
        return list(means(at.ravel()).reshape(4, *at.shape))
    margin = 1e-9 * (1 + np.abs(at).max())
    knots = np.linspace(at.min() - margin, at.max() + margin, KNOTS)
    return list(CubicSpline(knots, means(knots), axis=1)(at))


def _leading(functions: Array, weights: Array, dimension: float, noise: float) -> Array:
    """Orthogonal combinations of ``functions`` (J, N) that a readout may use, largest first.

    The gain of one is its second moment times the dimension over the mean of mu_2^2, to which the
    readout's responses are compared.
    """
    if len(functions) == 1:
        return functions[:0]
    gram = (functions * weights) @ functions.T
    values, vectors = np.linalg.eigh(gram)
    kept = values * dimension > SMALLEST_GAIN * max(noise, 1e-12)
    kept &= values > 1e-13 * values[-1]
    return vectors[:, kept][:, ::-1].T @ functions

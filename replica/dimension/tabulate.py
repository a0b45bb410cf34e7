"""Rows of a network at its own dimension, on the coordinates of the inputs and on a direction of
the batch's noise, and tables of functions of them.  docs/theory.md 23

A row's loadings s on kappa and b are Gaussian, of covariance C / d.  At an input x the mean feature
mu_0(r kappa_u + s.x) of neurons with loadings s is a function of them, which Hermite polynomials
expand: with standard normal coordinates, in which s.x = sum_k z_k a_k(x) of variance v(x),

    mu_0(r kappa_u + s.x) = sum_n He_n(z) O_n(x),    O_n = F_|n| prod_k a_k^n_k / n_k!^(1/2),
    F_n = E mu_0^(n)(r kappa_u + v^(1/2) z),                                          (23.4)

with normalised He_n.  A readout that is a function of the loadings has a coefficient for each, of
the price of m; but of degree 1 it is theta.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.linalg import null_space
from scipy.special import ndtri

from solvers.chebyshev import interpolant
from solvers.results import Array
from solvers.rules import Rule, drop_light_nodes, gauss_hermite, tensor_rule

from ..equivalence import Table
from ..problem import Components, Model
from ..saddle_point import DELTA, TabulatedRows

SMALL_PRODUCT = 1e-6  # q c, where c_e has its slope at 0
# values of q over the inverse of the largest covariance, and the polynomial through C(q) there
FIT_POINTS, FIT_STEP, FIT_DEGREE = 10, 1e-3, 5


@dataclass(frozen=True, eq=False)
class LoadedRows(TabulatedRows):
    """Rows of one group on n coordinates kappa of the inputs, and on a direction b of the bulk.

    Special directions are in the order kappa_1, delta, kappa_2, ..., kappa_n, b.

    Attributes
    ----------
    coordinates : (n, n)
        The coordinates kappa in the basis (u, zeta): those on which labels and inputs depend, and
        the part of u outside them.
    second : (n, n)
        Second moments E kappa kappa^T of the inputs.
    """

    coordinates: Array
    second: Array

    def _on_coordinates(self, q: Array) -> tuple[Array, Array]:
        """Tabulated C(q) on kappa and delta, (P, n + 1, n + 1), and its derivative."""
        n = len(self.coordinates)
        turn, others = np.zeros((n + 1, n + 1)), np.delete(np.arange(n + 1), DELTA)
        turn[np.ix_(others, others)], turn[DELTA, DELTA] = self.coordinates, 1.0
        C, slope = super().special_covariance(q)
        return turn @ C @ turn.T, turn @ slope @ turn.T

    @cached_property
    def _at_zero(self) -> tuple[Array, Array, Array]:
        """C_FF, C_F_ C_F_^T and C_F_ C__ C_F_^T, with _ for the directions of the bulk.
        Eq. (23.1)"""
        largest = np.linalg.eigvalsh(self._on_coordinates(np.zeros(1))[0][0])[-1]
        q = FIT_STEP / largest * np.arange(FIT_POINTS)
        C = self._on_coordinates(q)[0]
        powers = np.vander(q / q[-1], FIT_DEGREE + 1, increasing=True)
        fit = np.linalg.lstsq(powers, C.reshape(len(q), -1), rcond=None)[0]
        value, slope, half_curvature = fit[:3].reshape(3, *C.shape[1:])
        return value, -slope / q[-1], half_curvature / q[-1] ** 2

    @cached_property
    def _noise_direction(self) -> tuple[Array, float]:
        """Covariances C_Fb (n + 1,) and C_bb of the direction b, in which the bulk varies with the
        rows' largest coordinate.  Eq. (23.2)

        It is the first vector of Lanczos' method.  Where the bulk does not vary with the
        coordinates, b is any direction of the bulk.
        """
        C, through_bulk, twice = self._at_zero
        others = np.delete(np.arange(len(C)), DELTA)
        within = C[np.ix_(others, others)]
        # a left eigenvector of C E[kappa kappa^T]: t.v is a row's coordinate of largest effect
        values, vectors = np.linalg.eig(self.second @ within)
        t = np.zeros(len(C))
        t[others] = vectors[:, np.argmax(values.real)].real
        squared_norm = t @ through_bulk @ t
        if squared_norm < 1e-8 * np.linalg.norm(within) ** 2:
            return np.zeros(len(C)), self.c
        return through_bulk @ t / np.sqrt(squared_norm), float(t @ twice @ t / squared_norm)

    @cached_property
    def loading_covariance(self) -> Array:
        """d times the covariance of a row's loadings on (kappa, b), (n + 1, n + 1)."""
        across, own = self._noise_direction
        C = np.block([[self._at_zero[0], across[:, None]], [across, np.full((1, 1), own)]])
        return np.delete(np.delete(C, DELTA, 0), DELTA, 1)

    @cached_property
    def noise_ratio(self) -> float:
        """Variance of rows along the noise direction over the largest along the coordinates, each
        times that of the inputs."""
        C = self.loading_covariance
        return float(C[-1, -1] / np.linalg.eigvals(self.second @ C[:-1, :-1]).real.max())

    @cached_property
    def share_of_directions(self) -> float:
        """D / d, where D = 1 / E rho^2 is the number of directions that the bulk of the rows makes
        use of.  docs/network.md, "How large d must be" """
        slope = self.c_e(np.array([SMALL_PRODUCT / self.c]))[1][0]
        return float(self.c**2 / (self.c**2 - slope))

    @cached_property
    def mean_row(self) -> float:
        """Squared length of the rows' mean over that of independent rows.  Eq. (23.8)"""
        return self.rows.mean_row / self.c

    def special_covariance(self, q: Array) -> tuple[Array, Array]:
        """Covariance C on the n + 2 directions, (P, n + 2, n + 2), at q, and its derivative: b is
        no longer among the directions that C(q) integrates out.  Eq. (23.3)"""
        (across, own), n = self._noise_direction, len(self.coordinates)
        outer, resolved = np.outer(across, across), (1 / (1 + q * own))[:, None, None]
        C, slope = np.zeros((2, len(q), n + 2, n + 2))
        inner = self._on_coordinates(q)
        C[:, :-1, :-1] = inner[0] + q[:, None, None] * resolved * outer
        slope[:, :-1, :-1] = inner[1] + resolved**2 * outer
        C[:, :-1, -1] = C[:, -1, :-1] = across
        C[:, -1, -1] = own
        return C, slope


@lru_cache(maxsize=16)
def loaded_rows(model: Model) -> LoadedRows:
    """Loaded rows of a network of one kind of neurons, at any dimension."""
    rows: Any = model.rows
    basis, averages = model.components.basis, model.components
    coordinates = np.vstack([basis, null_space(basis).T])
    roots = np.concatenate([averages.slope, averages.root], axis=2)  # of (u, zeta)
    moments = roots @ roots.swapaxes(1, 2) + averages.mean[:, :, None] * averages.mean[:, None]
    second = np.tensordot(averages.shares, moments, axes=1)
    return LoadedRows(rows.tabulated.rows, coordinates, coordinates @ second @ coordinates.T)


class Sizes(NamedTuple):
    """Numbers of nodes of the rule for the inputs at one level.

    Attributes
    ----------
    coordinates, rest, noise
        Along a coordinate of the labels, the rest of u, and the noise direction b.
    points
        Points of a quasi-Monte-Carlo rule, for three coordinates of the labels or more.
    """

    coordinates: int
    rest: int
    noise: int
    points: int


TABLE_SIZES = Sizes(10, 7, 5, 2**12), Sizes(16, 15, 5, 2**13), Sizes(20, 13, 6, 2**15)
DROPPED = 1e-5  # share of the weight of light nodes, which changes errors by up to 5e-6
ON_A_LINE = 3  # times as many nodes along them, of a single coordinate of the labels
MOST_ON_GRID = 2  # coordinates of the labels in a product of Gauss rules
LOADING_NODES = 32  # of the rule for s.x at an input
# of the functions of loadings: degree, and size over the largest of degree two
HIGHEST_DEGREE, SMALLEST_TERM = 12, 1e-7
# least gain of a function of the inputs that the table has, and over the largest gain
SMALLEST_GAIN, SMALLEST_OF_GAINS = 1e-4, 1e-3  # smaller ones change errors by 1e-6 to 1e-4


@dataclass(frozen=True, eq=False)
class LoadedTable(Table):
    """Table of a network at its own dimension.

    Attributes
    ----------
    square : (N,)
        Second moment of the features' part of degree two in the bulk, a part of mu_2^2.
    products : float
        Number of products of two directions of the bulk, D^2/2, over d.
    by_length : (N,)
        Standard deviation of the mean feature over the lengths of inputs in the bulk.
    """

    square: Any = None
    products: float = np.inf
    by_length: Any = None


@lru_cache(maxsize=6)  # a table takes some 10 MB
def table_at_dimension(model: Model, dimension: float, level: int) -> LoadedTable | None:
    """Table of a network, a ``model`` of the limit, at an input ``dimension`` or in the limit, of
    one of ``TABLE_SIZES``; None past the last."""
    return tabulate(model, dimension, TABLE_SIZES[level]) if level < len(TABLE_SIZES) else None


def tabulate(model: Model, dimension: float, sizes: Sizes) -> LoadedTable:
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
    geometry: Any = model.geometry
    # the bulk is without the directions of the loadings, of which the noise's has its own variance
    c = float(geometry.c[0]) * (1 - n / dimension) - rows.loading_covariance[-1, -1] / dimension
    along_u = geometry.r[0, 0] * rows.coordinates[:, 0] @ kappa[:n] + geometry.bias[0]
    # x^T C x / d of inputs there, from tr C^2 / d^2 without the noise's direction.  Eq. (23.10)
    square_of_bulk = float(geometry.c[0]) ** 2 / rows.share_of_directions
    square_of_bulk -= rows.loading_covariance[-1, -1] ** 2 / dimension
    sd_of_length = np.sqrt(2 * max(square_of_bulk, c**2) / dimension)
    axes = _loading_axes(rows, dimension) @ kappa
    variance = c + (axes**2).sum(axis=0)
    features = model.student.moments(along_u, variance)
    mu1 = features.first / np.sqrt(variance)
    by_norm = model.student.second_hermite(along_u, variance) / (2 * variance)
    hermite, of_rows = _loading_functions(model, along_u, axes, weights, c)
    square = features.mean**2 + features.first**2 + features.variance + model.feature_noise
    mu2sq = np.maximum(square - of_rows - c * mu1**2, 0.0)  # Eq. (23.5)
    offsets = np.vstack([features.mean, _leading(hermite, weights, dimension, weights @ mu2sq)])
    special = mu1 * kappa
    if model.rows.v > 0:
        special = np.insert(special, DELTA, by_norm, axis=0)
    count, N, one = len(offsets), len(weights), np.ones(1)
    constant = np.ones((int(model.intercept), N))
    return LoadedTable(
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
        c=np.array([c]),
        beta=model.beta,
        noise=model.labels.variance,
        dimension=dimension,
        kinds=np.zeros(count, np.int64),
        shares=np.ones(count),
        signs=np.ones((count, len(special))),
        covariance=rows,
        square=2 * (c * by_norm) ** 2,
        products=rows.share_of_directions**2 * dimension / 2,
        by_length=sd_of_length * by_norm,
    )


def _input_rule(coordinates: int, rest: int, sizes: Sizes) -> Rule:
    """Rule for standard normal coordinates of the labels, of the rest of u, and along b."""
    if coordinates > MOST_ON_GRID:
        from scipy.stats.qmc import Sobol

        points = Sobol(coordinates + rest + 1, rng=0).random(sizes.points)
        return Rule(ndtri(points), np.full(sizes.points, 1 / sizes.points))
    finer = ON_A_LINE if coordinates == 1 else 1
    counts = *[finer * sizes.coordinates] * coordinates, *[finer * sizes.rest] * rest, sizes.noise
    return drop_light_nodes(tensor_rule(*map(gauss_hermite, counts)), DROPPED)


def _loading_axes(rows: LoadedRows, dimension: float) -> Array:
    """Vectors (k, n + 1) whose products a_k with an input are the coefficients in s.x of
    independent standard normal coordinates of the loadings, those of largest E a_k^2 first."""
    C = rows.loading_covariance
    second = np.eye(len(C))
    second[:-1, :-1] = rows.second
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    leading = np.linalg.eigh(root @ second @ root)[1][:, ::-1]
    return np.asarray((root @ leading).T / np.sqrt(dimension))


def _loading_functions(
    model: Model, along_u: Array, axes: Array, weights: Array, c: float
) -> tuple[Array, Array]:
    """The functions O_n of degree two or more, (f, N), for the products ``axes`` a_k (k, N); and
    the mean of mu_0^2 over loadings, (N,).  Eq. (23.4)"""
    if not axes.any():  # the limit
        return np.zeros((0, len(weights))), model.student.moments(along_u, c).mean ** 2
    sd, rule = np.sqrt((axes**2).sum(axis=0)), gauss_hermite(LOADING_NODES)
    at = along_u + np.multiply.outer(rule.nodes, sd)
    ends = float(at.min()), float(at.max())
    (mu0,) = interpolant(lambda x: model.student.moments(x, c).mean[None], *ends, at.size)(at)
    degrees = list(_degrees((axes**2) @ weights / c))
    highest = max(map(len, degrees), default=0)
    # E He_n(z) mu_0 = sd^n F_n
    coefficients = (hermevander(rule.nodes, highest) * rule.weights[:, None]).T @ mu0
    unit = axes / np.where(sd > 0, sd, 1.0)
    functions = [
        coefficients[len(n)] * unit[list(n)].prod(axis=0) / _root_of_factorials(n) for n in degrees
    ]
    return np.array(functions).reshape(len(functions), len(weights)), rule.weights @ mu0**2


def _degrees(sizes: Array) -> Iterator[tuple[int, ...]]:
    """Sorted indices of the coordinates in products of two or more, (0, 0, 2) for z_0^2 z_2, that
    are not too small at ``sizes`` (k,) of E a_k^2 / c."""
    shares = sizes / (1 + sizes.sum())
    least = SMALLEST_TERM * shares.max() ** 2
    for degree in range(2, HIGHEST_DEGREE + 1):
        for n in combinations_with_replacement(range(len(sizes)), degree):
            multinomial = factorial(degree) / _root_of_factorials(n) ** 2
            if multinomial * shares[list(n)].prod() > least:
                yield n


def _root_of_factorials(n: tuple[int, ...]) -> float:
    """Root of the product of n_k!."""
    return float(np.sqrt(prod(factorial(n.count(k)) for k in set(n))))


def _leading(functions: Array, weights: Array, dimension: float, noise: float) -> Array:
    """Orthogonal combinations of ``functions`` (J, N) that a readout may use, largest first.

    The gain of one is its second moment times the dimension over the mean of mu_2^2, to which the
    readout's responses are compared.
    """
    if not len(functions):
        return functions
    values, vectors = np.linalg.eigh((functions * weights) @ functions.T)
    least = min(SMALLEST_GAIN * noise / dimension, SMALLEST_OF_GAINS * values[-1])
    kept = values > max(least, 1e-13 * values[-1])
    return vectors[:, kept][:, ::-1].T @ functions

"""Rows of a network at its own dimension, on the coordinates of the inputs and on a direction of
the batch's noise, and tables of functions of them.  docs/theory.md 23

A row's loadings s on kappa and b are Gaussian, of covariance C / d.  At an input x the mean feature
mu_0(r kappa_u + s.x) of neurons with loadings s is a function of them, which Hermite polynomials
expand: with standard normal coordinates, in which s.x = sum_k z_k a_k(x) of variance v(x),

    mu_0(r kappa_u + s.x) = sum_n He_n(z) O_n(x),    O_n = F_|n| prod_k a_k^n_k / n_k!^(1/2),
    F_n = E mu_0^(n)(r kappa_u + v^(1/2) z),                                          (23.4)

with normalised He_n.  A readout that is a function of the loadings has a coefficient for each, of
the price of m; but of degree 1 it is theta.  Where rows vary most with the noise of the batch, they
are functions of the loadings on the labels' coordinates: the others are of use in degree 1 alone.
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
from scipy.special import gammaln, ndtri

from solvers.chebyshev import interpolant
from solvers.resources import GivenUp
from solvers.results import Array, Status
from solvers.rules import Rule, drop_light_nodes, gauss_hermite, rule_between_kinks, tensor_rule

from ..equivalence import Table, zero_small
from ..problem import Components, Model, kinks_on_axes
from ..saddle_point import DELTA, TabulatedRows

# Share of the rows' largest coordinate that is the labels'.  With functions of all loadings test
# errors are up to 10 % too low where it is .1 to .55; without, up to 20 % too high where it is .67
# to 1.
LEAST_OF_LABELS = 0.6


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
    label_count : int
        Number of coordinates on which labels and inputs depend, which are the first.
    """

    coordinates: Array
    second: Array
    label_count: int

    def _on_coordinates(self, q: Array) -> tuple[Array, Array]:
        """Tabulated C(q) on kappa and delta, (P, n + 1, n + 1), and its derivative."""
        n = len(self.coordinates)
        turned_axes, others = np.zeros((n + 1, n + 1)), np.delete(np.arange(n + 1), DELTA)
        turned_axes[np.ix_(others, others)], turned_axes[DELTA, DELTA] = self.coordinates, 1.0
        C, C_slope = super().special_covariance(q)
        return turned_axes @ C @ turned_axes.T, turned_axes @ C_slope @ turned_axes.T

    @cached_property
    def _at_zero(self) -> tuple[Array, Array, Array]:
        """C_FF, C_F_ C_F_^T and C_F_ C__ C_F_^T, with _ for the directions of the bulk.
        Eq. (23.1)"""
        # q over the inverse of the largest covariance, and the polynomial through C(q) there
        fit_points, fit_step, fit_degree = 10, 1e-3, 5
        largest_variance = np.linalg.eigvalsh(self._on_coordinates(np.zeros(1))[0][0])[-1]
        q = fit_step / largest_variance * np.arange(fit_points)
        C = self._on_coordinates(q)[0]
        q_powers = np.vander(q / q[-1], fit_degree + 1, increasing=True)
        C_fit = np.linalg.lstsq(q_powers, C.reshape(len(q), -1), rcond=None)[0]
        C_value, slope, half_curvature = C_fit[:3].reshape(3, *C.shape[1:])
        return C_value, -slope / q[-1], half_curvature / q[-1] ** 2

    @cached_property
    def largest_coordinate(self) -> Array:
        """Unit vector t (n,) such that t.v is the coordinate of a row v of largest effect: a left
        eigenvector of C E[kappa kappa^T]."""
        other_axes = np.delete(np.arange(len(self.coordinates) + 1), DELTA)
        C_within = self._at_zero[0][np.ix_(other_axes, other_axes)]
        values, vectors = np.linalg.eig(self.second @ C_within)
        return np.asarray(vectors[:, np.argmax(values.real)].real)

    @property
    def useful_loadings(self) -> int:
        """Number of coordinates of which functions of the loadings are of use: those of the labels,
        or all n + 1 where the rows' largest coordinate is mostly one of the labels'."""
        of_labels = float(np.square(self.largest_coordinate[: self.label_count]).sum())
        all_coordinates = len(self.coordinates) + 1
        return all_coordinates if of_labels > LEAST_OF_LABELS else self.label_count

    @cached_property
    def _noise_direction(self) -> tuple[Array, float]:
        """Covariances C_Fb (n + 1,) and C_bb of the direction b, in which the bulk varies with the
        rows' largest coordinate.  Eq. (23.2)

        It is the first vector of Lanczos' method.  Where the bulk does not vary with the
        coordinates, b is any direction of the bulk.
        """
        C, through_bulk, twice = self._at_zero
        t = np.insert(self.largest_coordinate, DELTA, 0.0)
        squared_norm = t @ through_bulk @ t
        if squared_norm < 1e-8 * np.linalg.norm(C) ** 2:
            return np.zeros(len(C)), self.c
        return through_bulk @ t / np.sqrt(squared_norm), float(t @ twice @ t / squared_norm)

    @cached_property
    def loading_covariance(self) -> Array:
        """d times the covariance of a row's loadings on (kappa, b), (n + 1, n + 1)."""
        C_across, C_own = self._noise_direction
        C = np.block([[self._at_zero[0], C_across[:, None]], [C_across, np.full((1, 1), C_own)]])
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
        small_product = 1e-6  # q c, where c_e has its slope at 0
        c_e_slope = self.c_e(np.array([small_product / self.c]))[1][0]
        return float(self.c**2 / (self.c**2 - c_e_slope))

    @cached_property
    def mean_row(self) -> float:
        """Squared length of the rows' mean over that of independent rows.  Eq. (23.8)"""
        return self.rows.mean_row / self.c

    def special_covariance(self, q: Array) -> tuple[Array, Array]:
        """Covariance C on the n + 2 directions, (P, n + 2, n + 2), at q, and its derivative: b is
        no longer among the directions that C(q) integrates out.  Eq. (23.3)"""
        (C_across, C_own), coordinate_count = self._noise_direction, len(self.coordinates)
        outer_C, resolved_C = np.outer(C_across, C_across), (1 / (1 + q * C_own))[:, None, None]
        C, C_slope = np.zeros((2, len(q), coordinate_count + 2, coordinate_count + 2))
        inner_C = self._on_coordinates(q)
        C[:, :-1, :-1] = inner_C[0] + q[:, None, None] * resolved_C * outer_C
        C_slope[:, :-1, :-1] = inner_C[1] + resolved_C**2 * outer_C
        C[:, :-1, -1] = C[:, -1, :-1] = C_across
        C[:, -1, -1] = C_own
        return C, C_slope


@lru_cache(maxsize=16)
def loaded_rows(model: Model) -> LoadedRows:
    """Loaded rows of a network of one kind of neurons, at any dimension."""
    rows: Any = model.rows
    row_basis, inputs = model.components.basis, model.components
    coordinates = np.vstack([row_basis, null_space(row_basis).T])
    roots = np.concatenate([inputs.slope, inputs.root], axis=2)  # of (u, zeta)
    input_moments = roots @ roots.swapaxes(1, 2) + inputs.mean[:, :, None] * inputs.mean[:, None]
    second_moment = np.tensordot(inputs.shares, input_moments, axes=1)
    on_coordinates = coordinates @ second_moment @ coordinates.T
    return LoadedRows(rows.tabulated.rows, coordinates, on_coordinates, len(row_basis))


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


TABLE_SIZES = (
    *(Sizes(10, 7, 5, 2**12), Sizes(16, 15, 5, 2**13)),
    *(Sizes(40, 13, 6, 2**15), Sizes(56, 13, 6, 2**16)),  # steep targets take these
)
DROPPED = 1e-5  # share of the weight of nodes that are dropped: errors change by half of it


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
    fourth : (N,)
        Fourth cumulant of the features' noise, whose variance is mu_2^2.
    """

    square: Any = None
    products: float = np.inf
    by_length: Any = None
    fourth: Any = None


@lru_cache(maxsize=8)  # two of each level; a table takes some 10 MB, of steep targets 30
def table_at_dimension(
    model: Model, dimension: float, level: int, dropped: float = DROPPED
) -> LoadedTable | None:
    """Table of a network, a ``model`` of the limit, at an input ``dimension`` or in the limit, of
    one of ``TABLE_SIZES``; None past the last."""
    if level >= len(TABLE_SIZES):
        return None
    return loaded_table(model, dimension, TABLE_SIZES[level], dropped)


def loaded_table(
    model: Model, dimension: float, sizes: Sizes, dropped: float = DROPPED
) -> LoadedTable:
    """Table of a network at an input ``dimension``, or in the limit, on rules of given ``sizes``
    without the light nodes, which hold a share ``dropped`` of the weight.  Eqs. (23.3)-(23.5)

    The offsets are the mean feature and, at a finite dimension, the functions of degree two or more
    in a row's loadings, each of which has the price of m.
    """
    net_rows = loaded_rows(model)
    n, D = len(net_rows.coordinates), len(model.components.basis)
    label_axes = np.eye(D, n + 1)
    input_components = Components.from_law(model.inputs, label_axes, model.labels.combinations)
    kinks: list[list[float]] = [[] for _ in range(D)]
    if model.inputs is None:  # else normal coordinates of a component have them elsewhere
        T = model.labels.combinations.shape[1]
        planes = [(v @ model.labels.combinations, t) for v, t in model.labels.combined_mean.planes]
        kinks[:T] = kinks_on_axes(planes, T)
    input_places, x_weights = input_components.places_and_weights(
        _input_rule(kinks, n - D, sizes, dropped)
    )
    kappa = input_components.projection_means(input_places)[: n + 1]
    label_moments = input_components.moments(model.labels.combined_mean, input_places)
    geometry: Any = model.geometry
    # the bulk is without the directions of the loadings, of which the noise's has its own variance
    c = float(geometry.c[0]) * (1 - n / dimension) - net_rows.loading_covariance[-1, -1] / dimension
    if c <= 0:  # no direction of the bulk is left
        raise GivenUp(Status.FEW_DIRECTIONS)
    shift_along_u = geometry.r[0, 0] * net_rows.coordinates[:, 0] @ kappa[:n] + geometry.bias[0]
    # x^T C x / d of inputs there, from tr C^2 / d^2 without the noise's direction.  Eq. (23.10)
    square_of_bulk = float(geometry.c[0]) ** 2 / net_rows.share_of_directions
    square_of_bulk -= net_rows.loading_covariance[-1, -1] ** 2 / dimension
    sd_of_length = np.sqrt(2 * max(square_of_bulk, c**2) / dimension)
    on_useful, on_rest = (axes @ kappa for axes in _loading_axes(net_rows, dimension))
    rest_variance = (on_rest**2).sum(axis=0)
    bulk_variance = c + (on_useful**2).sum(axis=0) + rest_variance
    features = model.student.moments(shift_along_u, bulk_variance)
    feature_size = float(np.sqrt((features.mean**2 + features.first**2 + features.variance).max()))
    mean_feature = zero_small(features.mean[None], feature_size)
    mu1 = features.first / np.sqrt(bulk_variance)
    by_norm = model.student.second_hermite(shift_along_u, bulk_variance) / (2 * bulk_variance)
    hermite, of_rows = _loading_functions(
        model, shift_along_u, on_useful, rest_variance, x_weights, c
    )
    feature_square = features.mean**2 + features.first**2 + features.variance + model.feature_noise
    mu2sq = np.maximum(feature_square - of_rows - c * mu1**2, 0.0)  # Eq. (23.5)
    offsets = np.vstack([mean_feature, _leading(hermite, x_weights, dimension, x_weights @ mu2sq)])
    special_loadings = mu1 * kappa
    if model.rows.v > 0:
        special_loadings = np.insert(special_loadings, DELTA, by_norm, axis=0)
    offset_count, N, one_share = len(offsets), len(x_weights), np.ones(1)
    intercept_offset = np.ones((int(model.intercept), N))
    return LoadedTable(
        weights=x_weights,
        places=input_places,
        kappa=kappa,
        mean=np.zeros((0, N)),
        root=np.zeros((0, 0, N)),
        offsets=np.vstack([offsets, intercept_offset]),
        mu1=mu1[None],
        mu2sq=mu2sq[None],
        loadings=special_loadings[None],
        h=label_moments.h,
        g=np.zeros((0, N)),
        spread=label_moments.spread,
        fractions=one_share,
        c=np.array([c]),
        beta=model.beta,
        noise=model.labels.variance,
        dimension=dimension,
        kinds=np.zeros(offset_count, np.int64),
        shares=np.ones(offset_count),
        signs=np.ones((offset_count, len(special_loadings))),
        covariance=net_rows,
        square=2 * (c * by_norm) ** 2,
        products=net_rows.share_of_directions**2 * dimension / 2,
        by_length=sd_of_length * by_norm,
        fourth=_fourth_cumulant(model, shift_along_u, c),
    )


def _fourth_cumulant(model: Model, along_u: Array, c: float) -> Array:
    """Fourth cumulant (N,) of sigma - mu_0 - mu_1 v, for preactivations ``along_u`` (N,) + v and v
    of variance ``c``: to some per cent, interpolated."""
    shifts = np.linspace(along_u.min(), along_u.max(), 65)
    return np.interp(along_u, shifts, model.student.cumulants(shifts, np.full(65, c))[1])


def _input_rule(kinks: list[list[float]], rest: int, sizes: Sizes, dropped: float) -> Rule:
    """Rule for standard normal coordinates of the labels, which have ``kinks``, of the rest of u,
    and along b."""
    most_on_grid = 2  # coordinates of the labels in a product of Gauss rules
    on_a_line = 3  # times as many nodes along them, of a single coordinate of the labels
    coordinates = len(kinks)
    if coordinates > most_on_grid:
        from scipy.stats.qmc import Sobol

        sobol_points = Sobol(coordinates + rest + 1, rng=0).random(sizes.points)
        return Rule(ndtri(sobol_points), np.full(sizes.points, 1 / sizes.points))
    finer = on_a_line if coordinates == 1 else 1
    label_nodes = finer * sizes.coordinates
    if label_nodes < 30:  # too few for panels
        kinks = [[]] * coordinates
    elif sizes.coordinates >= 40:  # which steep targets take: panels are better for these
        kinks = [[0.0, *each] for each in kinks]
    label_rules = [rule_between_kinks(label_nodes, each) for each in kinks]
    other_rules = map(gauss_hermite, [*[finer * sizes.rest] * rest, sizes.noise])
    return drop_light_nodes(tensor_rule(*label_rules, *other_rules), dropped)


def _loading_axes(rows: LoadedRows, dimension: float) -> tuple[Array, Array]:
    """Vectors (k, n + 1) whose products a_k with an input are the coefficients in s.x of
    independent standard normal coordinates of the loadings: coordinates of the useful loadings,
    those of largest E a_k^2 first, and coordinates of what is left of the others, given these."""
    count = rows.useful_loadings
    C, moment = rows.loading_covariance, np.eye(len(rows.loading_covariance))
    moment[:-1, :-1] = rows.second
    root = _root(C[:count, :count])
    on_useful = np.vstack([root, C[count:, :count] @ np.linalg.pinv(root)])
    leading_axes = np.linalg.eigh(on_useful.T @ moment @ on_useful)[1][:, ::-1]
    on_rest = np.zeros((len(C), len(C) - count))
    on_rest[count:] = _root(C[count:, count:] - on_useful[count:] @ on_useful[count:].T)
    return (on_useful @ leading_axes).T / np.sqrt(dimension), on_rest.T / np.sqrt(dimension)


def _root(matrix: Array) -> Array:
    """The root of a symmetric matrix >= 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _loading_functions(
    model: Model, along_u: Array, axes: Array, rest: Array, weights: Array, c: float
) -> tuple[Array, Array]:
    """The functions O_n of degree two or more, (f, N), for the products ``axes`` a_k (k, N) where
    the other loadings have the variance ``rest`` (N,) in s.x; and the mean square of these
    functions, of mu_0 and of all of degree 1, (N,).  Eq. (23.4)"""
    loading_nodes = 32  # of the rule for s.x at an input
    loading_sd, a_rule = np.sqrt((axes**2).sum(axis=0) + rest), gauss_hermite(loading_nodes)
    if not loading_sd.any():  # the limit
        return np.zeros((0, len(weights))), model.student.moments(along_u, c).mean ** 2
    at = along_u + np.multiply.outer(a_rule.nodes, loading_sd)
    shift_ends = float(at.min()), float(at.max())
    (mu0,) = interpolant(lambda x: model.student.moments(x, c).mean[None], *shift_ends, at.size)(at)
    powers = np.arange(loading_nodes)
    # E He_n(z) mu_0 = loading_sd^n F_n, for normalised He_n
    normalised = hermevander(a_rule.nodes, loading_nodes - 1) * np.exp(-gammaln(powers + 1) / 2)
    hermite_F = (normalised * a_rule.weights[:, None]).T @ mu0
    unit = axes / np.where(loading_sd > 0, loading_sd, 1.0)
    functions = [
        hermite_F[len(n)] * unit[list(n)].prod(axis=0) * _root_of_multinomial(n)
        for n in _degrees((axes**2) @ weights / c)
    ]
    of_useful = (unit**2).sum(axis=0)  # share of the variance of s.x
    mean_square = (hermite_F**2 * of_useful ** powers[:, None]).sum(axis=0)
    mean_square += hermite_F[1] ** 2 * (1 - of_useful)
    return np.array(functions).reshape(len(functions), len(weights)), mean_square


def _degrees(loading_sizes: Array) -> Iterator[tuple[int, ...]]:
    """Sorted indices of the coordinates in products of two or more, (0, 0, 2) for z_0^2 z_2, that
    are not too small at ``loading_sizes`` (k,) of E a_k^2 / c."""
    # of the functions of loadings: degree, and size over the largest of degree two
    highest_degree, smallest_term = 12, 1e-7
    term_shares = loading_sizes / (1 + loading_sizes.sum())
    least_term = smallest_term * term_shares.max() ** 2
    for degree in range(2, highest_degree + 1):
        for term_axes in combinations_with_replacement(range(len(loading_sizes)), degree):
            multinomial = _root_of_multinomial(term_axes) ** 2
            if multinomial * term_shares[list(term_axes)].prod() > least_term:
                yield term_axes


def _root_of_multinomial(term_axes: tuple[int, ...]) -> float:
    """Root of n! over the product of n_k!."""
    counts = [factorial(term_axes.count(k)) for k in set(term_axes)]
    return float(np.sqrt(factorial(len(term_axes)) / prod(counts)))


def _leading(functions: Array, weights: Array, dimension: float, noise: float) -> Array:
    """Orthogonal combinations of ``functions`` (J, N) that a readout may use, largest first.

    The gain of one is its second moment times the dimension over the mean of mu_2^2, to which the
    readout's responses are compared.
    """
    # least gain of a function of the inputs that the table has, and over the largest gain
    smallest_gain, smallest_of_gains = 1e-4, 1e-3  # smaller ones change errors by 1e-6 to 1e-4
    if not len(functions):
        return functions
    function_gains, gain_vectors = np.linalg.eigh((functions * weights) @ functions.T)
    least_gain = min(smallest_gain * noise / dimension, smallest_of_gains * function_gains[-1])
    gain_kept = function_gains > max(least_gain, 1e-13 * function_gains[-1])
    return gain_vectors[:, gain_kept][:, ::-1].T @ functions

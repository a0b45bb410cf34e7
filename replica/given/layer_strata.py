"""Strata of a given layer: Hermite moments d_k of every neuron at nodes.  Eqs. (20.9)-(20.14)

A stratum is a component of the inputs and a node z of a quadrature rule, given which
pre-activations are s(z) + g, Gaussian of the covariance B (``nodes``).  With c_i = B_ii, rho the
correlations between different neurons and d_k of (20.1), second moments of features are there

    M = S + mu mu^T = diag(q) + sum_{k <= K} (d_k d_k^T) o rho^k + (D D^T) o rho^K',        (20.9)

with products of entries o and mu = d_0.  q_i = E sigma_i^2 is exact.  D_i^2 = q_i - sum_k d_{k,i}^2
closes the series: K' is the least even number above K.  Moments of a neuron's feature, of which its
pre-activation has the mean s and the variance c, are

    d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!),   z ~ N(0, 1).                         (20.1)

docs/theory.md 20
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.arrays import diagonal_view, like, namespace, to_host
from solvers.chebyshev import coefficient_matrix
from solvers.resources import GivenUp, check_time
from solvers.results import Array, Status
from solvers.rules import Rule

from ..problem import Activation
from .nodes import Conditioned
from .strata import EXACT, Strata

PANEL_WIDTH, PANEL_POINTS = 2.0, 13  # of t = s / sqrt(c), and Chebyshev points of each panel
MOMENT_BLOCK = 2**17  # moments that are looked up at a time, for memory


class NodeMoments:
    """Moments at shifts ``s`` (N, p), an array of any library, and variances ``c`` (p,).

    They are one function of t = s / sqrt(c) and log c for all neurons, smooth on the scales 1 and
    pi / 2: polynomials on panels of t, whose coefficients are Chebyshev series in log c.
    ``tabulated`` (p,) are neurons of which that is known, where it takes fewer integrals than there
    are moments.
    """

    def __init__(self, student: Activation, s: Any, c: Array, k_max: int) -> None:
        self.s, xp, (N, p) = s, namespace(s), s.shape
        preactivation_sd = np.sqrt(np.where(c > 0, c, np.inf))
        t = s / like(preactivation_sd, s)
        lowest_shift, highest_shift = (to_host(extreme(t, axis=0)) for extreme in (xp.min, xp.max))
        # tables end at abs(t) = 1000
        self.tabulated = (c > 0) & (np.maximum(-lowest_shift, highest_shift) <= 1000.0)
        if self.tabulated.any():
            tabulated_c = np.where(self.tabulated, c, c[self.tabulated][0])
            first_panel = lowest_shift[self.tabulated].min()
            starts = np.arange(first_panel, highest_shift[self.tabulated].max() + 1e-9, PANEL_WIDTH)
            if not self._fill(student, starts, np.log(tabulated_c), k_max, N * p):
                self.tabulated[:] = False
        rest = np.flatnonzero(~self.tabulated)
        rest = rest[np.argsort(c[rest])]  # neurons that are alike in one integral
        self.others = np.zeros((k_max + 2, N, p if rest.size else 0))
        for neurons in np.array_split(rest, -(-rest.size * N // MOMENT_BLOCK)) if rest.size else []:
            check_time()
            d_k = hermite_features(student, to_host(s)[:, neurons].T, c[neurons, None], k_max)
            self.others[:, :, neurons] = d_k.swapaxes(1, 2)
        if rest.size < p:
            t = xp.where(like(self.tabulated, s), (t - first_panel) / PANEL_WIDTH, 0.0 * t)
            panel_k = xp.floor(t)
            self.x, self.row = t - panel_k, xp.astype(panel_k, xp.int64) * p + like(np.arange(p), s)

    def _fill(self, student: Activation, starts: Array, logs: Array, k_max: int, uses: int) -> bool:
        """Tabulate moments as Chebyshev series in log c, at ``logs`` (p,), on panels of s / sqrt(c)
        that begin at ``starts``.  False, without a table, if the series need so many terms that
        this takes more integrals than there are ``uses`` of it."""
        middle_log, half_log = (logs.max() + logs.min()) / 2, (logs.max() - logs.min()) / 2
        terms = 2 + int(np.ceil(np.log(1e9) / np.arcsinh(np.pi / 2 / max(half_log, 1e-9))))
        chebyshev_points = chebpts1(PANEL_POINTS)
        shift_ratio = starts[:, None] + PANEL_WIDTH * (chebyshev_points + 1) / 2
        # powers of 0 ... 1 on a panel, the highest first
        panel_powers = np.linalg.inv(np.vander((chebyshev_points + 1) / 2))
        while 2 * terms * shift_ratio.size <= uses:
            check_time()
            deviation = np.exp((middle_log + half_log * chebpts1(terms)) / 2)[:, None, None]
            node_moments = hermite_features(student, shift_ratio * deviation, deviation**2, k_max)
            log_series = np.einsum("ab,kbpx->kapx", coefficient_matrix(terms), node_moments)
            term_sizes = np.abs(log_series).max(axis=(2, 3))
            largest_terms = term_sizes.max(axis=1)
            # below a part of the largest but the mean it is rounding
            largest_terms = np.maximum(largest_terms, 1e-4 * largest_terms[1:].max())
            if (term_sizes[:, -2:].max(axis=1) <= 1e-6 * largest_terms).all():
                # (k_max + 2, PANEL_POINTS, panels, count)
                self.series = np.einsum("kapx,yx->kypa", log_series, panel_powers, optimize=True)
                self.terms = chebvander((logs - middle_log) / max(half_log, 1e-300), terms - 1).T
                return True
            terms *= 2  # of functions that oscillate, log c takes more terms
        return False

    def at(self, k: int) -> Any:
        """d_k, or E sigma^2 for k = k_max + 1, of every neuron at every node: (N, p)."""
        if not self.tabulated.any():
            return like(self.others[k], self.s)
        xp, (N, p), moment_blocks = namespace(self.x), self.x.shape, []
        # (PANEL_POINTS, panels * p)
        panel_polynomials = like((self.series[k] @ self.terms).reshape(PANEL_POINTS, -1), self.x)
        for first_node in range(0, N, max(1, MOMENT_BLOCK // p)):
            check_time()
            node_block = slice(first_node, first_node + max(1, MOMENT_BLOCK // p))
            table_row, x = (xp.reshape(each[node_block, :], (-1,)) for each in (self.row, self.x))
            block_moments = xp.take(panel_polynomials[0, :], table_row, axis=0)
            for power in range(1, PANEL_POINTS):  # Horner's scheme
                block_moments *= x
                block_moments += xp.take(panel_polynomials[power, :], table_row, axis=0)
            moment_blocks.append(xp.reshape(block_moments, (-1, p)))
        d_k = xp.concat(moment_blocks)
        if self.tabulated.all():
            return d_k
        return xp.where(like(self.tabulated, d_k), d_k, like(self.others[k], d_k))


def hermite_features(student: Activation, s: Array, c: Array, k_max: int) -> Array:
    """d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!) for k = 0 ... k_max, and E sigma^2:
    (k_max + 2, *shape of s)."""
    s, c = np.broadcast_arrays(s, c)
    hermite_d, spread_neurons = np.zeros((k_max + 2, *s.shape)), c > 0
    hermite_d[0] = student(s)
    hermite_d[-1] = hermite_d[0] ** 2
    if spread_neurons.any():
        shift_and_variance = s[spread_neurons], c[spread_neurons]
        mean_moment, first_moment, rest_moment = student.moments(*shift_and_variance)
        hermite_d[:2, spread_neurons] = mean_moment, first_moment
        hermite_d[-1, spread_neurons] = mean_moment**2 + first_moment**2 + rest_moment
        if k_max > 1:
            hermite_d[2:-1, spread_neurons] = student.hermite_coefficients(
                k_max, *shift_and_variance
            )
    return hermite_d


class Degree(NamedTuple):
    """Term (f f^T) o rho^k of the second moments, f = along @ modes of low rank r, 0 of a term
    that is left out.

    Attributes
    ----------
    along : (N, r)
        Factors at the nodes.
    modes : (r, p)
        Factors of the neurons.
    """

    along: Array
    modes: Any


@dataclass(frozen=True)
class HermiteStrata(Strata):
    """Strata of a layer: the diagonal of second moments, and terms beside it.  Eq. (20.9)

    Attributes
    ----------
    shares : (N,)
    second : (N, p)
        q, the second moment of every feature at every node.
    degrees : sequence of Degree
        Terms of the powers k = 0, 1, ... of rho; the first is the mean.
    correlation : (p, p)
        rho of the pre-activations, 0 on the diagonal.
    accuracy : float
        Relative accuracy of the moments.
    """

    shares: Array
    second: Any
    degrees: Sequence[Degree]
    correlation: Any
    accuracy: float = EXACT

    @property
    def width(self) -> int:
        return int(self.second.shape[1])

    # Eq. (20.14), here and below
    def mix(self, weights: Array) -> Any:
        rho = self.correlation
        mixed_moments = namespace(rho).zeros_like(rho)
        for at_nodes, modes in reversed(self.degrees):  # Horner's scheme in rho
            mixed_moments *= rho
            mixed_moments += modes.T @ (like((at_nodes.T * weights) @ at_nodes, rho) @ modes)
        diagonal_view(mixed_moments)[:] = like(weights, rho) @ self.second
        return mixed_moments

    def trace(self, matrix: Any) -> Array:
        diagonal, matrix_rho_k = namespace(matrix).linalg.diagonal(matrix), matrix + 0.0
        traces = to_host(self.second @ diagonal)
        for k, (node_factors, modes) in enumerate(self.degrees):
            if k:
                matrix_rho_k *= self.correlation
            modes_matrix = modes @ matrix_rho_k - (0.0 if k else modes * diagonal)  # which is in q
            mode_form = to_host(modes_matrix @ modes.T)
            traces = traces + ((node_factors @ mode_form) * node_factors).sum(axis=1)
        return traces / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """Mean and variance of phi x; at a node the label does not vary with the features, so that
        its covariance is 0."""
        mean_factors, mean_modes = self.degrees[0]
        node_mean = to_host(x @ mean_modes.T) @ mean_factors.T
        readouts = (x[i, :] for i in range(x.shape[0]))
        second_moment = self.width * np.array([self.trace(one[:, None] * one) for one in readouts])
        return node_mean, np.zeros_like(node_mean), second_moment - node_mean**2

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        mean_factors, mean_modes = self.degrees[0]
        return like(of_means @ mean_factors, mean_modes) @ mean_modes


def layer_strata(
    component: Conditioned, student: Activation, rule: Rule, k_max: int, tol: float
) -> HermiteStrata:
    """The strata of one component at the nodes of a ``rule`` for z, with Hermite degrees to
    ``k_max``.  Of each degree modes are left out that make at most ``tol`` of the second moments
    together, in units of a feature's variance given z.

    Raises ``GivenUp`` past the deadline, and where ``mix`` does not have the diagonal of q.
    """
    (nodes, shares), rho = rule, component.correlation
    xp, omega = namespace(rho), like(shares, rho)
    node_shifts = like(component.shift + nodes @ component.loadings.T, rho)
    node_moments = NodeMoments(student, node_shifts, component.variances, k_max)
    second = node_moments.at(k_max + 1)
    left_variance = omega @ second  # of q, on average over nodes, after the degrees that are done
    total, least = float(xp.sum(left_variance)), 0.0
    last_degree = k_max + 2 - k_max % 2  # K'
    remainder, d_sign, degrees = second, second, []
    rho_squared, rho_power, nothing = rho * rho, xp.ones_like(rho), Degree(nodes[:, :0], rho[:0, :])
    for degree in range(last_degree + 1):
        check_time()
        # Eq. (20.11): no more than this is in all degrees from here on together
        if degree and float(left_variance @ (rho_power @ left_variance)) ** 0.5 <= least:
            break
        d_k = node_moments.at(degree) if degree <= k_max else 0.0 * second
        if degree == last_degree:  # less is rounding of the table
            d_k = d_sign * xp.sqrt(xp.where(remainder > 1e-7 * second, remainder, 0.0 * remainder))
        if degree == last_degree - 2:  # D of neurons with opposite pre-activations has these signs
            d_sign = xp.sign(d_k)
        remainder = remainder - d_k * d_k
        degree_energy = omega @ (d_k * d_k)
        left_variance = left_variance - degree_energy
        left_variance = xp.where(left_variance > 0, left_variance, 0.0 * left_variance)
        if not degree:
            least = tol * max(float(xp.sum(left_variance)), 1e-4 * total) / len(component.shift)
        counts = not degree or float(degree_energy @ (rho_power @ degree_energy)) ** 0.5 > least
        degrees.append(Degree(*_principal(d_k, shares, rho_power, least)) if counts else nothing)
        rho_power = rho_power * rho_squared
    moment_accuracy = 1e-10 if node_moments.tabulated.any() else EXACT  # of interpolated moments
    node_strata = HermiteStrata(
        component.component_share * shares, second, degrees, rho, moment_accuracy
    )
    diagonal_error = xp.max(xp.abs(xp.linalg.diagonal(node_strata.mix(shares)) - omega @ second))
    if not float(diagonal_error) <= 1e-12 * least / tol:
        raise GivenUp(Status.NOT_FINITE)
    return node_strata


def _principal(d: Any, shares: Array, raised: Any, least: float) -> tuple[Array, Any]:
    """The principal modes of a moment d (N, p), (N, r) and (r, p): all but those whose part in
    C o rho^k, C = E d d^T over the nodes, is at most ``least`` together, by ``raised``, rho^{2k}.

    C is compressed to a basis P of random combinations of nodes, more of them until C - P P^T C P
    P^T is small.  Eqs. (20.12), (20.13)
    """
    xp, (N, p), sketch_rng = namespace(d), d.shape, np.random.default_rng(0)
    node_weights, sketch_columns = like(shares, d), 24
    moment_energy = node_weights @ (d * d)
    while True:
        sketch = np.sqrt(shares)[:, None] * sketch_rng.standard_normal((N, min(sketch_columns, N)))
        sketch_basis = xp.linalg.qr(d.T @ like(sketch, d))[0]
        node_factors = d @ sketch_basis
        basis_gram = node_factors.T @ (node_weights[:, None] * node_factors)
        missed = moment_energy - xp.sum((sketch_basis @ basis_gram) * sketch_basis, axis=1)
        missed = xp.where(missed > 0, missed, 0.0 * missed)
        # the sketch may miss a third of what may be left out
        if sketch_columns >= min(N, p) or float(missed @ (raised @ missed)) ** 0.5 <= 0.3 * least:
            break
        sketch_columns *= 2
    node_factors, basis_gram = to_host(node_factors), to_host(basis_gram)
    mode_sizes, mode_rotation = np.linalg.eigh(basis_gram)
    modes = like(mode_rotation.T, d) @ sketch_basis.T
    squared_modes = modes * modes
    mode_moments = to_host(xp.sum(squared_modes * (squared_modes @ raised), axis=1))
    mode_sizes = mode_sizes * np.sqrt(np.maximum(mode_moments, 0.0))
    by_size = np.argsort(mode_sizes)
    kept_modes = by_size[np.cumsum(mode_sizes[by_size]) > least]
    return node_factors @ mode_rotation[:, kept_modes], xp.take(modes, like(kept_modes, d), axis=0)

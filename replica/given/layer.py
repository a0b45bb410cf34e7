"""Strata of a given first layer, from its weights and biases.  Eqs. (20.9)-(20.14)

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

# Panels of t = s / sqrt(c), of this width, and points of each; the largest t of a table.
PANEL, POINTS, FURTHEST = 2.0, 13, 1000.0
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
        root = np.sqrt(np.where(c > 0, c, np.inf))
        t = s / like(root, s)
        lowest, highest = (to_host(of(t, axis=0)) for of in (xp.min, xp.max))
        self.tabulated = (c > 0) & (np.maximum(-lowest, highest) <= FURTHEST)
        if self.tabulated.any():
            inside = np.where(self.tabulated, c, c[self.tabulated][0])
            start = lowest[self.tabulated].min()
            starts = np.arange(start, highest[self.tabulated].max() + 1e-9, PANEL)
            if not self._fill(student, starts, np.log(inside), k_max, N * p):
                self.tabulated[:] = False
        rest = np.flatnonzero(~self.tabulated)
        rest = rest[np.argsort(c[rest])]  # neurons that are alike in one integral
        self.others = np.zeros((k_max + 2, N, p if rest.size else 0))
        for some in np.array_split(rest, -(-rest.size * N // MOMENT_BLOCK)) if rest.size else []:
            check_time()
            moments = hermite_moments(student, to_host(s)[:, some].T, c[some, None], k_max)
            self.others[:, :, some] = moments.swapaxes(1, 2)
        if rest.size < p:
            t = xp.where(like(self.tabulated, s), (t - start) / PANEL, 0.0 * t)
            panel = xp.floor(t)
            self.x, self.row = t - panel, xp.astype(panel, xp.int64) * p + like(np.arange(p), s)

    def _fill(self, student: Activation, starts: Array, logs: Array, k_max: int, uses: int) -> bool:
        """Tabulate moments as Chebyshev series in log c, at ``logs`` (p,), on panels of s / sqrt(c)
        that begin at ``starts``.  False, without a table, if the series need so many terms that
        this takes more integrals than there are ``uses`` of it."""
        middle, half = (logs.max() + logs.min()) / 2, (logs.max() - logs.min()) / 2
        count = 2 + int(np.ceil(np.log(1e9) / np.arcsinh(np.pi / 2 / max(half, 1e-9))))
        x = chebpts1(POINTS)
        t = starts[:, None] + PANEL * (x + 1) / 2
        # powers of 0 ... 1 on a panel, the highest first
        powers = np.linalg.inv(np.vander((x + 1) / 2))
        while 2 * count * t.size <= uses:
            check_time()
            root = np.exp((middle + half * chebpts1(count)) / 2)[:, None, None]
            values = hermite_moments(student, t * root, root**2, k_max)
            series = np.einsum("ab,kbpx->kapx", coefficient_matrix(count), values)
            sizes = np.abs(series).max(axis=(2, 3))
            largest = sizes.max(axis=1)
            # below a part of the largest but the mean it is rounding
            largest = np.maximum(largest, 1e-4 * largest[1:].max())
            if (sizes[:, -2:].max(axis=1) <= 1e-6 * largest).all():
                # (k_max + 2, POINTS, panels, count)
                self.series = np.einsum("kapx,yx->kypa", series, powers, optimize=True)
                self.terms = chebvander((logs - middle) / max(half, 1e-300), count - 1).T
                return True
            count *= 2  # of functions that oscillate, log c takes more terms
        return False

    def at(self, k: int) -> Any:
        """d_k, or E sigma^2 for k = k_max + 1, of every neuron at every node: (N, p)."""
        if not self.tabulated.any():
            return like(self.others[k], self.s)
        xp, (N, p), blocks = namespace(self.x), self.x.shape, []
        # (POINTS, panels * p)
        polynomials = like((self.series[k] @ self.terms).reshape(POINTS, -1), self.x)
        for i in range(0, N, max(1, MOMENT_BLOCK // p)):
            check_time()
            part = slice(i, i + max(1, MOMENT_BLOCK // p))
            row, x = (xp.reshape(each[part, :], (-1,)) for each in (self.row, self.x))
            value = xp.take(polynomials[0, :], row, axis=0)
            for m in range(1, POINTS):  # Horner's scheme
                value *= x
                value += xp.take(polynomials[m, :], row, axis=0)
            blocks.append(xp.reshape(value, (-1, p)))
        found = xp.concat(blocks)
        if self.tabulated.all():
            return found
        return xp.where(like(self.tabulated, found), found, like(self.others[k], found))


def hermite_moments(student: Activation, s: Array, c: Array, k_max: int) -> Array:
    """d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!) for k = 0 ... k_max, and E sigma^2:
    (k_max + 2, *shape of s)."""
    s, c = np.broadcast_arrays(s, c)
    found, random = np.zeros((k_max + 2, *s.shape)), c > 0
    found[0] = student(s)
    found[-1] = found[0] ** 2
    if random.any():
        at = s[random], c[random]
        mean, first, variance = student.moments(*at)
        found[:2, random] = mean, first
        found[-1, random] = mean**2 + first**2 + variance
        if k_max > 1:
            found[2:-1, random] = student.hermite_coefficients(k_max, *at)
    return found


COLUMNS = 24  # that a sketch has at first
MISSED = 0.3  # part of what may be left out that a sketch may miss
TABULATED = 1e-10  # relative accuracy of moments that are interpolated


class Degree(NamedTuple):
    """Term (f f^T) o rho^k of the second moments, f = along @ modes of low rank r, 0 of a term
    that is left out.

    Attributes
    ----------
    along : (N, r)
        At the nodes.
    modes : (r, p)
        Of the neurons.
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
        Of the powers k = 0, 1, ... of rho; the first is the mean.
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
        total = namespace(rho).zeros_like(rho)
        for along, modes in reversed(self.degrees):  # Horner's scheme in rho
            total *= rho
            total += modes.T @ (like((along.T * weights) @ along, rho) @ modes)
        diagonal_view(total)[:] = like(weights, rho) @ self.second
        return total

    def trace(self, matrix: Any) -> Array:
        diagonal, raised = namespace(matrix).linalg.diagonal(matrix), matrix + 0.0
        total = to_host(self.second @ diagonal)
        for k, (along, modes) in enumerate(self.degrees):
            if k:
                raised *= self.correlation
            product = modes @ raised - (0.0 if k else modes * diagonal)  # which is in q
            form = to_host(product @ modes.T)
            total = total + ((along @ form) * along).sum(axis=1)
        return total / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """Mean and variance of phi x; at a node the label does not vary with the features, so that
        its covariance is 0."""
        along, modes = self.degrees[0]
        mean = to_host(x @ modes.T) @ along.T
        each = (x[i, :] for i in range(x.shape[0]))
        second = self.width * np.array([self.trace(one[:, None] * one) for one in each])
        return mean, np.zeros_like(mean), second - mean**2

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        along, modes = self.degrees[0]
        return like(of_means @ along, modes) @ modes


def layer_strata(
    given: Conditioned, student: Activation, rule: Rule, k_max: int, tol: float
) -> HermiteStrata:
    """The strata of one component at the nodes of a ``rule`` for z, with Hermite degrees to
    ``k_max``.  Of each degree modes are left out that make at most ``tol`` of the second moments
    together, in units of a feature's variance given z.

    Raises ``GivenUp`` past the deadline, and where ``mix`` does not have the diagonal of q.
    """
    (nodes, shares), rho = rule, given.correlation
    xp, weights = namespace(rho), like(shares, rho)
    s = like(given.shift + nodes @ given.loadings.T, rho)
    moments = NodeMoments(student, s, given.variances, k_max)
    second = moments.at(k_max + 1)
    left = weights @ second  # of q, on average over nodes, after the degrees that are done
    whole, least = float(xp.sum(left)), 0.0
    closing = k_max + 2 - k_max % 2  # K'
    remainder, sign, degrees = second, second, []
    square, raised, nothing = rho * rho, xp.ones_like(rho), Degree(nodes[:, :0], rho[:0, :])
    for degree in range(closing + 1):
        check_time()
        # Eq. (20.11): no more than this is in all degrees from here on together
        if degree and float(left @ (raised @ left)) ** 0.5 <= least:
            break
        d = moments.at(degree) if degree <= k_max else 0.0 * second
        if degree == closing:  # less is rounding of the table
            d = sign * xp.sqrt(xp.where(remainder > 1e-7 * second, remainder, 0.0 * remainder))
        if degree == closing - 2:  # D of neurons with opposite pre-activations has these signs
            sign = xp.sign(d)
        remainder = remainder - d * d
        energy = weights @ (d * d)
        left = left - energy
        left = xp.where(left > 0, left, 0.0 * left)
        if not degree:
            least = tol * max(float(xp.sum(left)), 1e-4 * whole) / len(given.shift)
        kept = not degree or float(energy @ (raised @ energy)) ** 0.5 > least
        degrees.append(Degree(*_principal(d, shares, raised, least)) if kept else nothing)
        raised = raised * square
    accuracy = TABULATED if moments.tabulated.any() else EXACT
    strata = HermiteStrata(given.share * shares, second, degrees, rho, accuracy)
    wrong = xp.max(xp.abs(xp.linalg.diagonal(strata.mix(shares)) - weights @ second))
    if not float(wrong) <= 1e-12 * least / tol:
        raise GivenUp(Status.NOT_FINITE)
    return strata


def _principal(d: Any, shares: Array, raised: Any, least: float) -> tuple[Array, Any]:
    """The principal modes of a moment d (N, p), (N, r) and (r, p): all but those whose part in
    C o rho^k, C = E d d^T over the nodes, is at most ``least`` together, by ``raised``, rho^{2k}.

    C is compressed to a basis P of random combinations of nodes, more of them until C - P P^T C P
    P^T is small.  Eqs. (20.12), (20.13)
    """
    xp, (N, p), draw = namespace(d), d.shape, np.random.default_rng(0)
    weights, columns = like(shares, d), COLUMNS
    energy = weights @ (d * d)
    while True:
        sketch = np.sqrt(shares)[:, None] * draw.standard_normal((N, min(columns, N)))
        basis = xp.linalg.qr(d.T @ like(sketch, d))[0]
        along = d @ basis
        gram = along.T @ (weights[:, None] * along)
        missed = energy - xp.sum((basis @ gram) * basis, axis=1)
        missed = xp.where(missed > 0, missed, 0.0 * missed)
        if columns >= min(N, p) or float(missed @ (raised @ missed)) ** 0.5 <= MISSED * least:
            break
        columns *= 2
    along, gram = to_host(along), to_host(gram)
    sizes, turn = np.linalg.eigh(gram)
    modes = like(turn.T, d) @ basis.T
    square = modes * modes
    beside = to_host(xp.sum(square * (square @ raised), axis=1))
    sizes = sizes * np.sqrt(np.maximum(beside, 0.0))
    order = np.argsort(sizes)
    kept = order[np.cumsum(sizes[order]) > least]
    return along @ turn[:, kept], xp.take(modes, like(kept, d), axis=0)

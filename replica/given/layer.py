"""Strata of a given first layer, from its weights and biases.  Eqs. (20.9)-(20.14)

A stratum is a component of the inputs and a node z of a quadrature rule, given which
pre-activations are s(z) + g, Gaussian of the covariance B (``nodes``).  With c_i = B_ii, rho the
correlations between different neurons and d_k of (20.1), second moments of features are there

    M = S + mu mu^T = diag(q) + sum_{k <= K} (d_k d_k^T) o rho^k + (D D^T) o rho^K',        (20.9)

with products of entries o and mu = d_0.  q_i = E sigma_i^2 is exact.  D_i^2 = q_i - sum_k d_{k,i}^2
closes the series: K' is the least even number above K.  docs/theory.md 20
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import diagonal_view, like, namespace, to_host
from solvers.resources import GivenUp, check_time
from solvers.results import Array, Status
from solvers.rules import Rule

from ..problem import Activation
from .moments import NodeMoments
from .nodes import Conditioned
from .strata import Strata

COLUMNS = 16  # that a sketch has more in every round
MISSED = 0.3  # part of what may be left out that a sketch may miss


class Degree(NamedTuple):
    """One term (f f^T) o rho^k of the second moments, f = along @ modes of low rank r.

    Attributes
    ----------
    power : int
        k.
    along : (N, r)
        At the nodes.
    modes : (r, p)
        Of the neurons.
    """

    power: int
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
        Powers of rho in rising order; the first is the mean, of power 0.
    correlation : (p, p)
        rho of the pre-activations, 0 on the diagonal.
    """

    shares: Array
    second: Any
    degrees: Sequence[Degree]
    correlation: Any

    @property
    def width(self) -> int:
        return int(self.second.shape[1])

    # Eq. (20.14), here and below
    def mix(self, weights: Array) -> Any:
        rho = self.correlation
        xp = namespace(rho)
        total, power = xp.zeros_like(rho), self.degrees[-1].power
        for degree in reversed(self.degrees):  # Horner's scheme in rho
            for _ in range(power - degree.power):
                total *= rho
            gram = like((degree.along.T * weights) @ degree.along, rho)
            total += degree.modes.T @ (gram @ degree.modes)
            power = degree.power
        diagonal_view(total)[:] = like(weights, rho) @ self.second
        return total

    def trace(self, matrix: Any) -> Array:
        diagonal, power = namespace(matrix).linalg.diagonal(matrix), 0
        total = to_host(self.second @ diagonal)
        for degree in self.degrees:
            for _ in range(degree.power - power):
                matrix = matrix * self.correlation
            product = degree.modes @ matrix
            if not degree.power:  # its diagonal is in q
                product = product - degree.modes * diagonal
            total = total + _forms(degree.along, to_host(product @ degree.modes.T))
            power = degree.power
        return total / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """At a node labels do not vary with the features: e = 0."""
        mean, *others = self.degrees
        scaled, power, rho = mean.modes * x, 0, self.correlation
        variance = to_host(self.second @ x**2) - _forms(mean.along, to_host(scaled @ scaled.T))
        raised = namespace(rho).ones_like(rho)
        for degree in others:
            for _ in range(degree.power - power):
                raised = raised * rho
            scaled, power = degree.modes * x, degree.power
            variance = variance + _forms(degree.along, to_host(scaled @ raised @ scaled.T))
        output = np.asarray(mean.along @ to_host(mean.modes @ x))
        return output, np.zeros_like(self.shares), variance

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        _, along, modes = self.degrees[0]
        return like(of_means @ along, modes) @ modes

    def noisy(self, variances: Array) -> "HermiteStrata":
        """The strata of features with independent noise of these ``variances`` (p,)."""
        return replace(self, second=self.second + like(variances, self.second))


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
    square, raised, power = rho * rho, xp.ones_like(rho), 0  # rho^{2 power}
    for degree in [*range(k_max + 1), closing]:
        check_time()
        for _ in range(degree - power):
            raised *= square
        power = degree
        # Eq. (20.11): no more than this is in all degrees from here on together
        if degree and float(left @ (raised @ left)) ** 0.5 <= least:
            break
        if degree <= k_max:
            d = moments.at(degree)
        else:  # less is rounding of the table
            d = sign * xp.sqrt(xp.where(remainder > 1e-7 * second, remainder, 0.0 * remainder))
        if degree == closing - 2:  # D of neurons with opposite pre-activations has these signs
            sign = xp.sign(d)
        remainder = remainder - d * d
        energy = weights @ (d * d)
        left = left - energy
        left = xp.where(left > 0, left, 0.0 * left)
        if not degree:
            least = tol * max(float(xp.sum(left)), 1e-4 * whole) / len(given.shift)
        if not degree or float(energy @ (raised @ energy)) ** 0.5 > least:
            degrees.append(Degree(degree, *_principal(d, shares, raised, least)))
    strata = HermiteStrata(given.share * shares, second, degrees, rho)
    wrong = xp.max(xp.abs(xp.linalg.diagonal(strata.mix(shares)) - weights @ second))
    if not float(wrong) <= 1e-12 * least / tol:
        raise GivenUp(Status.NOT_FINITE)
    return strata


def _principal(d: Any, shares: Array, raised: Any, least: float) -> tuple[Array, Any]:
    """The principal modes of a moment d (N, p), (N, r) and (r, p): all but those whose part in
    C o rho^k, C = E d d^T over the nodes, is at most ``least`` together, by ``raised``, rho^{2k}.

    C is compressed to a basis P, larger until it misses little of C: with Z = (1 - P P^T) C P at
    most |Z P^T| twice and |(1 - P P^T) C (1 - P P^T)|.  Eqs. (20.12), (20.13)
    """
    xp, (N, p), draw = namespace(d), d.shape, np.random.default_rng(0)
    weights = like(shares, d)
    energy, image = weights @ (d * d), d[:0, :].T

    def norm(x: Any, y: Any) -> float:
        """Frobenius' norm of rho^k o matrices of entries sqrt(x_i y_j)."""
        return max(0.0, float(x @ (raised @ y))) ** 0.5

    while True:
        sketch = np.sqrt(shares)[:, None] * draw.standard_normal((N, min(COLUMNS, N)))
        basis = xp.linalg.qr(xp.concat([image, d.T @ like(sketch, d)], axis=1))[0]
        along = d @ basis
        weighed = weights[:, None] * along
        gram, image = along.T @ weighed, d.T @ weighed  # C P turns towards leading modes
        product = basis @ gram
        missed = energy - xp.sum((2 * image - product) * basis, axis=1)
        missed = xp.where(missed > 0, missed, 0.0 * missed)
        crossed = xp.sum((image - product) ** 2, axis=1)
        if (
            basis.shape[1] >= min(N, p)
            or norm(missed, missed) + 2 * norm(crossed, xp.sum(basis**2, axis=1)) <= MISSED * least
        ):
            break
    along, gram = to_host(along), to_host(gram)
    sizes, turn = np.linalg.eigh(gram)
    modes = like(turn.T, d) @ basis.T
    square = modes * modes
    beside = to_host(xp.sum(square * (square @ raised), axis=1))
    sizes = sizes * np.sqrt(np.maximum(beside, 0.0))
    order = np.argsort(sizes)
    kept = order[np.cumsum(sizes[order]) > least]
    return along @ turn[:, kept], xp.take(modes, like(kept, d), axis=0)


def _forms(rows: Array, matrix: Array) -> Array:
    """The quadratic form of ``matrix`` (r, r) at each of the ``rows`` (N, r): (N,)."""
    return np.asarray(((rows @ matrix) * rows).sum(axis=1))

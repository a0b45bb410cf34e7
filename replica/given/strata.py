"""Strata of the inputs: in each the features are nearly a Gaussian vector.  docs/theory.md 20

Stratum nu holds the share omega of the inputs.  Features there are phi = mu + Z with Cov Z = S, a
matrix (p, p), and labels have the mean h, a variance, and the covariance e = Cov(phi, y).  The
equations need no S by itself, but four operations: a mixture of the second moments S + mu mu^T,
their traces with a matrix, what features have along a vector, and a mixture of mu and e.

Vectors over the N strata are numpy's.  Those over the p neurons, and matrices, may be arrays of
any library that follows the array standard, on a device.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import add_to_diagonal, like, namespace, to_device, to_host
from solvers.results import Array

from ..convex import ConditionalLabels
from ..problem import LabelNoise
from ..saddle_point import Field


class Posterior(NamedTuple):
    """The law of the readout over its training data.

    Attributes
    ----------
    response, covariance : (p, p)
        G and T.
    mean : (p,)
        a-bar over sqrt(p).
    """

    response: Any
    covariance: Any
    mean: Any


class Strata(ABC):
    """What the equations ask of N strata of p features.

    Attributes
    ----------
    shares : (N,)
        omega, of sum 1.
    """

    shares: Array

    @property
    @abstractmethod
    def width(self) -> int:
        """p."""

    @abstractmethod
    def mix(self, weights: Array) -> Any:
        """sum_nu w (S + mu mu^T), (p, p)."""

    @abstractmethod
    def trace(self, matrix: Any) -> Array:
        """tr (S + mu mu^T) X / p of a symmetric X, (N,)."""

    @abstractmethod
    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """Mean, covariance with the label and variance of phi x: mu x, e x and x S x, (N,)."""

    @abstractmethod
    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        """sum_nu (w mu + v e), (p,), for two weights (N,)."""

    def field(self, posterior: Posterior) -> Field:
        """The law of omega, of N strata of one point; its ``pull`` is the covariance with the
        label."""
        G, T, a = posterior
        # Eq. (20.7)
        mean, label, variance = self.along(a)
        power = self.positive(variance + self.trace(T))
        rows = mean, label[:, None], power, self.positive(self.trace(G))
        return Field(*(row[None] for row in rows))

    def positive(self, x: Array) -> Array:
        """What is positive (N,) where moments of low rank leave it so: in strata in which all
        features vanish they are off by rounding."""
        return np.maximum(x, 1e-10 * (self.shares @ np.abs(x)) + 1e-300)


class StratumLabels(NamedTuple):
    """Moments of the labels in N strata.

    Attributes
    ----------
    weights : (N,)
        The strata's shares omega, of sum 1.
    h, spread : (N,)
        Mean and variance of E[y | x].
    noise : float
        Variance Delta of what is added to that.
    """

    weights: Array
    h: Array
    spread: Array
    noise: float

    @property
    def g(self) -> Array:
        """Ones (1, N): a field's ``pull`` is its covariance with the label here."""
        return np.ones((1, self.h.size))


def labels_of(
    mean: Array,
    gaussians: Sequence[tuple[float, float]],
    *,
    binary: bool,
    noise: LabelNoise | None = None,
) -> ConditionalLabels:
    """The law of labels with the ``mean`` (N,) in every stratum and ``gaussians``, variances and
    shares, about it: that of ``convex`` with no direction tau left."""
    nodes = np.zeros((mean.size, 1, 1)), np.ones((mean.size, 1)), mean[:, None]
    variances, shares = np.array(gaussians).T
    return ConditionalLabels(*nodes, variances, shares, binary, order=10, noise=noise)


class Stratified(NamedTuple):
    """Strata and the labels in them: their moments, and their law for losses other than the
    square.  ConditionalLabels of a ``channel`` are +-1 at random.  Moments of a sample are those of
    so many ``rows``; others are exact.  The last feature is a constant where there is an
    ``intercept``."""

    strata: Strata
    moments: StratumLabels
    labels: ConditionalLabels
    channel: bool = False
    rows: int | None = None
    intercept: bool = False


class Degree(NamedTuple):
    """A moment of every feature in every stratum, such as d_k: along @ modes, of low rank r.

    Attributes
    ----------
    along : (N, r)
        Of the strata.
    modes : (r, p)
        Of the neurons.
    """

    along: Array
    modes: Any


@dataclass(frozen=True)
class HermiteStrata(Strata):
    """Strata of a layer: features expanded in Hermite polynomials of Gaussian pre-activations,

        S + mu mu^T = sum_{k=0} (d_k d_k^T) o rho^k + diag(rest),                           (20.1)

    with products of entries o, d_0 = mu, and rho^0 = 1.  Degree k costs r p^2 an operation.

    Attributes
    ----------
    shares : (N,)
    degrees : sequence of Degree
        d_k for k = 0, 1, ...
    correlation : (p, p)
        rho of the pre-activations.
    rest : Degree
        What each feature has in degrees, or modes of these, that are left out: independent of the
        other features.
    """

    shares: Array
    degrees: Sequence[Degree]
    correlation: Any
    rest: Degree

    @property
    def width(self) -> int:
        return int(self.correlation.shape[0])

    def mix(self, weights: Array) -> Any:
        rho = self.correlation
        xp = namespace(rho)
        total = xp.zeros_like(rho)
        for along, modes in reversed(self.degrees):  # Horner's scheme in rho
            total *= rho
            gram = like((along.T * weights) @ along, rho)
            total += modes.T @ (gram @ modes)
        add_to_diagonal(total, like(weights @ self.rest.along, rho) @ self.rest.modes)
        return total

    def trace(self, matrix: Any) -> Array:
        total = self._of_rest(namespace(matrix).linalg.diagonal(matrix))
        for k, (along, modes) in enumerate(self.degrees):
            if k:
                matrix = matrix * self.correlation
            total = total + _forms(along, to_host(modes @ matrix @ modes.T))
        return total / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """At a node labels do not vary with the features: e = 0."""
        total, power = self._of_rest(x**2), self.correlation
        for k, (along, modes) in enumerate(self.degrees[1:]):
            scaled = modes * x
            if k:
                power = power * self.correlation
            total = total + _forms(along, to_host(scaled @ power @ scaled.T))
        along, modes = self.degrees[0]
        return np.asarray(along @ to_host(modes @ x)), np.zeros_like(self.shares), total

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        along, modes = self.degrees[0]
        return like(of_means @ along, modes) @ modes

    def _of_rest(self, diagonal: Any) -> Array:
        """The trace of the rest with a matrix of this ``diagonal``, (N,)."""
        return np.asarray(self.rest.along @ to_host(self.rest.modes @ diagonal))

    def noisy(self, variances: Array) -> "HermiteStrata":
        """The same with independent noise of these ``variances`` (p,) in the features."""
        along, modes = self.rest
        every = np.ones((len(along), 1))
        rest = Degree(np.hstack([along, every]), np.vstack([modes, variances]))
        return replace(self, rest=rest)

    def on(self, device: str) -> "HermiteStrata":
        """The same, with what is over neurons on a ``device``."""
        degrees = [Degree(along, to_device(modes, device)) for along, modes in self.degrees]
        rest = Degree(self.rest.along, to_device(self.rest.modes, device))
        return HermiteStrata(self.shares, degrees, to_device(self.correlation, device), rest)


class JoinedStrata(Strata):
    """Strata of several kinds side by side, one for each component of the inputs: ``parts``, with
    shares that sum to 1 over all."""

    def __init__(self, parts: Sequence[Strata]) -> None:
        self.parts = parts
        self.shares = np.concatenate([part.shares for part in parts])

    @property
    def width(self) -> int:
        return self.parts[0].width

    def mix(self, weights: Array) -> Any:
        return self._total("mix", weights)

    def trace(self, matrix: Any) -> Array:
        return np.concatenate([part.trace(matrix) for part in self.parts])

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        each = zip(*(part.along(x) for part in self.parts), strict=True)
        mean, label, variance = map(np.concatenate, each)
        return mean, label, variance

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return self._total("mix_vectors", of_means, of_labels)

    def _total(self, operation: str, *weights: Array) -> Any:
        """The sum of what the parts make of their own ``weights``."""
        ends = np.cumsum([part.shares.size for part in self.parts])[:-1]
        each = zip(self.parts, *(np.split(all_of, ends) for all_of in weights), strict=True)
        return sum(getattr(part, operation)(*own) for part, *own in each)


def _forms(rows: Array, matrix: Array) -> Array:
    """The quadratic form of ``matrix`` (r, r) at each of the ``rows`` (N, r): (N,)."""
    return np.asarray(((rows @ matrix) * rows).sum(axis=1))

"""Strata of the inputs: in each the features are nearly a Gaussian vector.  docs/theory.md 20

Stratum nu holds the share omega of the inputs.  Features there are phi = mu + Z with Cov Z = S, a
matrix (p, p), and labels have the mean h, a variance, and the covariance e = Cov(phi, y).  The
equations need no S by itself, but four operations: a mixture of the second moments S + mu mu^T,
their traces with a matrix, what features have along a vector, and a mixture of mu and e.

Vectors over the N strata are numpy's.  Those over the p neurons, and matrices, may be arrays of
any library that follows the array standard, on a device.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from solvers.results import Array

from ..convex import ConditionalLabels
from ..problem import LabelNoise
from ..saddle_point import Field

EXACT = float(np.finfo(float).eps)


class Posterior(NamedTuple):
    """The law of the readout over its training data.

    Attributes
    ----------
    response, covariance : (p, p)
        G and T.
    mean : (P, p)
        a-bar over sqrt(p), for each of P labels.
    """

    response: Any
    covariance: Any
    mean: Any


class Strata(Protocol):
    """Interface of N strata of p features to the equations.

    Attributes
    ----------
    shares : (N,)
        omega, of sum 1.
    accuracy : float
        Relative accuracy of the moments.
    """

    shares: Array
    accuracy: float = EXACT

    @property
    def width(self) -> int:
        """Number p of features."""

    def mix(self, weights: Array) -> Any:
        """Weighted sum of second moments over strata, sum_nu w (S + mu mu^T), (p, p)."""

    def trace(self, matrix: Any) -> Array:
        """Traces tr (S + mu mu^T) X / p of every stratum with a symmetric ``matrix`` X, (N,)."""

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        """Mean, covariance with the label and variance of phi x for x (P, p), one for each of P
        labels: mu x, e x and x S x, (P, N)."""

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        """Weighted sum over strata of feature means mu and covariances e with the label,
        sum_nu (w mu + v e), (P, p), for the two weights (P, N) or (N,)."""

    def field(self, posterior: Posterior) -> Field:
        """The law of omega in N strata, for P labels; its ``tau_slope`` is the covariance with
        the label."""
        G, T, a = posterior
        # Eq. (20.7)
        mean, label, variance = self.along(a)
        power = self.blurred(mean, variance + self.trace(T))
        return Field(mean, label[..., None], power, self.positive(self.trace(G))[None])

    def positive(self, x: Array) -> Array:
        """Values x (..., N), positive in theory, raised to a small positive number where rounding
        made them less: in strata whose features all vanish."""
        return np.maximum(x, 1e-10 * (np.abs(x) @ self.shares)[..., None] + 1e-300)

    def blurred(self, centre: Array, power: Array) -> Array:
        """Variances of omega, raised to a small part of the mean C^2 where they vanish up to
        rounding: too little to change averages of a smooth loss, enough for their quadrature."""
        return self.positive(np.maximum(power, 1e-10 * (centre**2 @ self.shares)[..., None]))


class StratumLabels(NamedTuple):
    """Moments of one label, or of P labels, in N strata.

    Attributes
    ----------
    weights : (N,)
        The strata's shares omega, of sum 1.
    h, spread : (N,) or (P, N)
        Mean and variance of E[y | x].
    noise : float
        Variance Delta of what is added to that.
    outputs : int
        C: the first of the labels, which the outputs are trained on.
    """

    weights: Array
    h: Array
    spread: Array
    noise: float
    outputs: int = 1
    g = np.ones((1, 1))  # a field's ``tau_slope`` is its covariance with the label here

    @property
    def power(self) -> float:
        """The second moment of the labels that outputs are trained on."""
        square = np.atleast_2d(self.h**2 + self.spread)[: self.outputs]
        return float((square @ self.weights).sum() + self.noise)


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
    ``intercept``.  Labels of ``classes`` are 1 of the class, else 0, and their sums in pairs."""

    strata: Strata
    moments: StratumLabels
    labels: ConditionalLabels
    channel: bool = False
    rows: int | None = None
    intercept: bool = False
    classes: bool = False


class JoinedStrata(Strata):
    """Strata of several kinds side by side, one for each component of the inputs: ``parts``, with
    shares that sum to 1 over all."""

    def __init__(self, parts: Sequence[Strata]) -> None:
        self.parts = parts
        self.shares = np.concatenate([part.shares for part in parts])
        self.accuracy = max(part.accuracy for part in parts)

    @property
    def width(self) -> int:
        return self.parts[0].width

    def mix(self, weights: Array) -> Any:
        return self._total("mix", weights)

    def trace(self, matrix: Any) -> Array:
        return np.concatenate([part.trace(matrix) for part in self.parts])

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        each = zip(*(part.along(x) for part in self.parts), strict=True)
        mean, label, variance = (np.concatenate(parts, axis=-1) for parts in each)
        return mean, label, variance

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return self._total("mix_vectors", of_means, of_labels)

    def _total(self, operation: str, *weights: Array) -> Any:
        """Sum over the parts of an ``operation`` (mix or mix_vectors), each with its own slice of
        the ``weights``."""
        ends = np.cumsum([part.shares.size for part in self.parts])[:-1]
        split = (np.split(all_of, ends, axis=-1) for all_of in weights)
        each = zip(self.parts, *split, strict=True)
        return sum(getattr(part, operation)(*own) for part, *own in each)

"""Interface of strata and of labels in them; strata side by side.  docs/theory.md 20, 22

Stratum nu holds the share omega of the inputs.  Features there are nearly a Gaussian vector,
phi = mu + Z with Cov Z = S, a matrix (p, p), and labels have the mean h, a variance, and the
covariance e = Cov(phi, y).  The equations need no S by itself, but four operations: a mixture of
the second moments S + mu mu^T, their traces with a matrix, what features have along a vector, and a
mixture of mu and e.

Vectors over the N strata are numpy's.  Those over the p neurons, and matrices, may be arrays of
any library that follows the array standard, on a device.

Several outputs of one readout, one for each class, or a vector, have one response V, and equations
for the label of one serve for all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from solvers.results import Array

from ..convex import ConditionalLabels
from ..errors import InvalidArgument
from ..problem import LabelNoise, plain_array
from ..saddle_point import Field

EXACT = float(np.finfo(float).eps)


class Posterior(NamedTuple):
    """The law of the readout over its training data.

    Attributes
    ----------
    response, covariance : (p, p)
        G and T; here and below of the coordinates, where these are fewer than p.
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

    @property
    def coordinates(self) -> int:
        """Number of coordinates that features are given by: p, unless they span fewer directions,
        of which all matrices and vectors below are then."""
        return self.width

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
        centre, label, mean_variance = self.along(a)
        output_variance = self.blurred(centre, mean_variance + self.trace(T))
        return Field(centre, label[..., None], output_variance, self.positive(self.trace(G))[None])

    def positive(self, x: Array) -> Array:
        """Values x (..., N), positive in theory, raised to a small positive number where rounding
        made them less: in strata whose features all vanish."""
        return np.maximum(x, 1e-10 * (np.abs(x) @ self.shares)[..., None] + 1e-300)

    def blurred(self, centre: Array, variance: Array) -> Array:
        """Variances of omega, raised to a small part of the mean C^2 where they vanish up to
        rounding: too little to change averages of a smooth loss, enough for their quadrature."""
        return self.positive(np.maximum(variance, 1e-10 * (centre**2 @ self.shares)[..., None]))


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
    g : (1, 1)
        1: a field's ``tau_slope`` is its covariance with the label here.
    """

    weights: Array
    h: Array
    spread: Array
    noise: float
    outputs: int = 1
    g: Array = np.ones((1, 1))

    @property
    def power(self) -> float:
        """The second moment of the labels that outputs are trained on."""
        second_moments = np.atleast_2d(self.h**2 + self.spread)[: self.outputs]
        return float((second_moments @ self.weights).sum() + self.noise)


def labels_of(
    mean: Array,
    gaussians: Sequence[tuple[float, float]],
    *,
    binary: bool,
    noise: LabelNoise | None = None,
) -> ConditionalLabels:
    """The law of labels with the ``mean`` (N,) in every stratum and ``gaussians``, variances and
    shares, about it: that of ``convex`` with no direction tau left."""
    label_nodes = np.zeros((mean.size, 1, 1)), np.ones((mean.size, 1)), mean[:, None]
    label_variances, shares = np.array(gaussians).T
    return ConditionalLabels(*label_nodes, label_variances, shares, binary, order=10, noise=noise)


def stacked(given: dict[str, Any], axes: dict[str, int]) -> dict[str, Array]:
    """Arrays (N, p, ..., p) of N cases, each with its number of ``axes`` of length p.

    The first array has p as the length of its last axis.  Arrays without the axis of the cases are
    repeated; arrays given as None are 0.
    """
    first_name = next(iter(axes))
    case_arrays = {
        name: plain_array(name, x)
        for name, x in given.items()
        if x is not None or name == first_name
    }
    named_arrays = (
        (case_arrays[name], axis_count) for name, axis_count in axes.items() if name in case_arrays
    )
    case_count = next((len(x) for x, axis_count in named_arrays if x.ndim > axis_count), 1)
    array_length = case_arrays[first_name].shape[-1] if case_arrays[first_name].ndim else 1
    for name, axis_count in axes.items():
        case_shape = (array_length,) * axis_count
        case_array = case_arrays.get(name, np.zeros(case_shape))
        if case_array.shape not in (case_shape, (case_count, *case_shape)) or not case_array.size:
            allowed = f"of shape {(case_count, *case_shape)}" + (
                f", or {case_shape} for all" if case_shape else ", or a number"
            )
            raise InvalidArgument(name, f"shape {case_array.shape}", allowed)
        case_arrays[name] = np.broadcast_to(case_array, (case_count, *case_shape))
    return case_arrays


class Stratified(NamedTuple):
    """Strata and the labels in them: their moments, and their law for losses other than the
    square.  ConditionalLabels of a ``channel`` are +-1 at random.  Moments of a sample are those of
    so many ``rows``; others are exact.  The last feature is a constant where there is an
    ``intercept``.  Labels of ``classes`` are 1 of the class, else 0, and their sums in pairs.  The
    ``label_error`` is how far low moments of the labels at the strata's nodes are off, relative."""

    strata: Strata
    moments: StratumLabels
    labels: ConditionalLabels
    channel: bool = False
    rows: int | None = None
    intercept: bool = False
    classes: bool = False
    label_error: float = 0.0


class JoinedStrata(Strata):
    """Strata of several kinds side by side, one for each component of the inputs: ``parts``, with
    shares that sum to 1 over all."""

    def __init__(self, strata_parts: Sequence[Strata]) -> None:
        self.parts = strata_parts
        self.shares = np.concatenate([strata_part.shares for strata_part in strata_parts])
        self.accuracy = max(strata_part.accuracy for strata_part in strata_parts)

    @property
    def width(self) -> int:
        return self.parts[0].width

    def mix(self, weights: Array) -> Any:
        return self._sum_over_parts("mix", weights)

    def trace(self, matrix: Any) -> Array:
        return np.concatenate([strata_part.trace(matrix) for strata_part in self.parts])

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        joined_fields = zip(*(strata_part.along(x) for strata_part in self.parts), strict=True)
        mean, label_cov, variance = (np.concatenate(fields, axis=-1) for fields in joined_fields)
        return mean, label_cov, variance

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return self._sum_over_parts("mix_vectors", of_means, of_labels)

    def _sum_over_parts(self, operation: str, *weights: Array) -> Any:
        """Sum over the parts of an ``operation`` (mix or mix_vectors), each with its own slice of
        the ``weights``."""
        part_ends = np.cumsum([part.shares.size for part in self.parts])[:-1]
        split_weights = (np.split(weight, part_ends, axis=-1) for weight in weights)
        by_part = zip(self.parts, *split_weights, strict=True)
        return sum(getattr(part, operation)(*part_weights) for part, *part_weights in by_part)

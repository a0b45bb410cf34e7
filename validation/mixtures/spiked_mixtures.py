"""Gaussian mixtures with spiked covariances, and labels of a direction or of the component that an
input is from.  docs/theory.md 12

Component j has probability rho_j and x ~ N(0, I + sum_i theta_ji gamma_ji gamma_ji^T): r
orthonormal spikes gamma_ji each, aligned between components, gamma_ji . gamma_j'i = alignment,
and orthogonal otherwise.  They lie in the first J r coordinates: all else is isotropic.  All
components have the same trace, n + sum_i theta_ji.  Scalings:

    theta = n^(beta_s (1 - alpha_s)),  rate eta = n^(beta_s alpha_s),

with beta_s the data spread and alpha_s how it is split between data and step.  As in the paper,
n is the input dimension here, m the number of samples and k the width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import ArrayLike

from replica.errors import InvalidArgument
from replica.given import FirstLayer
from replica.problem import (
    Activation,
    GaussianMixture,
    LabelLaw,
    activation,
    class_labels,
    plain_array,
)
from solvers.results import Array

from ..draws import whole_number


class Scaling(NamedTuple):
    """theta, the size of a spike's eigenvalue, and eta, the rate of the step."""

    theta: float
    eta: float


def scaling(dimension: int, *, data_spread: float, split: float) -> Scaling:
    """theta = n^(beta_s (1 - alpha_s)) and eta = n^(beta_s alpha_s).  docs/theory.md 12

    Examples
    --------
    >>> from validation.mixtures import scaling
    >>> scaling(10_000, data_spread=0.75, split=1 / 3)
    Scaling(theta=100.0, eta=10.0)
    """
    for spread_name, spread_value in (("data_spread", data_spread), ("split", split)):
        if not 0 <= spread_value <= 1:
            raise InvalidArgument(spread_name, spread_value, "between 0 and 1")
    n = float(whole_number("dimension", dimension, 1, "the input dimension n"))
    theta_and_eta = n ** (data_spread * (1 - split)), n ** (data_spread * split)
    return Scaling(*(float(f"{spike_scale:.15g}") for spike_scale in theta_and_eta))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of J centred Gaussians in n dimensions.

    Attributes
    ----------
    dimension : int
        n.
    directions : (J, r, J r)
        Spikes gamma_ji in the first coordinates, orthonormal within a component.
    eigenvalues : (J, r)
        theta_ji, 0 or more.
    proportions : (J,)
        rho_j, of sum 1.
    """

    dimension: int
    directions: Array
    eigenvalues: Array
    proportions: Array

    @cached_property
    def law(self) -> GaussianMixture:
        """The law of the first coordinates; the others are standard normal."""
        gamma, (J, _, K) = self.directions, self.directions.shape
        covariances = np.eye(K) + np.einsum("jrk,jr,jrl->jkl", gamma, self.eigenvalues, gamma)
        spiked_means, proportions = np.zeros((J, K)), self.proportions
        return GaussianMixture(means=spiked_means, covariances=covariances, fractions=proportions)

    @property
    def trace(self) -> float:
        """n + sum_j rho_j sum_i theta_ji, the mean trace; with equal traces, the trace of every
        component."""
        return float(self.dimension + self.proportions @ self.eigenvalues.sum(axis=1))

    @property
    def norm(self) -> float:
        """Largest eigenvalue of Sigma, the covariance of the whole mixture."""
        mixture_covariance = np.tensordot(self.proportions, self.law.covariances, axes=1)
        return float(np.linalg.eigvalsh(mixture_covariance)[-1])


def mixture(
    dimension: int,
    *,
    eigenvalues: ArrayLike,
    components: int = 2,
    spikes: int | Sequence[int] = 1,
    alignment: ArrayLike = 0.0,
    proportions: ArrayLike | None = None,
    drawn: bool = False,
    rng: Any = None,
) -> Mixture:
    """A mixture of spiked Gaussians at the given alignment, whose eigenvalues are rescaled so that
    all components have the trace of the first.  docs/theory.md 12

    Parameters
    ----------
    dimension : int
        n, at least the number of all spikes.
    eigenvalues : float or array that broadcasts to (J, r)
        theta_ji, 0 or more; with ``drawn``, the upper end of what they are drawn from.
    components : int
        J.
    spikes : int or J of them
        How many spikes a component has.  Missing ones have theta = 0.
    alignment : float or (J, J)
        gamma_ji . gamma_j'i for j != j', the same for all i; a matrix has 1 on its diagonal.
    proportions : (J,), optional
        rho_j, of any positive sum; equal unless given.
    drawn : bool
        Draw every theta uniformly between 0 and its ``eigenvalues``.
    rng : None, int, SeedSequence or Generator
        For ``drawn``.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or some components have spikes and others none; J equally
        aligned vectors need -1/(J - 1) <= alignment <= 1.

    Examples
    --------
    >>> from validation.mixtures import mixture
    >>> two = mixture(50, eigenvalues=9.0, alignment=-0.4)
    >>> round(float(two.directions[0, 0] @ two.directions[1, 0]), 12), two.trace
    (-0.4, 59.0)
    """
    J = whole_number("components", components, 1, "how many Gaussians")
    spike_counts = np.broadcast_to(np.atleast_1d(spikes), (J,))
    r = max(whole_number("spikes", int(count), 0, "of a component") for count in spike_counts) or 1
    n = whole_number("dimension", dimension, J * r, "as many as there are spikes")
    alignment_root = _alignment_root(alignment, J)
    # Axes e_{k,i}; gamma_{j,i} = sum_k L_{jk} e_{k,i} has Gram matrix L L^T.
    spike_axes = np.eye(J * r).reshape(J, r, J * r)
    typed_eigenvalues = plain_array("eigenvalues", eigenvalues)
    try:
        theta = np.broadcast_to(typed_eigenvalues, (J, r)).copy()
    except ValueError:
        raise InvalidArgument("eigenvalues", eigenvalues, f"one, or {J} x {r} of them") from None
    if not (theta >= 0).all():
        raise InvalidArgument("eigenvalues", eigenvalues, "0 or more")
    if drawn:
        theta *= default_rng(rng).random((J, r))
    theta *= np.arange(r) < spike_counts[:, None]
    rho = np.full(J, 1.0) if proportions is None else plain_array("proportions", proportions)
    if rho.shape != (J,) or not (rho >= 0).all() or not rho.any():
        raise InvalidArgument("proportions", proportions, f"{J} numbers of 0 or more, not all 0")
    eigenvalue_sums = theta.sum(axis=1)
    if eigenvalue_sums.any():
        if not eigenvalue_sums.all():
            allowed_theta = "above 0 in every component or in none: their traces are to be equal"
            raise InvalidArgument("eigenvalues", theta.tolist(), allowed_theta)
        theta *= (eigenvalue_sums[0] / eigenvalue_sums)[:, None]
    return Mixture(n, np.einsum("jk,kin->jin", alignment_root, spike_axes), theta, rho / rho.sum())


def _alignment_root(alignment: ArrayLike, J: int) -> Array:
    """L (J, J) with L L^T the matrix of ``alignment``, which may be one number for all pairs.

    Raises
    ------
    InvalidArgument
        If no unit vectors have these alignments.
    """
    gram = plain_array("alignment", alignment)
    if gram.ndim == 0:
        gram = np.where(np.eye(J, dtype=bool), 1.0, gram)
    gram_values, gram_vectors = (
        np.linalg.eigh(gram) if gram.shape == (J, J) else (np.array([-1.0]), np.eye(1))
    )
    # 1e-12 for the rounding of a matrix on the edge of what is possible
    good = gram_values.min() >= -1e-12 and (gram == gram.T).all() and (np.diagonal(gram) == 1).all()
    if not good:
        raise InvalidArgument(
            "alignment",
            alignment,
            f"possible between {J} unit vectors: at most 1, at least "
            f"{-1 / max(J - 1, 1):g} if all are equal, a positive matrix otherwise",
        )
    alignment_root = gram_vectors * np.sqrt(np.maximum(gram_values, 0))
    return np.asarray(alignment_root / np.linalg.norm(alignment_root, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class MixtureTask:
    """Inputs of a mixture, with labels.

    Attributes
    ----------
    inputs : GaussianMixture
        Law of the first coordinates; the others are standard normal.
    dimension : int
        n.
    trace : float
        tr Sigma.
    target : Activation or ClassLabels
        Function of directions of the inputs, or labels of their components.
    directions : (n, T)
        The target's, orthonormal.
    noise : float
        Variance of the label noise.
    """

    inputs: GaussianMixture
    dimension: int
    trace: float
    target: Any
    directions: Array
    noise: float = 0.0

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,)."""
        x_component = self.inputs.components(samples, rng)
        X = self.inputs.at(rng.standard_normal((samples, self.dimension)), x_component)
        target_arguments = (X @ self.directions).T if self.directions.size else x_component[None]
        return X, LabelLaw(self.target, self.noise, None).draw(target_arguments, rng)

    def given(self, weights: Array, student: Activation, feature_noise: float) -> FirstLayer:
        """The network with this first layer (k, n), as one that is given."""
        return FirstLayer(
            weights=weights,
            student=student,
            target=self.target,
            directions=self.directions,
            noise=self.noise,
            inputs=self.inputs,
            feature_noise=feature_noise,
        )


def regression(
    mixed: Mixture,
    *,
    target: str | Activation = "relu",
    aligned: bool = False,
    noise: float = 0.0,
    rng: Any = None,
) -> MixtureTask:
    """The regression task of the paper: y = sigma_*(xi . x), xi of squared length 1/norm(Sigma).

    Parameters
    ----------
    mixed : Mixture
    target : str or Activation
    aligned : bool
        xi along the sum of all spikes; a random direction otherwise.
    noise : float
        Variance of the label noise, 0 or more.
    rng : None, int, SeedSequence or Generator

    Raises
    ------
    InvalidArgument
        If the noise is negative, or the spikes cancel (two of alignment -1).
    """
    if not 0 <= noise < np.inf:
        raise InvalidArgument("noise", noise, "a variance of 0 or more")
    sigma = activation(target)
    xi = default_rng(rng).standard_normal(mixed.dimension)
    if aligned:
        spike_sum = mixed.directions.sum(axis=(0, 1))
        xi = np.pad(spike_sum, (0, mixed.dimension - len(spike_sum)))
    xi_length, size = np.linalg.norm(xi), mixed.norm**-0.5
    if xi_length < 1e-6:
        raise InvalidArgument("aligned", aligned, "False where the spikes cancel in their sum")
    kinks = tuple(kink_of_target / size for kink_of_target in sigma.kinks)
    scaled = Activation(lambda x: sigma(size * x), kinks=kinks, name=f"{sigma.name}({size:g}*z1)")
    xi_direction = (xi / xi_length)[:, None]
    return MixtureTask(mixed.law, mixed.dimension, mixed.trace, scaled, xi_direction, noise)


def classification(mixed: Mixture) -> MixtureTask:
    """Labels +1 for the first component of a mixture, -1 for all others."""
    component_count = len(mixed.proportions)
    component_labels = class_labels("classes:1" + ",-1" * (component_count - 1), component_count)
    no_direction = np.empty((mixed.dimension, 0))
    return MixtureTask(mixed.law, mixed.dimension, mixed.trace, component_labels, no_direction)

"""Gaussian mixtures as laws of inputs, and class labels given by their components."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from solvers.results import Array

from ..display import Described
from ..errors import InvalidArgument
from .checks import MAX_NUMBER, assign, coarsest, finite_array, number, plain_array


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GaussianMixture(Described):
    """A mixture of J Gaussians as the law of inputs.

    Parameters
    ----------
    means : array (J, K)
        Means of the first K coordinates of the inputs.  The others are independent standard
        normal.
    covariances : array (J, K, K) or (K, K), optional
        Covariance of every component, or one for all.  The default is the identity.
    fractions : array (J,), optional
        Shares of the components, of sum 1, or relative sizes, of which one is 1 or more, such as
        numbers of samples.  The default is equal shares.

    Raises
    ------
    InvalidArgument
        If shapes do not fit each other, a number is not finite, a covariance is not symmetric and
        positive semidefinite (up to the rounding of its numbers, single precision too), a share is
        negative, or shares below 1 do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import GaussianMixture
    >>> two = GaussianMixture(means=[[1.5, 0], [-1.5, 0]], covariances=np.diag([1, 0.5]))
    >>> two.fractions.tolist(), two.within(3).covariances[0].diagonal().tolist()
    ([0.5, 0.5], [1.0, 0.5, 1.0])
    """

    means: Any
    covariances: Any = None
    fractions: Any = None

    def __post_init__(self) -> None:
        mixture_means = finite_array("means", self.means, 2)
        J, K = mixture_means.shape
        given_shares = self.fractions
        shares = np.ones(J) if given_shares is None else plain_array("fractions", given_shares)
        if shares.shape != (J,) or not (shares >= 0).all() or not shares.sum() > 0:
            allowed_shares = f"{J} numbers of 0 or more, one for each of the means, not all 0"
            raise InvalidArgument("fractions", given_shares, allowed_shares)
        if shares.max() < 1 and abs(shares.sum() - 1) > 1e-6:
            allowed_shares = f"of sum 1, not {shares.sum():g}, or relative sizes such as [3, 7]"
            raise InvalidArgument("fractions", given_shares, allowed_shares)
        matrices = self.covariances
        if matrices is not None:
            matrices = plain_array("covariances", matrices)
            covariance_axes = 2 if matrices.ndim == 2 else 3
            matrices = finite_array("covariances", matrices, covariance_axes)
            if matrices.shape not in ((K, K), (J, K, K)):
                allowed_covariances = f"of shape {(J, K, K)}, or {(K, K)} for all components"
                raise InvalidArgument("covariances", f"shape {matrices.shape}", allowed_covariances)
            valid_covariances = semidefinite(matrices, coarsest(covariances=self.covariances))
            matrices = np.broadcast_to(valid_covariances, (J, K, K))
        assign(self, means=mixture_means, covariances=matrices, fractions=shares / shares.sum())

    def __str__(self) -> str:
        return f"GaussianMixture({len(self.means)} components in {self.dimension} dimensions)"

    def __repr__(self) -> str:
        described_fields = self.described
        if (self.fractions == 1 / len(self.means)).all():
            del described_fields["fractions"]
        field_texts = ", ".join(f"{name}={value}" for name, value in described_fields.items())
        return str(self) if self.means.size > 40 else f"GaussianMixture({field_texts})"

    @property
    def dimension(self) -> int:
        """The number K of coordinates with a law of their own."""
        return int(self.means.shape[1])

    @property
    def structured(self) -> int:
        """Number of coordinates that are not standard normal."""
        unlike_identity = (self.each_covariance != np.eye(self.dimension)).any(axis=(0, 1))
        return int((unlike_identity | (self.means != 0).any(axis=0)).sum())

    @property
    def described(self) -> dict[str, Any]:
        """Parameters as plain values."""
        mixture_fields = "means", "covariances", "fractions"
        mixture_values = {name: getattr(self, name) for name in mixture_fields}
        return {name: value.tolist() for name, value in mixture_values.items() if value is not None}

    def within(self, dimension: int) -> "GaussianMixture":
        """The law of the first ``dimension`` coordinates of the inputs, K or more."""
        extra_axes = dimension - self.dimension
        if extra_axes == 0:
            return self
        if extra_axes < 0:
            allowed_inputs = f"a law of at most {dimension} coordinates, the dimension of inputs"
            raise InvalidArgument("inputs", f"means of {self.dimension}", allowed_inputs)
        wider_means, covariances = np.pad(self.means, ((0, 0), (0, extra_axes))), self.covariances
        if covariances is not None:
            covariances = np.pad(covariances, ((0, 0), (0, extra_axes), (0, extra_axes)))
            added_axes = range(self.dimension, dimension)
            covariances[:, added_axes, added_axes] = 1.0
        return GaussianMixture(means=wider_means, covariances=covariances, fractions=self.fractions)

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Random inputs (n, K) and their components (n,)."""
        component_j = self.components(samples, rng)
        return self.at(rng.standard_normal((samples, self.dimension)), component_j), component_j

    def components(self, samples: int, rng: Generator) -> Array:
        """Random components, int (n,), of so many ``samples``."""
        return rng.choice(len(self.fractions), samples, p=self.fractions)

    def at(self, normals: Array, component: Array) -> Array:
        """Inputs (n, d) of given components (n,), from standard normal numbers (n, d), d >= K."""
        mixture_inputs, K = normals.copy(), self.dimension
        for j, (mean_j, root_j) in enumerate(zip(self.means, self._roots, strict=True)):
            in_j = component == j
            mixture_inputs[in_j, :K] = mean_j + mixture_inputs[in_j, :K] @ root_j
        return mixture_inputs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianMixture) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        """Parameters as hashable values, equal for equal mixtures."""
        mixture_arrays = self.means, self.each_covariance, self.fractions
        return tuple((array.shape, (array + 0.0).tobytes()) for array in mixture_arrays)

    @cached_property
    def each_covariance(self) -> Array:
        """Covariances of all components, (J, K, K)."""
        J, K = self.means.shape
        component_covariances = np.eye(K) if self.covariances is None else self.covariances
        return np.broadcast_to(component_covariances, (J, K, K))

    @cached_property
    def _roots(self) -> Array:
        """Symmetric square roots of the covariances, (J, K, K)."""
        eigenvalues, eigenvectors = np.linalg.eigh(self.each_covariance)
        eigenvalue_roots = np.sqrt(np.maximum(eigenvalues, 0.0))[..., None, :]
        return np.asarray((eigenvectors * eigenvalue_roots) @ eigenvectors.swapaxes(-1, -2))


def separated(inputs: GaussianMixture | None, factor: float) -> GaussianMixture:
    """The mixture with means that are multiplied by a factor."""
    scale = number("separation", factor, 0, MAX_NUMBER, "0 or more, a factor of the inputs' means")
    if inputs is None:
        raise InvalidArgument("separation", factor, "given with inputs, whose means it multiplies")
    return replace(inputs, means=scale * inputs.means)


def semidefinite(covariances: Array, epsilon: float) -> Array:
    """Positive semidefinite ``covariances`` (..., K, K) of numbers known to a share ``epsilon``.

    Negative eigenvalues that result from the rounding of single precision are set to 0.

    Raises
    ------
    InvalidArgument
        If they are not symmetric and positive semidefinite, up to that rounding.
    """
    largest_entry, K = np.abs(covariances).max(), covariances.shape[-1]
    covariance_rounding = max(1e-8, K * epsilon)
    asymmetry = np.abs(covariances - np.swapaxes(covariances, -1, -2)).max()
    values = np.linalg.eigvalsh(covariances)
    is_asymmetric = asymmetry > covariance_rounding * largest_entry
    if is_asymmetric or values.min() < -covariance_rounding * largest_entry:
        fault = f"entries {asymmetry:g} apart" if is_asymmetric else f"eigenvalue {values.min():g}"
        allowed_covariances = "symmetric matrices without negative eigenvalues"
        raise InvalidArgument("covariances", fault, allowed_covariances)
    if covariance_rounding == 1e-8:
        return covariances
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray((vectors * np.maximum(values, 0)[..., None, :]) @ vectors.swapaxes(-1, -2))


@dataclass(frozen=True)
class ClassLabels:
    """A target with the label ``values[j]`` for inputs of component j of their law: a number, or J
    of them, 1 in place j and else 0.

    It is a function of j instead of the input.
    """

    values: tuple[Any, ...]
    name: str
    dimension: ClassVar[int] = 0  # it depends on no direction of the input
    planes: ClassVar[tuple[Any, ...]] = ()
    kinks: ClassVar[tuple[float, ...]] = ()

    @property
    def outputs(self) -> int:
        """Outputs of a network that learns it: one for each number of a label."""
        return 1 if np.ndim(self.values) == 1 else len(self.values)

    def __call__(self, component: Array) -> Array:
        """The labels of components (n,)."""
        return np.asarray(self.values)[component]


def class_labels(spec: str, count: int) -> ClassLabels:
    """Labels for ``count`` components, from a ``spec`` such as ``"classes:1,-1"``; by ``"classes"``
    alone two are -1 and +1, and more have an output each.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> class_labels("classes:1,-1", 2).values
    (1.0, -1.0)
    >>> class_labels("classes", 2).values, class_labels("classes", 3).outputs
    ((-1.0, 1.0), 3)
    """
    if spec == "classes" and count > 1:
        return ClassLabels((-1.0, 1.0) if count == 2 else tuple(map(tuple, np.eye(count))), spec)
    try:
        class_values = tuple(float(label_text) for label_text in spec.partition(":")[2].split(","))
    except ValueError:
        class_values = ()
    if len(class_values) != count or not (np.abs(class_values) <= MAX_NUMBER).all():
        allowed = f"classes:y1,y2,... with a number for each of {count} components of the inputs"
        allowed += f", up to {MAX_NUMBER:g}"
        raise InvalidArgument("target", spec, allowed)
    return ClassLabels(class_values, spec)

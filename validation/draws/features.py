"""Inputs, features and labels of a first layer of finite size: an ``Instance``, of a network, an
sRF or a given layer, or of the conditional Gaussian model.

Inputs are x ~ N(0, I_d), features sigma(W x + bias) and targets
sigma_*(w_1 . x, ..., w_T . x) + sqrt(Delta) xi.  Where inputs have a law of their own, it is the
law along the ``frame`` of an instance, whose first directions are the target's.

Inputs are drawn in blocks: memory does not grow with their number.

The conditional Gaussian model has the features of the equivalence itself, at finite size.  Given
the projections kappa of an input on the spikes, the feature of neuron i in group b is

    phi_i = mu_0^b(kappa) + mu_1^b(kappa) sqrt(c_b) w_i . x + mu_2^b(kappa) xi_i         (3.1)

with w_i uniform on the sphere and xi_i ~ N(0, 1) fresh for every neuron and sample.  The
activation acts on kappa alone, through the moments (3.2), taken at the kappa of every sample:
no table and no interpolation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from replica.problem import (
    Activation,
    ClassLabels,
    GaussianMixture,
    LabelLaw,
    LabelNoise,
    SpikedRandomFeatures,
    Target,
)
from solvers import arrays
from solvers.results import Array

INPUT_BLOCK = 2**20  # numbers in one array of a block: 8 MiB, as fast as any larger


@dataclass(frozen=True, eq=False)
class Instance:
    """First layer drawn by :func:`validation.draw`, and the target to learn on it.

    Attributes
    ----------
    W : (p, d)
        First-layer rows w_i.
    bias : (p,)
        Untrained biases of the neurons.
    directions : (T, d)
        Target directions, orthonormal; of a single-index target, w*.
    student : Activation
        sigma.
    target : Activation, MultiIndex or ClassLabels
        sigma_*.
    noise : float
        Variance Delta of the label noise.
    label_noise : LabelNoise or None
        Law of further noise of the labels, or their channel.
    inputs : GaussianMixture or None
        Law of the inputs along ``frame``; N(0, I) unless given.
    frame : (D, d), optional
        Orthonormal directions that ``inputs`` are the law of: the first axes unless given.
    feature_noise : float
        Variance of the noise in every feature.
    """

    W: Array
    bias: Array
    directions: Array
    student: Activation
    target: Target
    noise: float
    label_noise: LabelNoise | None
    inputs: GaussianMixture | None = None
    frame: Array | None = None
    feature_noise: float = 0.0

    def draw_inputs(self, samples: int, rng: Generator) -> Iterator[tuple[Array, Array]]:
        """Inputs (b, d) in blocks, ``samples`` in all, and their components (b,).

        The features of a block fit in ``INPUT_BLOCK`` numbers, as its inputs do.  The inputs
        themselves do not depend on how they are divided.
        """
        law, block_rows = self.inputs, max(1, INPUT_BLOCK // max(self.W.shape))
        component = np.zeros(samples, dtype=int) if law is None else law.components(samples, rng)
        for first_row in range(0, samples, block_rows):
            of_block = component[first_row : first_row + block_rows]
            X = rng.standard_normal((len(of_block), self.W.shape[1]))
            if law is not None and self.frame is None:
                X = law.at(X, of_block)
            elif law is not None and self.frame is not None:
                along_frame = X @ self.frame.T
                X += (law.at(along_frame, of_block) - along_frame) @ self.frame
            yield X, of_block

    def features(self, X: Array, bias: float = 0.0, rng: Generator | None = None) -> Array:
        """Phi = sigma(X W^T + bias) + noise, (n, p), of inputs (n, d); ``bias`` is added to all."""
        pre_activations = X @ self.W.T
        pre_activations += arrays.like(self.bias + bias, pre_activations)
        Phi = _apply_student(self.student, pre_activations)
        if self.feature_noise:
            drawn_noise = default_rng(rng).standard_normal(Phi.shape)
            Phi += arrays.like(np.sqrt(self.feature_noise) * drawn_noise, Phi)
        return Phi

    def targets(self, X: Array, component: Array | None = None) -> Array:
        """Noiseless targets E[y | x], (n,)."""
        return self._law.mean(*self._arguments(X, component))

    def labels(self, X: Array, rng: Generator, component: Array | None = None) -> Array:
        """Labels with fresh noise of variance Delta, (n,)."""
        return self._law.draw(self._arguments(X, component), rng)

    def _arguments(self, X: Array, component: Array | None) -> Array:
        """Arguments of the target: projections (T, n), or the components of the inputs (1, n)."""
        if component is not None and isinstance(self.target, ClassLabels):
            return component[None]
        return self.directions @ X.T

    @property
    def _law(self) -> LabelLaw:
        """The law of a label given the projections of an input on ``directions``."""
        return LabelLaw(self.target, self.noise, self.label_noise)


def _apply_student(student: Activation, pre_activations: Any) -> Any:
    """sigma(x): by a function of the array's own library where there is one."""
    if isinstance(pre_activations, np.ndarray):
        return student(pre_activations)
    xp = arrays.namespace(pre_activations)
    if student.name in ("tanh", "sin", "erf") and hasattr(xp, student.name):
        return getattr(xp, student.name)(pre_activations)
    if student.name == "relu":
        return xp.where(pre_activations > 0, pre_activations, xp.zeros_like(pre_activations))
    return arrays.like(student(arrays.to_host(pre_activations)), pre_activations)


@dataclass(frozen=True, eq=False)
class GaussianInstance(Instance):
    """A drawn bulk whose features are (3.1).  ``W`` has the rows sqrt(c_b) w_i, no spikes.

    Attributes
    ----------
    model : SpikedRandomFeatures
    group : (p,) of int
        The group b of each neuron in ``model.geometry``.
    """

    model: SpikedRandomFeatures = field(kw_only=True)
    group: NDArray[np.int64] = field(kw_only=True)

    def features(self, X: Any, bias: float = 0.0, rng: Generator | None = None) -> Any:
        """Phi of (3.1), (n, p); ``rng`` draws xi."""
        neuron_groups = self.model.geometry
        kappa = arrays.to_host(X[:, : neuron_groups.r.shape[1]])
        spike_fields = kappa @ neuron_groups.r.T + neuron_groups.bias + bias
        # Eq. (3.2), (n, A)
        group_means, first, variance = self.student.moments(spike_fields, neuron_groups.c)
        slope, feature_sd = first / np.sqrt(neuron_groups.c), np.sqrt(variance + self.feature_noise)
        xi = np.random.default_rng(rng).standard_normal((len(spike_fields), len(self.group)))
        xi *= feature_sd[:, self.group]
        xi += group_means[:, self.group]
        linear_fields = X @ self.W.T
        linear_fields *= arrays.like(slope[:, self.group], X)
        linear_fields += arrays.like(xi, X)
        return linear_fields

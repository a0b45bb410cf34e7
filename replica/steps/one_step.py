"""A giant gradient step: (eta, alpha0) -> loadings r, bulk variances c, cosines gamma.
docs/theory.md 2, [C] Result 3.1; several steps are in ``several_steps``.

The step adds to row i the same direction (the spike: length r_i, cosine gamma with the
target) and independent noise that, with the part of the row itself that the step rescales,
makes the bulk variance c_i.  Neurons with equal first-step readout and bias form a group; a
continuous law of the readout is replaced by as many groups as its Gauss rule needs.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from solvers.results import Array
from solvers.rules import gauss_hermite
from solvers.settle import settle

from ..problem import Activation, SpikedRandomFeatures
from .step import Step

GROUPS = (6, 8, 12, 16, 24, 32, 48)  # numbers of groups that are tried for a continuous law


@lru_cache(maxsize=1024)
def features_after_one_step(step: Step, tol: float, most: int) -> SpikedRandomFeatures:
    """The sRF of width beta = 1 after a single ``step``, with a group for every readout and bias.

    A continuous readout has as many values as its averages need to converge to ``tol``, but at most
    ``most``.  Raises InvalidArgument if the student jumps, as it then has no gradient.
    """
    if step.readout.continuous is None or step.eta == 0:
        return _discretised_features(step, 1)
    refinements = (_discretised_features(step, count) for count in GROUPS if count <= most)

    def relative_change(before: Array, after: Array) -> float:
        return float(np.linalg.norm(after - before) / np.linalg.norm(after))

    settled = settle(refinements, _feature_kernels, relative_change, tol)
    return replace(settled.candidate, law_error=settled.change)


def readout_values(step: Step, count: int) -> tuple[Array, Array]:
    """Values and shares of the first-step readout, ``count`` of them if its law is continuous.

    A single value if every learning rate is zero, as the readout then has no effect.
    """
    if not step.takes_step:
        return np.zeros(1), np.ones(1)
    if step.readout.continuous is None:
        return step.readout.discretise(count)
    largest_change = max(np.linalg.norm(_row_changes(step, bias)) for bias in step.bias.values)
    # rows whose change at readout 1 is smaller depend linearly on the readout
    return step.readout.discretise(count, 1 / max(float(largest_change), 1e-6))


def _discretised_features(step: Step, count: int) -> SpikedRandomFeatures:
    """The sRF by Eqs. (2.1)-(2.3), with ``count`` values for a continuous readout."""
    values, shares = readout_values(step, count)
    changes = np.array([_row_changes(step, bias) for bias in step.bias.values])
    spike, stretch, noise = changes.T[..., None]  # (biases, 1)
    r = (values * spike).ravel()
    scale = step.decay_factor(0) + values * stretch
    c = (scale**2 + (values * noise) ** 2).ravel()  # Eq. (2.3)
    fractions = np.multiply.outer(step.bias.fractions, shares).ravel()
    biases = np.repeat(step.bias.values, len(values))
    gamma = _initial_gradient(step)[2] if r.any() else np.zeros(step.known_dimension)
    if len(r) == 1:
        return step.features(r=r[0], c=c[0], gamma=gamma, bias=biases[0])
    return step.features(r=r, c=c, gamma=gamma, fractions=fractions, bias=biases)


def _initial_gradient(step: Step) -> tuple[float, float, Array, float]:
    """Mean and mean square of the initial residual e, and the gradient's cosines (D,) and length N.

    e is the label less the network's output before the step.  Eqs. (2.1)-(2.2), (19.1)
    """
    labels, f0 = step.averages, float(mean_output(step, 0.0, 1.0))  # a~ h_0, averaged
    v_star = labels.power - 2 * f0 * labels.mean + f0**2
    residual_moment = labels.first - f0 * labels.inputs  # E e x
    N = float(np.sqrt(residual_moment @ residual_moment + v_star / step.alpha0))  # Eq. (2.2)
    return labels.mean - f0, v_star, residual_moment / (N or 1.0), N


def _row_changes(step: Step, bias: float) -> tuple[float, float, float]:
    """Changes of a row of readout 1 by the step: along the spike, in its scale, and by noise.
    Eqs. (2.2)-(2.3)"""
    if not step.eta:
        return 0.0, 0.0, 0.0
    h1, h_check, h2 = _student_moments(step.student, bias)
    mean, v_star, _, N = _initial_gradient(step)
    noise = np.sqrt(v_star * h_check / step.alpha0)
    return step.eta * h1 * N, step.eta * h2 * mean, step.eta * float(noise)


@lru_cache(maxsize=1024)
def _student_moments(student: Activation, shift: float) -> tuple[float, float, float]:
    """Moments h_1, h_check and h_2 of (2.1) for a neuron of bias ``shift``."""
    return *student.slope_moments(shift), float(student.second_hermite(shift))


def _feature_kernels(model: SpikedRandomFeatures) -> Array:
    """Kernels of the features: averages over groups of mu_0 mu_0', c mu_1 mu_1' and mu_2^2.

    Matrices on the nodes of a Gaussian rule for kappa.  The theory depends on the groups through
    these averages, so their convergence is that of the discretised readout.
    """
    kappa, weights = gauss_hermite(24)
    groups = model.geometry
    m = model.student.moments(groups.r * kappa + groups.bias[:, None], groups.c[:, None])
    pi = groups.fractions
    constant = np.einsum("a,ai,aj->ij", pi, m.mean, m.mean)
    linear = np.einsum("a,ai,aj->ij", pi, m.first, m.first)
    root = np.sqrt(weights)
    return np.stack([constant, linear, np.diag(pi @ m.variance)]) * root[:, None] * root


def mean_output(step: Step, shift: Array | float, c: float) -> Array:
    """Mean output of the network at a pre-activation of mean ``shift``, plus biases, and variance
    ``c``."""
    biases = zip(step.bias.values, step.bias.fractions, strict=True)
    mean = sum(share * step.student.moments(shift + bias, c).mean for bias, share in biases)
    return np.asarray(step.readout.mean * mean)

"""One giant gradient step: (eta, alpha0) -> loadings r, bulk variances c, cosines gamma.
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

GROUPS = (6, 8, 12, 16, 24, 32, 48)  # numbers of them that are tried for a continuous law


@lru_cache(maxsize=1024)
def features_after_one_step(step: Step, tol: float, most: int) -> SpikedRandomFeatures:
    """The features of width beta = 1 after a single ``step``, a group for every value of the
    readout and of the bias: of a continuous readout as many as ``tol`` takes, ``most`` at most.  An
    InvalidArgument if the student has a jump (no gradient)."""
    if step.readout.continuous is None or step.eta == 0:
        return _with_groups(step, 1)
    ever_more = (_with_groups(step, count) for count in GROUPS if count <= most)

    def change(before: Array, now: Array) -> float:
        return float(np.linalg.norm(now - before) / np.linalg.norm(now))

    settled = settle(ever_more, _kernel, change, tol)
    return replace(settled.candidate, law_error=settled.change)


def readouts(step: Step, count: int) -> tuple[Array, Array]:
    """Values and shares of the readout, ``count`` of a continuous one; one of a step that is not
    made, where it does not matter."""
    if not step.made:
        return np.zeros(1), np.ones(1)
    if step.readout.continuous is None:
        return step.readout.discretise(count)
    moved = max(np.linalg.norm(_moved(step, bias)) for bias in step.bias.values)
    # a readout of 1 that moves a row by less moves it, and all there is, linearly
    return step.readout.discretise(count, 1 / max(float(moved), 1e-6))


def _with_groups(step: Step, count: int) -> SpikedRandomFeatures:
    """The groups by Eqs. (2.1)-(2.3), with ``count`` values for a continuous readout."""
    values, shares = readouts(step, count)
    moved = np.array([_moved(step, bias) for bias in step.bias.values])
    along, stretch, noise = moved.T[..., None]  # (biases, 1)
    r = (values * along).ravel()
    c = ((step.kept(0) + values * stretch) ** 2 + (values * noise) ** 2).ravel()  # Eq. (2.3)
    fractions = np.multiply.outer(step.bias.fractions, shares).ravel()
    biases = np.repeat(step.bias.values, len(values))
    gamma = _gradient(step)[2] if r.any() else np.zeros(step.known)
    if len(r) == 1:
        return step.features(r=r[0], c=c[0], gamma=gamma, bias=biases[0])
    return step.features(r=r, c=c, gamma=gamma, fractions=fractions, bias=biases)


def _gradient(step: Step) -> tuple[float, float, Array, float]:
    """Mean and square of e, the labels less the network's first output; and the gradient's cosines
    (D,) and length N.  Eqs. (2.1)-(2.2), (19.1)"""
    labels, f0 = step.averages, float(output(step, 0.0, 1.0))  # a~ h_0, averaged
    v_star = labels.power - 2 * f0 * labels.mean + f0**2
    first = labels.first - f0 * labels.inputs  # E e x
    N = float(np.sqrt(first @ first + v_star / step.alpha0))  # Eq. (2.2)
    return labels.mean - f0, v_star, first / (N or 1.0), N


def _moved(step: Step, bias: float) -> tuple[float, float, float]:
    """What the step adds to a row of this ``bias`` and of readout 1: along the spike, to its own
    length, and in noise.  Eqs. (2.2)-(2.3)"""
    if not step.eta:
        return 0.0, 0.0, 0.0
    (h1, h_check, h2), (mean, v_star, _, N) = _student(step.student, bias), _gradient(step)
    noise = np.sqrt(v_star * h_check / step.alpha0)
    return step.eta * h1 * N, step.eta * h2 * mean, step.eta * float(noise)


@lru_cache(maxsize=1024)
def _student(student: Activation, shift: float) -> tuple[float, float, float]:
    """h_1, h_check and h_2 of (2.1) for a neuron of bias ``shift``."""
    return *student.slope_moments(shift), float(student.second_hermite(shift))


def _kernel(model: SpikedRandomFeatures) -> Array:
    """Averages over the groups that the theory depends on, as matrices on a Gaussian rule of
    kappa: products of mu_0, of mu_1 (times c), and mu_2^2.  They converge as the
    discretisation does."""
    kappa, weights = gauss_hermite(24)
    groups = model.geometry
    m = model.student.moments(groups.r * kappa + groups.bias[:, None], groups.c[:, None])
    pi = groups.fractions
    constant = np.einsum("a,ai,aj->ij", pi, m.mean, m.mean)
    linear = np.einsum("a,ai,aj->ij", pi, m.first, m.first)
    root = np.sqrt(weights)
    return np.stack([constant, linear, np.diag(pi @ m.variance)]) * root[:, None] * root


def output(step: Step, shift: Array | float, c: float) -> Array:
    """The mean output of the network of ``step`` at ``shift`` of all neurons, but for their
    biases, of rows of variance ``c``."""
    biases = zip(step.bias.values, step.bias.fractions, strict=True)
    mean = sum(share * step.student.moments(shift + bias, c).mean for bias, share in biases)
    return np.asarray(step.readout.mean * mean)

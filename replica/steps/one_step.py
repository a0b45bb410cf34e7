"""One giant gradient step: (eta, alpha0) -> loadings r, bulk variances c, cosines gamma.
docs/theory.md 2, [C] Result 3.1; several steps are in ``several_steps``.

The step adds to row i the same direction (the spike: length r_i, cosine gamma with the
target) and independent noise that, with the part of the row itself that the step rescales,
makes the bulk variance c_i.  Neurons with equal first-step readout and bias form a group; a
continuous law of the readout is replaced by as many groups as its Gauss quadrature needs.
"""

import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np

from solvers.results import Array
from solvers.rules import gauss_hermite
from solvers.settle import settle

from ..problem import Activation, SpikedRandomFeatures
from .step import Step

GROUPS = (4, 6, 8, 12, 16, 24, 32, 48)  # numbers of them that are tried for a continuous law


@lru_cache(maxsize=1024)
def after_one_step(step: Step) -> SpikedRandomFeatures:
    """The features of width beta = 1 after a single ``step``, a group for every value of the
    readout and of the bias.

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).
    """
    if step.readout.continuous is None or step.eta == 0:
        return _with_groups(step, 1)
    ever_more = (_with_groups(step, count) for count in GROUPS)
    # to the accuracy to which other losses than the square are solved
    settled = settle(ever_more, _kernel, _kernel_change, 1e-6)
    return replace(settled.candidate, law_error=settled.change)


def srf_after_one_step(step: Step, beta: float) -> SpikedRandomFeatures:
    """The features of width ``beta`` after a single ``step``, with a warning where the groups are
    too few for the readout's law."""
    model = after_one_step(step)
    if model.law_error > 1e-4:  # about the width of a line in a plot
        warnings.warn(
            f"{len(model.r)} groups stand for the readout's law with an error "
            f"of {model.law_error:.1e}: its tails are too heavy, or the step too large",
            stacklevel=3,
        )
    return replace(model, beta=beta)


def _with_groups(step: Step, count: int) -> SpikedRandomFeatures:
    """The groups by Eqs. (2.1)-(2.3), with ``count`` values for a continuous readout."""
    # the readout of a step that is not made does not matter
    values, shares = step.readout.discretise(count) if step.eta else (np.zeros(1), np.ones(1))
    biases, bias_shares = step.bias.discretise(1)
    labels = step.step_labels.averages()
    at = [step.student.moments(t, 1.0).mean for t in biases]
    f0 = float(values @ shares) * float(np.array(at) @ bias_shares)  # a~ h_0, averaged
    v_star = labels.power - 2 * f0 * labels.mean + f0**2
    N = float(np.sqrt(labels.first @ labels.first + v_star / step.alpha0))  # Eq. (2.2)
    r, c, fractions, bias = [], [], [], []
    for t, t_share in zip(biases, bias_shares, strict=True):
        if step.eta:
            h1, h_check, h2 = _student(step.student, float(t))
        else:
            h1 = h_check = h2 = 0.0
        push = step.eta * values
        r += (push * h1 * N).tolist()
        shrink = 1 + push * h2 * (labels.mean - f0)
        c += (shrink**2 + push**2 * v_star * h_check / step.alpha0).tolist()  # Eq. (2.3)
        fractions += (shares * t_share).tolist()
        bias += [float(t)] * len(values)
    gamma = labels.first / N if any(r) else np.zeros(len(labels.first))
    if len(r) == 1:
        return step.features(r=r[0], c=c[0], gamma=gamma, bias=bias[0])
    return step.features(r=r, c=c, gamma=gamma, fractions=fractions, bias=bias)


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


def _kernel_change(before: Array, now: Array) -> float:
    """Norm of the change of a kernel, relative to its own."""
    return float(np.linalg.norm(now - before) / np.linalg.norm(now))

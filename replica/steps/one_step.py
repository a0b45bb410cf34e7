"""One giant gradient step: (eta, alpha0) -> loadings r, bulk variances c, cosines gamma.
docs/theory.md 2, [C] Result 3.1; several steps are in ``several_steps``.

The step adds to row i the same direction (the spike: length r_i, cosine gamma with the
target) and independent noise that, with the part of the row itself that the step rescales,
makes the bulk variance c_i.  Neurons with equal first-step readout and bias form a group; a
continuous law of the readout is replaced by as many groups as its Gauss quadrature needs.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import gauss_hermite
from solvers.settle import settle

from ..problem import Activation, SpikedRandomFeatures
from .step import Step

GROUPS = (4, 6, 8, 12, 16, 24, 32, 48)  # numbers of them that are tried for a continuous law


class SpikedParameters(NamedTuple):
    """Groups after the step: loadings r, bulk variances c, cosines gamma with the target's
    directions, shares and biases of the groups - floats where there is one group or
    direction, else tuples - and the error of replacing the readout's law by them."""

    r: float | tuple[float, ...]
    c: float | tuple[float, ...]
    gamma: float | tuple[tuple[float], ...]
    fractions: tuple[float, ...] | None
    bias: float | tuple[float, ...]
    error: float


class FirstStep(NamedTuple):
    """Predictions for the first step, for groups of neurons as :meth:`GradientStep.srf` makes
    them; where the readout's law is continuous, the gradients have groups of their own.

    Attributes
    ----------
    direction : (T,)
        Unit vector along C_1 = E z sigma_*, to which all neurons turn; 0 where C_1 is.
    weights, gradients : (A, T)
        Cosines with the target's directions of the rows after the step, and of what it adds.
    fractions : (A,)
        Shares of the groups of ``weights``.
    """

    direction: Array
    weights: Array
    gradients: Array
    fractions: Array


@lru_cache(maxsize=1024)
def after_one_step(step: Step) -> SpikedParameters:
    """The groups of the network after a single ``step``.

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).

    Examples
    --------
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=1.0)
    >>> after = after_one_step(step)
    >>> round(after.r, 7), round(after.c, 7), round(after.gamma, 7)
    (0.6510892, 1.0769061, 0.5634852)
    """
    if step.readout.continuous is None or step.eta == 0:
        return _with_groups(step, 1, 0.0)
    ever_more = (_with_groups(step, count, np.inf) for count in GROUPS)
    # to the accuracy to which other losses than the square are solved
    settled = settle(ever_more, partial(_kernel, step.student), _kernel_change, 1e-6)
    return settled.candidate._replace(error=settled.change)


def first_step(step: Step) -> FirstStep:
    """Direction and cosines of the neurons after the first step of ``step``, for any law of the
    readout and of the bias.  docs/theory.md 2, 11

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).

    Examples
    --------
    >>> from replica import GradientStep
    >>> step = GradientStep(
    ...     student="relu", target="(4*z1 + z1**2 + z2)/2", readout=[-1, 1], alpha0=1, eta=2
    ... )
    >>> first = first_step(step)
    >>> first.direction.round(3).tolist(), first.gradients.round(3).tolist()
    ([0.97, 0.243], [[-0.527, -0.132], [0.527, 0.132]])
    """
    alpha0, eta = step.schedule[0]
    single = replace(step, alpha0=alpha0, eta=eta, steps=())
    # for a continuous law 8 groups do: the gradients of its values differ in sign alone
    values, shares = step.readout.discretise(8)
    # what a step adds is all that is left of a row where the rate is large
    large = replace(single, eta=1e12, readout=(values.tolist(), shares.tolist()))
    after, added = after_one_step(single), after_one_step(large)
    without_noise = after_one_step(replace(single, alpha0=np.inf, eta=1.0))
    direction = np.array(without_noise.gamma, dtype=float).reshape(-1)
    return FirstStep(
        direction=direction,
        weights=_weight_cosines(after),
        gradients=_weight_cosines(added),
        fractions=np.ones(1) if after.fractions is None else np.array(after.fractions),
    )


def _weight_cosines(after: SpikedParameters) -> Array:
    """Cosines of the rows of each group with the target's directions, (A, T)."""
    r, c = np.atleast_1d(after.r), np.atleast_1d(after.c)
    gamma = np.array(after.gamma, dtype=float).reshape(-1)
    return np.asarray((r / np.sqrt(r**2 + c))[:, None] * gamma)


def cosines(gamma: Sequence[float]) -> float | tuple[tuple[float], ...]:
    """A float for one target direction, else a column (T, 1)."""
    return float(gamma[0]) if len(gamma) == 1 else tuple((float(g),) for g in gamma)


def _with_groups(step: Step, count: int, error: float) -> SpikedParameters:
    """The groups by Eqs. (2.1)-(2.3), with ``count`` values for a continuous readout, whose
    ``error`` is passed on."""
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
    spiked = any(r)
    gamma = labels.first / N if spiked else np.zeros(len(labels.first))
    directions = cosines(gamma.tolist())
    if len(r) == 1:
        return SpikedParameters(r[0], c[0], directions, None, bias[0], error)
    return SpikedParameters(tuple(r), tuple(c), directions, tuple(fractions), tuple(bias), error)


@lru_cache(maxsize=1024)
def _student(student: Activation, shift: float) -> tuple[float, float, float]:
    """h_1, h_check and h_2 of (2.1) for a neuron of bias ``shift``."""
    return *student.slope_moments(shift), float(student.second_hermite(shift))


def _kernel(student: Activation, groups: SpikedParameters) -> Array:
    """Averages over the groups that the theory depends on, as matrices on a Gaussian rule of
    kappa: products of mu_0, of mu_1 (times c), and mu_2^2.  They converge as the
    discretisation does."""
    kappa, weights = gauss_hermite(24)
    r, c = np.atleast_1d(groups.r)[:, None], np.atleast_1d(groups.c)[:, None]
    bias = np.atleast_1d(groups.bias)[:, None]
    m = student.moments(r * kappa + bias, c)
    pi = np.ones(1) if groups.fractions is None else np.array(groups.fractions)
    constant = np.einsum("a,ai,aj->ij", pi, m.mean, m.mean)
    linear = np.einsum("a,ai,aj->ij", pi, m.first, m.first)
    root = np.sqrt(weights)
    return np.stack([constant, linear, np.diag(pi @ m.variance)]) * root[:, None] * root


def _kernel_change(before: Array, now: Array) -> float:
    """Norm of the change of a kernel, relative to its own."""
    return float(np.linalg.norm(now - before) / np.linalg.norm(now))


def features_of(step: Step, after: SpikedParameters, *, beta: float) -> SpikedRandomFeatures:
    """The spiked random features of width p = beta d with the parameters ``after`` the step."""
    if after.error > 1e-4:  # about the width of a line in a plot
        warnings.warn(
            f"{len(np.atleast_1d(after.r))} groups stand for the readout's law with an error "
            f"of {after.error:.1e}: its tails are too heavy, or the step too large",
            stacklevel=3,
        )
    return SpikedRandomFeatures(
        student=step.student,
        target=step.target,
        r=after.r,
        c=after.c,
        gamma=after.gamma,
        beta=beta,
        noise=step.noise,
        fractions=after.fractions,
        bias=after.bias,
        intercept=step.intercept,
        train_bias=step.train_bias,
        law_error=after.error,
        label_noise=step.label_noise,
    )

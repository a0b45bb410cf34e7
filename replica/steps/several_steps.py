"""Giant gradient steps, each on a fresh batch: (alpha_t, eta_t) -> (r, c, gamma) after each.
docs/theory.md 2, [C] Result 3.1, and 10 (ext).

The first step adds to row i the same direction (the spike: length r_i, cosine gamma with the
target) and independent noise that, with the part of the row itself that the step rescales,
makes the bulk variance c_i.  Neurons with equal first-step readout and bias form a group; a
continuous law of the readout is replaced by as many groups as its Gauss rule needs.

Of several steps, before step t every row is r u + sqrt(c) w_i: a spike r u common to all rows, u
unit with cosines gamma to the target's directions, and a bulk of variance c.  The gradient adds to
the spike a part along u, a part along the target's other directions and a noise common to all rows.
It rescales the bulk and adds independent noise to it.  The rows are again of this form, so every
step is the same recursion.  At initialisation r = 0, c = 1 and gamma = 0.

The bulk is assumed isotropic and independent of earlier batches, as in docs/theory.md 2.  In the
network it has a row covariance (docs/theory.md 15), to which every step adds.
"""

import warnings
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite
from solvers.successive_refinement import largest_change, settle

from ..equivalence import rules, tabulate
from ..errors import InvalidArgument
from ..problem import (
    Activation,
    GaussianMixture,
    LabelLaw,
    SpikedRandomFeatures,
    check_call,
    complement_root,
    refuse_options,
)
from .step_fields import Step, check_is_step

SLOPE_MOMENTS = lru_cache(maxsize=1024)(Activation.slope_moments)  # Eq. (2.1)
GROUPS = (6, 8, 12, 16, 24, 32, 48)  # numbers of groups that are tried for a continuous law


@lru_cache(maxsize=1024)
def features_after_one_step(step: Step, tol: float, most: int) -> SpikedRandomFeatures:
    """The sRF of width beta = 1 after a single ``step``, with a group for every readout and bias.

    A continuous readout has as many values as its averages need to converge to ``tol``, but at most
    ``most``.  Raises InvalidArgument if the student jumps, as it then has no gradient.
    """
    if step.readout.continuous is None or step.eta == 0:
        return _discretised_features(step, 1)
    refined_features = (_discretised_features(step, count) for count in GROUPS if count <= most)

    def relative_change(coarse_kernels: Array, fine_kernels: Array) -> float:
        return float(np.linalg.norm(fine_kernels - coarse_kernels) / np.linalg.norm(fine_kernels))

    settled_features = settle(refined_features, _feature_kernels, relative_change, tol)
    return replace(settled_features.candidate, law_error=settled_features.change)


def readout_values(step: Step, readout_count: int) -> tuple[Array, Array]:
    """Values and shares of the first-step readout, ``readout_count`` of a continuous law.

    A single value if every learning rate is zero, as the readout then has no effect.
    """
    if not step.takes_step:
        return np.zeros(1), np.ones(1)
    if step.readout.continuous is None:
        return step.readout.discretise(readout_count)
    largest_change = max(np.linalg.norm(_row_changes(step, bias)) for bias in step.bias.values)
    # rows whose change at readout 1 is smaller depend linearly on the readout
    return step.readout.discretise(readout_count, 1 / max(float(largest_change), 1e-6))


def _discretised_features(step: Step, readout_count: int) -> SpikedRandomFeatures:
    """The sRF by Eqs. (2.1)-(2.3), with ``readout_count`` values for a continuous readout."""
    readouts, readout_shares = readout_values(step, readout_count)
    row_changes = np.array([_row_changes(step, bias) for bias in step.bias.values])
    spike_change, scale_change, noise_change = row_changes.T[..., None]  # (biases, 1)
    row_loadings = (readouts * spike_change).ravel()
    row_scale = step.decay_factor(0) + readouts * scale_change
    c = (row_scale**2 + (readouts * noise_change) ** 2).ravel()  # Eq. (2.3)
    group_fractions = np.multiply.outer(step.bias.fractions, readout_shares).ravel()
    bias_a = np.repeat(step.bias.values, len(readouts))
    gamma = _initial_gradient(step)[2] if row_loadings.any() else np.zeros(step.known_dimension)
    if len(row_loadings) == 1:
        return step.features(r=row_loadings[0], c=c[0], gamma=gamma, bias=bias_a[0])
    return step.features(r=row_loadings, c=c, gamma=gamma, fractions=group_fractions, bias=bias_a)


def _initial_gradient(step: Step) -> tuple[float, float, Array, float]:
    """Mean and mean square of the initial residual e, and the gradient's cosines (D,) and length N.

    e is the label less the network's output before the step.  Eqs. (2.1)-(2.2), (19.1)
    """
    label_averages, f0 = step.averages, float(mean_output(step, 0.0, 1.0))  # a~ h_0, averaged
    e_power = label_averages.power - 2 * f0 * label_averages.mean + f0**2
    residual_moment = label_averages.first - f0 * label_averages.inputs  # E e x
    N = float(np.sqrt(residual_moment @ residual_moment + e_power / step.alpha0))  # Eq. (2.2)
    return label_averages.mean - f0, e_power, residual_moment / (N or 1.0), N


def _row_changes(step: Step, neuron_bias: float) -> tuple[float, float, float]:
    """Changes of a row of readout 1 by the step: along the spike, in its scale, and by noise.
    Eqs. (2.2)-(2.3)"""
    if not step.eta:
        return 0.0, 0.0, 0.0
    h1, h_check, h2 = SLOPE_MOMENTS(step.student, neuron_bias)
    mean_residual, residual_power, _, N = _initial_gradient(step)
    gradient_noise = np.sqrt(residual_power * h_check / step.alpha0)
    return step.eta * h1 * N, step.eta * h2 * mean_residual, step.eta * float(gradient_noise)


def _feature_kernels(srf_model: SpikedRandomFeatures) -> Array:
    """Kernels of the features: averages over groups of mu_0 mu_0', c mu_1 mu_1' and mu_2^2.

    Matrices on the nodes of a Gaussian rule for kappa.  The theory depends on the groups through
    these averages, so their convergence is that of the discretised readout.
    """
    kappa, kappa_weights = gauss_hermite(24)
    groups = srf_model.geometry
    m = srf_model.student.moments(groups.r * kappa + groups.bias[:, None], groups.c[:, None])
    pi = groups.fractions
    mean_kernel = np.einsum("a,ai,aj->ij", pi, m.mean, m.mean)
    linear_kernel = np.einsum("a,ai,aj->ij", pi, m.first, m.first)
    root = np.sqrt(kappa_weights)
    return np.stack([mean_kernel, linear_kernel, np.diag(pi @ m.variance)]) * root[:, None] * root


def mean_output(step: Step, shift: Array | float, c: float) -> Array:
    """Mean output of the network at a pre-activation of mean ``shift``, plus biases, and variance
    ``c``."""
    biases = zip(step.bias.values, step.bias.fractions, strict=True)
    mean_feature = sum(share * step.student.moments(shift + bias, c).mean for bias, share in biases)
    return np.asarray(step.readout.mean * mean_feature)


@dataclass(frozen=True)
class AfterStep:
    """The rows after a step: the shared spike r u and the bulk of variance c.

    Returned by :func:`replica.after_each_step`, one for each step.

    Attributes
    ----------
    alpha0, eta : float
        Samples per dimension and rate of the step.
    r : float
        Length of the spike.
    c : float
        Bulk variance.
    gamma : tuple of D floats
        Cosines of the spike with the directions of the targets, or with the coordinates of
        ``inputs``.
    weight_cosines, gradient_cosines : tuple of D floats
        Cosines with these directions of a row, and of its change in this step; 0 if it does not
        change.
    quadrature_error : float
        Relative change of the averages of Eq. (10.1) at the last refinement of their rule.
    """

    alpha0: float
    eta: float
    r: float
    c: float
    gamma: tuple[float, ...]
    weight_cosines: tuple[float, ...]
    gradient_cosines: tuple[float, ...]
    quadrature_error: float


@check_call
def after_each_step(step: Step) -> tuple[AfterStep, ...]:
    """The rows after every step of ``step``, in order.  Eqs. (10.1)-(10.3)

    Parameters
    ----------
    step : GradientStep
        Any step or steps with one value of the readout and one of the bias.

    Raises
    ------
    InvalidArgument
        If the readout or the bias has several values, or the student a jump (no gradient).
    QuadratureError
        If an average of Eq. (10.1) does not settle.

    Notes
    -----
    The spike's length is positive here.  After one step, :meth:`GradientStep.srf` may return
    (-r, -gamma) instead, which is the same spike.

    Examples
    --------
    >>> from replica import GradientStep, after_each_step
    >>> step = GradientStep(student="tanh", target="sin", steps=[(2, 1), (2, 1), (2, 1)])
    >>> for after in after_each_step(step):
    ...     print(f"{after.r:.4f} {after.c:.4f} {after.gamma[0]:.4f}")
    0.4629 1.0211 0.7937
    0.6519 0.9690 0.9096
    0.7848 0.8997 0.9538
    """
    check_is_step(step)
    refuse_options(step, "alpha0")
    for field in ("readout", "bias"):
        law_of_field = getattr(step, field)
        if len(law_of_field.values) != 1:
            allowed = "a single value where there are several steps: with several values of the "
            allowed += f"{field} every group of neurons has a spike of its own, which the theory "
            allowed += "does not follow beyond the first step (validation.trajectory simulates it)"
            raise InvalidArgument(field, law_of_field.continuous or law_of_field.values, allowed)
    step.student.slope_moments(step.bias.values[0])  # raises if the student jumps
    return _all_steps(step)


def features_after_steps(
    step: Step, tol: float = 1e-6, most: int = GROUPS[-1]
) -> SpikedRandomFeatures:
    """The sRF of width beta = 1 after the last of one or several steps.

    Warns if ``most`` groups are too few for the readout's law.  The default ``tol`` is the accuracy
    of losses other than the square.
    """
    if step.steps:
        final, neuron_bias = after_each_step(step)[-1], step.bias.values[0]
        return step.features(r=final.r, c=final.c, gamma=np.array(final.gamma), bias=neuron_bias)
    srf_model = features_after_one_step(step, tol, most)
    if srf_model.law_error > 1e-4:  # about the width of a line in a plot
        warnings.warn(
            f"{len(srf_model.r)} groups stand for the readout's law with an error of "
            f"{srf_model.law_error:.1e}: "
            f"its tails are too heavy, or the step too large, for {most}",
            stacklevel=2,
        )
    return srf_model


@lru_cache(maxsize=64)
def _all_steps(step: Step) -> tuple[AfterStep, ...]:
    """Rows after every step, in order.  Eqs. (10.1)-(10.3)"""
    r, c, gamma, rows_by_step = 0.0, 1.0, np.zeros(step.known_dimension), []
    for t, (alpha0, eta) in enumerate(step.schedule):
        # Eq. (10.1) averages moments of the table of the current rows
        row_model = rows_as_model(step, step.labels_at(t), r, c, gamma[:, None])
        (a_u, delta, common, independent, *orthogonal), error = _converged_averages(step, row_model)
        a_zeta, n_c, n_i = np.array(orthogonal), common / alpha0, independent / alpha0
        decay_factor = step.decay_factor(t)
        # the gradient, as its length times its cosines
        gradient = a_u * gamma + complement_root(gamma[:, None]) @ a_zeta
        gradient_norm = np.sqrt(a_u**2 + a_zeta @ a_zeta + n_c + n_i + delta**2 * c)
        gradient[np.abs(gradient) < 1e-14 * gradient_norm] = 0  # rounding of what is 0 by symmetry
        rate = eta * step.readout.values[0]
        # Eq. (10.2)
        cosines_by_length = decay_factor * r * gamma + rate * gradient
        r = float(np.sqrt((decay_factor * r + rate * a_u) ** 2 + rate**2 * (a_zeta @ a_zeta + n_c)))
        gamma = cosines_by_length / r if r else np.zeros_like(gamma)
        c = float(c * (decay_factor + rate * delta) ** 2 + rate**2 * n_i)  # Eq. (10.3)
        rows_after_step = AfterStep(
            alpha0=alpha0,
            eta=eta,
            r=r,
            c=c,
            gamma=tuple(gamma.tolist()),
            weight_cosines=tuple((r * gamma / np.sqrt(r**2 + c)).tolist()),
            gradient_cosines=tuple((np.sign(rate) * gradient / (gradient_norm or 1.0)).tolist()),
            quadrature_error=error,
        )
        rows_by_step.append(rows_after_step)
    return tuple(rows_by_step)


def rows_as_model(
    step: Step, step_labels: LabelLaw, r: Any, c: float, gamma: Array
) -> SpikedRandomFeatures:
    """Rows before a step as an sRF with these ``step_labels``, of loadings r and ``gamma`` (D, K).

    Standard Gaussian inputs of the steps' full dimension are given to a target of fewer directions,
    so that gamma has a cosine for the directions of every step's target.
    """
    step_target, neuron_bias = step_labels.target, step.bias.values[0]
    standard_inputs = GaussianMixture(means=np.zeros((1, step.known_dimension)))
    is_padded = step.inputs is None and step_target.dimension < step.known_dimension
    return SpikedRandomFeatures(
        student=step.student,
        target=step_target,
        inputs=standard_inputs if is_padded else step.inputs,
        r=r,
        c=c,
        gamma=gamma,
        bias=neuron_bias,
        noise=step_labels.noise,
        label_noise=step_labels.added,
    )


def _converged_averages(step: Step, row_model: SpikedRandomFeatures) -> tuple[Array, float]:
    """Averages of Eq. (10.1) over ``row_model``, and their last change, relative to the largest.

    The rule for kappa is refined until they converge.
    """
    kappa_averages = partial(_averages, step, row_model)
    if not row_model.r:  # nothing depends on kappa
        return kappa_averages(Rule(np.zeros(1), np.ones(1))), 0.0

    averages_tol = 1e-11  # errors accumulate over the steps
    settled_averages = settle(rules(row_model), kappa_averages, largest_change, averages_tol)
    if not settled_averages.converged:
        accuracy = f"to {averages_tol:g} (last change {settled_averages.change:.1e})"
        raise QuadratureError(f"the averages over kappa after a step did not settle {accuracy}")
    return settled_averages.value, settled_averages.change


def _averages(step: Step, rows: SpikedRandomFeatures, kappa_rule: Rule) -> Array:
    """Averages of Eq. (10.1) over the ``rows`` by ``kappa_rule`` for kappa.

    a_u along the spike, the scaling delta of the bulk, alpha_t n_c of the noise common to all rows,
    alpha_t n_i of the noise independent for each row, and the K' a_zeta orthogonal to the spike.
    """
    step_table = tabulate(rows, kappa_rule)
    mean_curvature, slope_variance = slope_statistics(
        step.student, rows.geometry.r[0] @ step_table.kappa + rows.bias, rows.c
    )
    mu1, kappa_weights = step_table.mu1[0], step_table.weights
    kappa_residual = step_table.h - step.readout.values[0] * step_table.offsets[0]
    rho2 = kappa_residual**2 + rows.labels.conditional_variance(step_table.h, step_table.spread)
    spike_averages = (
        np.array([kappa_residual * mean_curvature, rho2 * mu1**2, rho2 * slope_variance])
        @ kappa_weights
    )
    # averages of rho mu_1 along the spike and orthogonal to it
    regressor_residual = step_table.target_parts - step.readout.values[0] * step_table.regressors[0]
    sample_force = step_table.per_part(kappa_weights) * regressor_residual
    a_u, *a_zeta = sample_force @ step_table.regressors[1:].T
    return np.array([a_u, *spike_averages, *a_zeta])


def slope_statistics(student: Activation, shift: Array, c: float) -> tuple[Array, Array]:
    """Moments E sigma'' and Var sigma' of (10.1) at ``shift`` + sqrt(c) z, shaped as ``shift``."""
    slope_moment, slope_rest = student.slope_moments_at(shift, c)[[1, 4]]
    return slope_moment / np.sqrt(c), slope_moment**2 + slope_rest

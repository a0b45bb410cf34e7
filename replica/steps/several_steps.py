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

import numpy as np

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite
from solvers.successive_refinement import largest_change, settle

from ..equivalence import rules, tabulate
from ..errors import InvalidArgument, answering
from ..problem import (
    Activation,
    GaussianMixture,
    LabelLaw,
    SpikedRandomFeatures,
    check_fixed_alpha0,
    complement_root,
)
from .step_fields import Step, check_is_step

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

    settled_features = settle(refinements, _feature_kernels, relative_change, tol)
    return replace(settled_features.candidate, law_error=settled_features.change)


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
    readouts, readout_shares = readout_values(step, count)
    row_changes = np.array([_row_changes(step, bias) for bias in step.bias.values])
    spike, stretch, noise = row_changes.T[..., None]  # (biases, 1)
    r = (readouts * spike).ravel()
    row_scale = step.decay_factor(0) + readouts * stretch
    c = (row_scale**2 + (readouts * noise) ** 2).ravel()  # Eq. (2.3)
    fractions = np.multiply.outer(step.bias.fractions, readout_shares).ravel()
    biases = np.repeat(step.bias.values, len(readouts))
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
    mean_kernel = np.einsum("a,ai,aj->ij", pi, m.mean, m.mean)
    linear_kernel = np.einsum("a,ai,aj->ij", pi, m.first, m.first)
    root = np.sqrt(weights)
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


@answering
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
    check_fixed_alpha0(step)
    for name in ("readout", "bias"):
        law_of_field = getattr(step, name)
        if len(law_of_field.values) != 1:
            allowed = "a single value where there are several steps: with several values of the "
            allowed += f"{name} every group of neurons has a spike of its own, which the theory "
            allowed += "does not follow beyond the first step (validation.trajectory simulates it)"
            raise InvalidArgument(name, law_of_field.continuous or law_of_field.values, allowed)
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
        last, bias = after_each_step(step)[-1], step.bias.values[0]
        return step.features(r=last.r, c=last.c, gamma=np.array(last.gamma), bias=bias)
    model = features_after_one_step(step, tol, most)
    if model.law_error > 1e-4:  # about the width of a line in a plot
        warnings.warn(
            f"{len(model.r)} groups stand for the readout's law with an error "
            f"of {model.law_error:.1e}: its tails are too heavy, or the step too large, for {most}",
            stacklevel=2,
        )
    return model


@lru_cache(maxsize=64)
def _all_steps(step: Step) -> tuple[AfterStep, ...]:
    """Rows after every step, in order.  Eqs. (10.1)-(10.3)"""
    r, c, gamma, rows_by_step = 0.0, 1.0, np.zeros(step.known_dimension), []
    for t, (alpha0, eta) in enumerate(step.schedule):
        # Eq. (10.1) averages moments of the table of the current rows
        model = _rows_as_model(step, step.labels_at(t), r, c, gamma)
        (a_u, delta, common, independent, *orthogonal), error = _converged_averages(step, model)
        a_zeta, n_c, n_i = np.array(orthogonal), common / alpha0, independent / alpha0
        decay_factor = step.decay_factor(t)
        # the gradient, as its length times its cosines
        gradient = a_u * gamma + complement_root(gamma[:, None]) @ a_zeta
        length = np.sqrt(a_u**2 + a_zeta @ a_zeta + n_c + n_i + delta**2 * c)
        gradient[np.abs(gradient) < 1e-14 * length] = 0  # rounding of what is 0 by symmetry
        rate = eta * step.readout.values[0]
        # Eq. (10.2)
        cosines_by_length = decay_factor * r * gamma + rate * gradient
        r = float(np.sqrt((decay_factor * r + rate * a_u) ** 2 + rate**2 * (a_zeta @ a_zeta + n_c)))
        gamma = cosines_by_length / r if r else np.zeros_like(gamma)
        c = float(c * (decay_factor + rate * delta) ** 2 + rate**2 * n_i)  # Eq. (10.3)
        after = AfterStep(
            alpha0=alpha0,
            eta=eta,
            r=r,
            c=c,
            gamma=tuple(gamma.tolist()),
            weight_cosines=tuple((r * gamma / np.sqrt(r**2 + c)).tolist()),
            gradient_cosines=tuple((np.sign(rate) * gradient / (length or 1.0)).tolist()),
            quadrature_error=error,
        )
        rows_by_step.append(after)
    return tuple(rows_by_step)


def _rows_as_model(
    step: Step, labels: LabelLaw, r: float, c: float, gamma: Array
) -> SpikedRandomFeatures:
    """Rows before a step as an sRF with these ``labels``.

    Standard Gaussian inputs of the steps' full dimension are given to a target of fewer directions,
    so that gamma has a cosine for the directions of every step's target.
    """
    target, bias = labels.target, step.bias.values[0]
    standard_inputs = GaussianMixture(means=np.zeros((1, step.known_dimension)))
    padded = step.inputs is None and target.dimension < step.known_dimension
    return SpikedRandomFeatures(
        student=step.student,
        target=target,
        inputs=standard_inputs if padded else step.inputs,
        r=r,
        c=c,
        gamma=gamma[:, None],
        bias=bias,
        noise=labels.noise,
        label_noise=labels.added,
    )


def _converged_averages(step: Step, rows: SpikedRandomFeatures) -> tuple[Array, float]:
    """Averages of Eq. (10.1) over the ``rows``, and their last change, relative to the largest.

    The rule for kappa is refined until they converge.
    """
    averages = partial(_averages, step, rows)
    if not rows.r:  # nothing depends on kappa
        return averages(Rule(np.zeros(1), np.ones(1))), 0.0

    tol = 1e-11  # errors accumulate over the steps
    settled_averages = settle(rules(rows), averages, largest_change, tol)
    if not settled_averages.converged:
        accuracy = f"to {tol:g} (last change {settled_averages.change:.1e})"
        raise QuadratureError(f"the averages over kappa after a step did not settle {accuracy}")
    return settled_averages.value, settled_averages.change


def _averages(step: Step, rows: SpikedRandomFeatures, rule: Rule) -> Array:
    """Averages of Eq. (10.1) over the ``rows`` by ``rule`` for kappa.

    a_u along the spike, the scaling delta of the bulk, alpha_t n_c of the noise common to all rows,
    alpha_t n_i of the noise independent for each row, and the K' a_zeta orthogonal to the spike.
    """
    table = tabulate(rows, rule)
    m2, v1 = slope_statistics(step.student, rows.geometry.r[0] @ table.kappa + rows.bias, rows.c)
    mu1, weights = table.mu1[0], table.weights
    rho = table.h - step.readout.values[0] * table.offsets[0]
    rho2 = rho**2 + rows.labels.conditional_variance(table.h, table.spread)
    along_spike = np.array([rho * m2, rho2 * mu1**2, rho2 * v1]) @ weights
    # averages of rho mu_1 along the spike and orthogonal to it
    residual = table.target_parts - step.readout.values[0] * table.regressors[0]
    sample_force = table.per_part(weights) * residual
    a_u, *a_zeta = sample_force @ table.regressors[1:].T
    return np.array([a_u, *along_spike, *a_zeta])


def slope_statistics(student: Activation, shift: Array, c: float) -> tuple[Array, Array]:
    """Moments E sigma'' and Var sigma' of (10.1) at ``shift`` + sqrt(c) z, shaped as ``shift``."""
    slope_moment, slope_rest = student.slope_moments_at(shift, c)[[1, 4]]
    return slope_moment / np.sqrt(c), slope_moment**2 + slope_rest

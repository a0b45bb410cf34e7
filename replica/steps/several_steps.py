"""Several giant steps, each on a fresh batch: (alpha_t, eta_t) -> (r, c, gamma) after each.
docs/theory.md 10 (ext).

Before step t every row is r u + sqrt(c) w_i: a spike r u that all rows share, u unit with
cosines gamma to the target's directions, and a bulk of variance c.  The gradient adds to the
spike a part along u, a part along the target's other directions and a noise common to all rows;
it rescales the bulk and adds independent noise to it.  The result is again of this form, so that
one recursion serves every step.  At initialisation r = 0, c = 1 and gamma = 0: the spike is
empty, the whole target is in the other directions, and the first step is that of docs/theory.md 2.

The bulk is taken as isotropic and independent of the batches before, as in docs/theory.md 2; in the
network it keeps a row covariance (docs/theory.md 15), which several steps accumulate.
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import Rule
from solvers.settle import largest_change, settle

from ..equivalence import rules, tabulate
from ..errors import InvalidArgument
from ..problem import Activation, GaussianMixture, LabelLaw, SpikedRandomFeatures, remainder
from .one_step import GROUPS, features_after_one_step
from .step import Step, check_is_step


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
        Cosines of the spike with the directions that labels know: those of the targets, or of
        ``inputs``.
    weight_cosines, gradient_cosines : tuple of D floats
        Cosines with these directions of a row, and of the step it has just made; 0
        where that is none.
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


def after_each_step(step: Step) -> tuple[AfterStep, ...]:
    """The rows after every step of ``step``, in order.  Eqs. (10.1)-(10.3)

    Parameters
    ----------
    step : GradientStep
        With one value of the readout and one of the bias; any number of steps, of target
        directions, any activation and noise.

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
    for name in ("readout", "bias"):
        if len(getattr(step, name).values) != 1:
            raise InvalidArgument(
                name,
                getattr(step, name).continuous or getattr(step, name).values,
                f"a single value where there are several steps: with several values of the {name} "
                "every group of neurons has a spike of its own, which the theory does not follow "
                "beyond the first step (validation.trajectory simulates it)",
            )
    step.student.slope_moments(step.bias.values[0])  # refuses a jump
    return _all_steps(step)


def features_after_steps(
    step: Step, tol: float = 1e-6, most: int = GROUPS[-1]
) -> SpikedRandomFeatures:
    """The features of width 1 after the last step of ``step``, one or several, with a warning where
    the ``most`` groups are too few for the readout's law: losses other than the square are solved
    to 1e-6."""
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
    """The rows after the first step, the second and so on.  Eqs. (10.1)-(10.3)"""
    r, c, gamma, rows = 0.0, 1.0, np.zeros(step.known), []
    for t, (alpha0, eta) in enumerate(step.schedule):
        # the moments that Eq. (10.1) averages are those of the rows' table
        now = _state(step, step.labels_at(t), r, c, gamma)
        (a_u, delta, common, own, *rest), error = _settled_averages(step, now)
        a_zeta, n_c, n_i, kept = np.array(rest), common / alpha0, own / alpha0, step.kept(t)
        towards = a_u * gamma + remainder(gamma[:, None]) @ a_zeta  # the gradient's cosines ...
        length = np.sqrt(a_u**2 + a_zeta @ a_zeta + n_c + n_i + delta**2 * c)  # ... times this
        push = eta * step.readout.values[0]
        # Eq. (10.2)
        cosines_by_length = kept * r * gamma + push * towards
        r = float(np.sqrt((kept * r + push * a_u) ** 2 + push**2 * (a_zeta @ a_zeta + n_c)))
        gamma = cosines_by_length / r if r else np.zeros_like(gamma)
        c = float(c * (kept + push * delta) ** 2 + push**2 * n_i)  # Eq. (10.3), c = s^2 + nu
        after = AfterStep(
            alpha0=alpha0,
            eta=eta,
            r=r,
            c=c,
            gamma=tuple(gamma.tolist()),
            weight_cosines=tuple((r * gamma / np.sqrt(r**2 + c)).tolist()),
            gradient_cosines=tuple((np.sign(push) * towards / (length or 1.0)).tolist()),
            quadrature_error=error,
        )
        rows.append(after)
    return tuple(rows)


def _state(step: Step, labels: LabelLaw, r: float, c: float, gamma: Array) -> SpikedRandomFeatures:
    """Rows before a step as a model of these ``labels``, on all coordinates that those of some step
    know."""
    target, inputs, bias = labels.target, step.inputs, step.bias.values[0]
    if target.dimension < step.known and inputs is None:
        inputs = GaussianMixture(means=np.zeros((1, step.known)))
    return SpikedRandomFeatures(
        student=step.student,
        target=target,
        inputs=inputs,
        r=r,
        c=c,
        gamma=gamma[:, None],
        bias=bias,
        noise=labels.noise,
        label_noise=labels.added,
    )


def _settled_averages(step: Step, now: SpikedRandomFeatures) -> tuple[Array, float]:
    """The averages of Eq. (10.1) over the rows ``now``, and their change, relative to the largest,
    at the last refinement of the rule for kappa."""
    averages = partial(_averages, step, now)
    if not now.r:  # nothing depends on kappa
        return averages(Rule(np.zeros(1), np.ones(1))), 0.0

    tol = 1e-11  # each step passes its errors on to the next
    settled = settle(rules(now), averages, largest_change, tol)
    if not settled.converged:
        raise QuadratureError(
            f"the averages over kappa after a step did not settle to {tol:g} "
            f"(last change {settled.change:.1e})"
        )
    return settled.value, settled.change


def _averages(step: Step, now: SpikedRandomFeatures, rule: Rule) -> Array:
    """The averages of Eq. (10.1) over the rows ``now`` by ``rule`` for kappa: a_u along the spike,
    the stretch delta of the bulk, alpha_t times the noises n_c, common to all rows, and n_i, of
    each row's own, and a_zeta across the spike (K' of them)."""
    table = tabulate(now, rule)
    m2, v1 = slope_statistics(step.student, now.geometry.r[0] @ table.kappa + now.bias, now.c)
    mu1, w = table.mu1[0], table.weights
    rho = table.h - step.readout.values[0] * table.offsets[0]
    rho2 = rho**2 + now.labels.conditional_variance(table.h, table.spread)
    numbers = np.array([rho * m2, rho2 * mu1**2, rho2 * v1]) @ w
    # of the force on a sample, rho mu_1, along the spike and across it
    force = table.per_part(w) * (table.target_parts - step.readout.values[0] * table.regressors[0])
    a_u, *a_zeta = force @ table.regressors[1:].T
    return np.array([a_u, *numbers, *a_zeta])


def slope_statistics(student: Activation, shift: Array, c: float) -> tuple[Array, Array]:
    """E sigma'' and Var sigma' at shift + sqrt(c) z, arrays like ``shift``.  Eq. (10.1)"""
    first, rest = student.slope_moments_at(shift, c)[[1, 4]]
    return first / np.sqrt(c), first**2 + rest

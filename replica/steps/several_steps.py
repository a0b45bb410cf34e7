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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from solvers.quadrature import QuadratureError, refine
from solvers.results import Array
from solvers.rules import Rule
from solvers.settle import settle

from ..equivalence import rules, tabulate
from ..errors import InvalidArgument
from ..problem import LAYERS, Activation, ConditionalMoments, SpikedRandomFeatures, remainder
from .one_step import SpikedParameters, after_one_step
from .step import Step

TOLERANCE = 1e-11  # on the change of an average between two rules
SLOPE_TOLERANCE = 1e-11, 1e-9  # with a student's own derivative, or differences for it
FEW = 8  # groups for the gradients of a continuous law, which differ in sign alone
BLOCK = 1024  # values of kappa at which slopes are integrated together


@dataclass(frozen=True)
class AfterStep:
    """The rows after a step: the shared spike r u and the bulk of variance c.

    Attributes
    ----------
    alpha0, eta : float
        Samples per dimension and rate of the step.
    r : float
        Length of the spike.
    c : float
        Bulk variance.
    gamma : tuple of T floats
        Cosines of the spike with the target's directions.
    weight_cosines, gradient_cosines : tuple of T floats
        Cosines with the target's directions of a row, and of the step it has just made; 0
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


class _Averages(NamedTuple):
    """Eq. (10.1), the noises n_c and n_i times alpha_t: along_spike = a_u, across = a_zeta (K',),
    stretch = delta."""

    along_spike: float
    across: Array
    stretch: float
    common_noise: float
    own_noise: float


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
    >>> step = GradientStep(student="tanh", target="sin", steps=[(2, 1), (2, 1), (2, 1)])
    >>> for after in after_each_step(step):
    ...     print(f"{after.r:.4f} {after.c:.4f} {after.gamma[0]:.4f}")
    0.4629 1.0211 0.7937
    0.6519 0.9690 0.9096
    0.7848 0.8997 0.9538
    """
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
    return tuple(_walk(step))


def first_step(step: Step) -> FirstStep:
    """Direction and cosines of the neurons after the first step of ``step``, for any law of the
    readout and of the bias.  docs/theory.md 2, 11

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).

    Examples
    --------
    >>> step = GradientStep(
    ...     student="relu", target="(4*z1 + z1**2 + z2)/2", readout=[-1, 1], alpha0=1, eta=2
    ... )
    >>> found = first_step(step)
    >>> found.direction.round(3).tolist(), found.gradients.round(3).tolist()
    ([0.97, 0.243], [[-0.527, -0.132], [0.527, 0.132]])
    """
    alpha0, eta = step.schedule[0]
    single = replace(step, alpha0=alpha0, eta=eta, steps=())
    values, shares = step.readout.discretise(FEW)
    # what a step adds is all that is left of a row where the rate is large
    large = replace(single, eta=1e12, readout=(values.tolist(), shares.tolist()))
    after, added = after_one_step(single), after_one_step(large)
    first = after_one_step(replace(single, alpha0=np.inf, eta=1.0)).gamma
    direction = np.array(first, dtype=float).reshape(-1)
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


def _walk(step: Step) -> Iterator[AfterStep]:
    """The recursion: states after each step."""
    r, c, gamma = 0.0, 1.0, np.zeros(step.target.dimension)
    for alpha0, eta in step.schedule:
        mean, error = _settled(step, _rows(step, r, c, gamma))
        n_c, n_i = mean.common_noise / alpha0, mean.own_noise / alpha0  # Eq. (10.1)
        a_u, a_zeta, delta = mean.along_spike, mean.across, mean.stretch
        towards = a_u * gamma + remainder(gamma[:, None]) @ a_zeta  # the gradient's cosines ...
        length = np.sqrt(a_u**2 + a_zeta @ a_zeta + n_c + n_i + delta**2 * c)  # ... times this
        push = eta * step.readout.values[0]
        # Eq. (10.2)
        S_towards = r * gamma + push * towards
        r = float(np.sqrt((r + push * a_u) ** 2 + push**2 * (a_zeta @ a_zeta + n_c)))
        gamma = S_towards / r if r else np.zeros_like(gamma)
        c = float(c * (1 + push * delta) ** 2 + push**2 * n_i)  # Eq. (10.3), c = s^2 + nu
        yield AfterStep(
            alpha0=alpha0,
            eta=eta,
            r=r,
            c=c,
            gamma=tuple(gamma.tolist()),
            weight_cosines=tuple((r * gamma / np.sqrt(r**2 + c)).tolist()),
            gradient_cosines=tuple((np.sign(push) * towards / (length or 1.0)).tolist()),
            quadrature_error=error,
        )


def _rows(step: Step, r: float, c: float, gamma: Array) -> SpikedRandomFeatures:
    """The rows as spiked random features, whose tables hold what Eq. (10.1) averages."""
    return SpikedRandomFeatures(
        student=step.student,
        target=step.target,
        r=r,
        c=c,
        gamma=gamma[:, None],
        noise=step.noise,
        label_noise=step.label_noise,
        bias=step.bias.values[0],
    )


def _settled(step: Step, now: SpikedRandomFeatures) -> tuple[_Averages, float]:
    """The averages of Eq. (10.1), and their change at the last refinement."""
    if not now.r:  # nothing depends on kappa
        return _averages(step, now, Rule(np.zeros(1), np.ones(1))), 0.0
    settled = settle(
        rules(now), lambda rule: _averages(step, now, rule), _relative_change, TOLERANCE
    )
    if not settled.met:
        raise QuadratureError(
            f"the averages over kappa after a step did not settle to {TOLERANCE:g} "
            f"(last change {settled.change:.1e})"
        )
    return settled.value, settled.change


def _relative_change(before: _Averages, now: _Averages) -> float:
    """Largest change of an average, relative to the largest average."""
    values = np.hstack(now)
    return float(np.abs(values - np.hstack(before)).max() / np.abs(values).max())


def _averages(step: Step, now: SpikedRandomFeatures, rule: Rule) -> _Averages:
    """Eq. (10.1) on the nodes of ``rule``."""
    table = tabulate(now, rule)
    kappa, weights = table.kappa[0], table.weights
    mu0, mu1 = table.offsets[0], table.mu1[0]
    shift = now.geometry.r[0, 0] * kappa + now.geometry.bias[0]
    m2, v1 = slope_statistics(step.student, shift, now.geometry.c[0])
    rho = table.h - step.readout.values[0] * mu0
    given = ConditionalMoments(table.h, table.g, table.spread)
    rho2 = rho**2 + step.step_labels.conditional_variance(given)
    return _Averages(
        along_spike=float((rho * kappa * mu1) @ weights),
        across=(table.g * mu1) @ weights,
        stretch=float((rho * m2) @ weights),
        common_noise=float((rho2 * mu1**2) @ weights),
        own_noise=float((rho2 * v1) @ weights),
    )


def slope_statistics(student: Activation, s: Array, c: float) -> tuple[Array, Array]:
    """E sigma'' and Var sigma' at s + sqrt(c) z, arrays of the shape of ``s`` (n,).

    By parts, E sigma'' = E (z^2 - 1) sigma / c, so that sigma and sigma' are enough.

    Raises
    ------
    QuadratureError
        If the integrals do not settle.

    Examples
    --------
    >>> from replica import activation
    >>> m2, v1 = slope_statistics(activation("he3"), np.array([0.5]), 1.0)
    >>> m2.round(9).tolist(), v1.round(9).tolist()  # 6 s, 9 (4 s^2 + 2)
    ([3.0], [27.0])
    """
    root = np.sqrt(c)
    mu1 = student.moments(s, c).first / root
    breaks = (np.concatenate([LAYERS, student.kinks]) - s[:, None]) / root
    family = "gauss-legendre" if student.kinks else "trapezoid, gauss-legendre"
    tol = SLOPE_TOLERANCE[student.derivative is None]
    blocks = []
    for i in range(0, s.size, BLOCK):
        block = slice(i, i + BLOCK)

        def compute(rule: Rule, block: slice = block) -> tuple[Array, Array]:
            slope = student.slope(s[block, None] + root * rule.nodes)
            spread = ((slope - mu1[block, None]) ** 2 * rule.weights).sum(axis=-1)
            power = (slope**2 * rule.weights).sum(axis=-1)
            return spread, power + 1e-8 * power.max() + 1e-300

        try:
            blocks.append(refine(compute, breaks[block], rule=family, tol=tol).value)
        except QuadratureError as error:
            raise QuadratureError(f"activation {student.name}: {error}") from None
    return student.second_hermite(s, c) / c, np.concatenate(blocks)

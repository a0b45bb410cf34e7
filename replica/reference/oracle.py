"""A point to a number of digits: the tables are refined until the solution on them stands still."""

from dataclasses import dataclass, replace
from typing import Any

import mpmath
from mpmath import mp

from solvers.results import ConvergenceError

from ..errors import InvalidArgument
from ..observables import solve as solve_in_floats
from ..problem import ACTIVATIONS, Activation, SpikedRandomFeatures, check_model
from ..steps import GradientStep, model_of
from .equations import Unknowns, equations, relative_change, solve_on
from .table import CLOSED, GUARD, tabulate

HALVINGS = range(4, 10)  # of the step in kappa, from 1: down to 1/512


@dataclass(frozen=True)
class ReferenceSolution(Unknowns):
    """The theory at one point, as numbers of ``digits`` + 20 digits.

    Attributes
    ----------
    residual : mpf
        Largest relative violation of (4.1)-(4.10) by these numbers.
    change : mpf
        Largest relative change of any of them when the quadrature steps were last halved.
    nodes : int
        Size of the rule over kappa.
    """

    residual: Any = mp.inf
    change: Any = mp.inf
    nodes: int = 0


def solve(
    model: SpikedRandomFeatures | GradientStep,
    *,
    alpha: float,
    lam: float,
    beta: float | None = None,
    digits: int = 30,
) -> ReferenceSolution:
    """Errors and overlaps at one point, to about ``digits`` - 8 digits.  docs/theory.md 4

    Parameters
    ----------
    model : GradientStep or SpikedRandomFeatures
        With a student among tanh, erf, sin, relu and a target among sin, tanh, relu, sign,
        linear.
    alpha, lam, beta : float
        As in :func:`replica.solve`.
    digits : int
        16 or more.

    Raises
    ------
    InvalidArgument
        For any other student or target, several groups of neurons or spikes, any field beyond
        these, a kinked target with abs(gamma) = 1 (its kink would meet a trapezoidal rule), or a
        number out of range.
    ConvergenceError
        If Newton's iteration fails, or the answer still moves at the finest quadrature.

    Examples
    --------
    >>> from replica import GradientStep, reference
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> exact = reference.solve(step, alpha=0.9, lam=0.1, beta=1.0)
    >>> round(float(exact.test_error), 7), bool(exact.change < 1e-22)
    (0.0425039, True)
    """
    if not (isinstance(digits, int) and digits >= 16):
        raise InvalidArgument("digits", digits, "an integer, 16 or more")
    model = check_model(model_of(model, beta))
    _check(model)
    start = solve_in_floats(model, alpha=alpha, lam=lam).overlaps._asdict()
    with mpmath.workdps(digits + GUARD):
        point = mp.mpf(alpha), mp.mpf(lam)
        # eight digits may still change at the last halving: each squares the error
        settled = mp.mpf(10) ** (8 - digits)
        values = Unknowns(**{name: mp.mpf(value.item()) for name, value in start.items()})
        for level in HALVINGS:
            previous, table = values, tabulate(model, digits, level)
            values = solve_on(table, *point, previous)
            change = relative_change(previous, values)
            if change < settled:
                break
        residual = relative_change(equations(table, *point, values), values)
        solution = ReferenceSolution(
            **vars(values), residual=residual, change=change, nodes=len(table.kappa)
        )
        if max(residual, change) >= settled:
            raise ConvergenceError(
                f"the reference is not settled: residual {mp.nstr(residual, 2)}, last change "
                f"{mp.nstr(change, 2)} with {solution.nodes} nodes",
                solution,
            )
    return solution


def _check(model: SpikedRandomFeatures) -> None:
    """Refuse a model that the reference has no formula for."""
    fields = ("student", "target", "r", "c", "gamma", "beta", "noise")
    plain = SpikedRandomFeatures(**{name: getattr(model, name) for name in fields})
    if model.rows is not None or replace(model, origin=None) != plain:
        allowed = f"given by no more than {', '.join(fields)} for the reference"
        raise InvalidArgument("model", model, allowed)
    for name in ("r", "c", "gamma"):
        if not isinstance(getattr(model, name), float):
            raise InvalidArgument(name, getattr(model, name), "one number for the reference")
    for name, known in (
        ("student", ("tanh", "erf", "sin", "relu")),
        ("target", ("sin", "tanh", "relu", "sign", "linear")),
    ):
        given: Activation = getattr(model, name)
        if given.name not in known or given != ACTIVATIONS[given.name]:
            raise InvalidArgument(name, given, f"one of {', '.join(known)} for the reference")
    if model.target.name in CLOSED and abs(model.gamma) == 1:
        raise InvalidArgument("gamma", model.gamma, f"inside (-1, 1) for target {model.target}")

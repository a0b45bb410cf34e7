"""A point to a number of digits: the tables are refined until the solution on them stands still.

A table has the moments of Eqs. (3.2)-(3.3) at the nodes of a trapezoidal rule.  On it Eqs.
(4.1)-(4.11) for one group of neurons are solved as they stand.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from itertools import accumulate, repeat
from operator import mul
from typing import Any, NamedTuple

import mpmath
from mpmath import mp

from solvers.results import ConvergenceError

from ..errors import InvalidArgument
from ..observables import solve as solve_in_floats
from ..problem import ACTIVATIONS, Activation, SpikedRandomFeatures, refuse_options
from ..steps import GradientStep, model_of

GUARD = 20  # digits carried beyond those asked for: mu_2^2 is a difference, and V2 may be 1/lam

Moments = list[tuple[Any, Any, Any]]  # (E f, E z f, E f^2) at each node kappa


def gaussian_rule(node_step: Any, decimal_digits: int) -> tuple[list[Any], list[Any]]:
    """Nodes ``node_step`` * j and weights of a trapezoidal rule for a standard Gaussian, whose mass
    beyond the last node is below 10^-(decimal_digits + 10)."""
    last_node = int(mp.ceil(mp.sqrt(2 * mp.log(10) * (decimal_digits + 10)) / node_step))
    rule_nodes = [node_step * j for j in range(-last_node, last_node + 1)]
    return rule_nodes, [node_step * mp.npdf(node) for node in rule_nodes]


def _odd_moments(
    odd_f: Callable[[Any], Any], kappa_slope: Any, variance: Any, kappa_step: Any, digits: int
) -> Moments:
    """(E f, E z f, E f^2) of f(kappa_slope kappa + sqrt(variance) z), f = ``odd_f``, at the nodes
    kappa of gaussian_rule(kappa_step, digits).

    The step in z is h = 2 ``kappa_step``.  The nodes z = h j - shift move with kappa so that f is
    only ever needed at multiples of one ``unit``; their weights are those at h j times
    exp(h j shift - shift^2 / 2).
    """
    kappa, _ = gaussian_rule(kappa_step, digits)
    if variance == 0:
        kappa_values = [odd_f(kappa_slope * kappa_x) for kappa_x in kappa]
        return [(f, mp.zero, f**2) for f in kappa_values]
    z, centred_weights = gaussian_rule(2 * kappa_step, digits)
    root, last, right_moments = mp.sqrt(variance), len(z) // 2, []
    unit = 2 * kappa_step * root
    function_value = cache(lambda index: odd_f(index * unit))
    for s in (kappa_slope * kappa_x for kappa_x in kappa[len(kappa) // 2 :]):
        middle = int(mp.nint(s / unit))
        shift = s / root - 2 * kappa_step * middle
        first_tilt, ratio = mp.exp(z[0] * shift - shift**2 / 2), mp.exp(2 * kappa_step * shift)
        tilt = accumulate(repeat(ratio, 2 * last), mul, initial=first_tilt)
        function_row = [function_value(i) for i in range(middle - last, middle + last + 1)]
        f_terms = _product(centred_weights, list(tilt), function_row)
        odd_mean = mp.fsum(f_terms)
        moment, odd_power = mp.fdot(z, f_terms), mp.fdot(f_terms, function_row)
        right_moments.append((odd_mean, moment - shift * odd_mean, odd_power))
    left = [(-odd_mean, moment, odd_power) for odd_mean, moment, odd_power in right_moments[:0:-1]]
    return left + right_moments


def _relu_moments(s: Any, variance: Any) -> tuple[Any, Any, Any]:
    """(E f, E z f, E f^2) of f(s + sqrt(variance) z), f(x) = max(x, 0)."""
    root_variance = mp.sqrt(variance)
    above_zero = mp.erfc(-s / (root_variance * mp.sqrt(2))) / 2  # P(s + sqrt(variance) z > 0)
    relu_density = mp.exp(-(s**2) / (2 * variance)) / mp.sqrt(2 * mp.pi)
    relu_mean = s * above_zero + root_variance * relu_density
    return relu_mean, root_variance * above_zero, s * relu_mean + variance * above_zero


def _sign_moments(s: Any, variance: Any) -> tuple[Any, Any, Any]:
    """(E f, E z f, E f^2) of f(s + sqrt(variance) z), f(x) = sign x."""
    sign_argument = s / mp.sqrt(variance)
    return mp.erf(sign_argument / mp.sqrt(2)), 2 * mp.npdf(sign_argument), mp.one


ODD = {"tanh": mp.tanh, "erf": mp.erf, "sin": mp.sin, "linear": mp.mpf}
CLOSED = {"relu": _relu_moments, "sign": _sign_moments}


class ReferenceTable(NamedTuple):
    """Moments of Eqs. (3.2)-(3.3) at the nodes kappa, with c, beta and noise of the model."""

    weights: list[Any]
    kappa: list[Any]
    mu0: list[Any]
    mu1: list[Any]
    mu2sq: list[Any]
    h: list[Any]
    g: list[Any]
    k: list[Any]
    c: Any
    beta: Any
    noise: Any


@lru_cache(maxsize=32)
def tabulate(model: SpikedRandomFeatures, digits: int, step_level: int) -> ReferenceTable:
    """The table with step 2^-step_level in kappa.  To be called at digits + GUARD digits."""
    kappa_step = mp.mpf(2) ** -step_level
    kappa, weights = gaussian_rule(kappa_step, digits)

    def kappa_moments(name: str, slope: Any, variance: Any) -> Moments:
        if name in CLOSED:
            return [CLOSED[name](slope * x, variance) for x in kappa]
        return _odd_moments(ODD[name], slope, variance, kappa_step, digits)

    c, gamma = mp.mpf(model.c), mp.mpf(model.gamma)
    # Eq. (3.2)
    student_moments = kappa_moments(model.student.name, mp.mpf(model.r), c)
    mu0 = [mean for mean, _, _ in student_moments]
    mu1 = [first / mp.sqrt(c) for _, first, _ in student_moments]
    mu2sq = [s[2] - a**2 - c * b**2 for s, a, b in zip(student_moments, mu0, mu1, strict=True)]
    # Eq. (3.3)
    target_moments = kappa_moments(model.target.name, gamma, 1 - gamma**2)
    h, g, k = (list(moment_column) for moment_column in zip(*target_moments, strict=True))
    beta, noise = mp.mpf(model.beta), mp.mpf(model.noise)
    return ReferenceTable(weights, kappa, mu0, mu1, mu2sq, h, g, k, c, beta, noise)


@dataclass(frozen=True)
class Unknowns:
    """Unknowns of the equations, and the errors that follow, as numbers of mpmath.

    Attributes
    ----------
    test_error, train_error : mpf
        Eq. (4.11)
    V1, V2, m, theta, psi, Q1, q2 : mpf
        The overlaps of docs/theory.md 4.
    """

    test_error: Any = mp.inf
    train_error: Any = mp.inf
    V1: Any = mp.inf
    V2: Any = mp.inf
    m: Any = mp.zero
    theta: Any = mp.zero
    psi: Any = mp.zero
    Q1: Any = mp.zero
    q2: Any = mp.zero


def equations(t: ReferenceTable, alpha: Any, lam: Any, u: Unknowns) -> Unknowns:
    """Map of all unknowns at A = 1: each from its own equation, with the others as in ``u``."""
    c, beta = t.c, t.beta
    node_rows = list(zip(t.kappa, t.mu0, t.mu1, t.mu2sq, t.h, t.g, t.k, strict=True))
    R = [1 / (1 + mu1**2 * u.V1 + mu2sq * u.V2) for _, _, mu1, mu2sq, *_ in node_rows]  # Eq. (4.1)
    # Eqs. (4.2)-(4.3)
    V1_hat = alpha / beta * _mean(t, t.mu1, t.mu1, R)
    V2_hat = alpha / beta * _mean(t, t.mu2sq, R)
    tau = beta * c * u.V2
    P = 1 / (1 + V1_hat * tau)
    G = V1_hat * P
    # Eq. (4.5); where mu_0 = 0, any m solves its equation, and the least-norm one is 0
    C = [mu0 * u.m + mu1 * kappa * u.theta for kappa, mu0, mu1, *_ in node_rows]
    misfit = [r * (h - fit_C) for r, h, fit_C in zip(R, t.h, C, strict=True)]
    theta_hat = _mean(t, t.kappa, t.mu1, misfit)
    mu0_power = _mean(t, t.mu0, t.mu0, R)
    m = u.m + _mean(t, t.mu0, misfit) / mu0_power if mu0_power else mp.zero
    p_hat = _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    # Eq. (4.7)
    node_error = [
        k - 2 * fit_C * h + fit_C**2 - 2 * mu1 * u.psi * g + mu1**2 * u.Q1 + mu2sq * u.q2 + t.noise
        for fit_C, (_, _, mu1, mu2sq, h, g, k) in zip(C, node_rows, strict=True)
    ]
    # Eq. (4.8)
    shrunk_error = _product(node_error, R, R)
    X1 = alpha / beta * _mean(t, t.mu1, t.mu1, shrunk_error) + alpha**2 / beta * p_hat**2
    X2 = alpha / beta * _mean(t, t.mu2sq, shrunk_error) + alpha**2 / beta * c * theta_hat**2
    # Eqs. (4.9)-(4.10)
    q2 = u.V2**2 * (X2 + c * P**2 * X1) / (1 - u.V2**2 * c**2 * beta * G**2)
    Q1 = beta * u.V1**2 * (X1 + beta * c * q2 / tau**2)
    return Unknowns(
        test_error=_mean(t, node_error) - t.noise,  # Eq. (4.11)
        train_error=_mean(t, shrunk_error),  # Eq. (4.11)
        V1=tau * P / beta,  # Eqs. (4.3)-(4.4)
        V2=1 / (lam + V2_hat + c * G),
        m=m,
        theta=alpha * c * u.V2 * theta_hat,  # Eq. (4.5)
        psi=alpha * u.V1 * p_hat,  # Eq. (4.6)
        Q1=Q1,
        q2=q2,
    )


def solve_on(oracle_table: ReferenceTable, alpha: Any, lam: Any, start: Unknowns) -> Unknowns:
    """The solution on one table, by Newton's method on all unknowns from ``start``."""
    u_names = ["V1", "V2", "m", "theta", "psi", "Q1", "q2"]
    units = {name: max(abs(getattr(start, name)), 1e-15) for name in u_names}

    def scaled_unknowns(u: Unknowns) -> list[Any]:
        return [getattr(u, name) / unit for name, unit in units.items()]

    def unknowns_at(*x: Any) -> Unknowns:
        return Unknowns(**{name: units[name] * each for name, each in zip(u_names, x, strict=True)})

    def violation(*x: Any) -> list[Any]:
        mapped_unknowns = scaled_unknowns(equations(oracle_table, alpha, lam, unknowns_at(*x)))
        return [after - before for after, before in zip(mapped_unknowns, x, strict=True)]

    # Near alpha = beta the violation may be 1/sqrt(lam) times smaller than the distance.
    mp_tol = mp.mpf(10) ** (GUARD // 2 - mp.dps)
    try:
        root = unknowns_at(*mp.findroot(violation, scaled_unknowns(start), tol=mp_tol, maxsteps=30))
    except (ValueError, ZeroDivisionError) as error:
        raise ConvergenceError(f"Newton's iteration failed: {error}", start) from None
    root_errors = equations(oracle_table, alpha, lam, root)
    return replace(root, test_error=root_errors.test_error, train_error=root_errors.train_error)


def _product(*factors: list[Any]) -> list[Any]:
    """The product of ``factors`` at each node."""
    return [reduce(mul, node_factors) for node_factors in zip(*factors, strict=True)]


def _mean(t: ReferenceTable, *factors: list[Any]) -> Any:
    """E over kappa of the product of ``factors``."""
    return mp.fdot(t.weights, _product(*factors))


def relative_change(old_unknowns: Unknowns, new_unknowns: Unknowns) -> Any:
    """Largest |a - b| / |b|; m, theta and psi count as zeros by symmetry below 1e-15."""
    least_unknowns = {"m": 1e-15, "theta": 1e-15, "psi": 1e-15}
    value_pairs = ((name, getattr(old_unknowns, name), y) for name, y in vars(new_unknowns).items())
    return max(abs(x - y) / max(abs(y), least_unknowns.get(name, 0)) for name, x, y in value_pairs)


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
        Problem with a student among tanh, erf, sin, relu and a target among sin, tanh, relu,
        sign, linear.
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
    model = model_of(model, beta)
    refuse_options(model, "alpha0")
    assert isinstance(model, SpikedRandomFeatures)
    _check(model)
    float_overlaps = solve_in_floats(model, alpha=alpha, lam=lam).overlaps._asdict()
    with mpmath.workdps(digits + GUARD):
        mp_point = mp.mpf(alpha), mp.mpf(lam)
        # eight digits may still change at the last halving: each squares the error
        settled_change = mp.mpf(10) ** (8 - digits)
        values = Unknowns(**{name: mp.mpf(value.item()) for name, value in float_overlaps.items()})
        for halving in HALVINGS:
            previous_unknowns, reference_table = values, tabulate(model, digits, halving)
            values = solve_on(reference_table, *mp_point, previous_unknowns)
            last_change = relative_change(previous_unknowns, values)
            if last_change < settled_change:
                break
        residual = relative_change(equations(reference_table, *mp_point, values), values)
        reference_solution = ReferenceSolution(
            **vars(values), residual=residual, change=last_change, nodes=len(reference_table.kappa)
        )
        if max(residual, last_change) >= settled_change:
            raise ConvergenceError(
                f"the reference is not settled: residual {mp.nstr(residual, 2)}, last change "
                f"{mp.nstr(last_change, 2)} with {reference_solution.nodes} nodes",
                reference_solution,
            )
    return reference_solution


def _check(model: SpikedRandomFeatures) -> None:
    """Refuse a model that the reference has no formula for."""
    plain_fields = ("student", "target", "r", "c", "gamma", "beta", "noise")
    plain_model = SpikedRandomFeatures(**{name: getattr(model, name) for name in plain_fields})
    if model.rows is not None or replace(model, origin=None) != plain_model:
        allowed_model = f"given by no more than {', '.join(plain_fields)} for the reference"
        raise InvalidArgument("model", model, allowed_model)
    for name in ("r", "c", "gamma"):
        if not isinstance(getattr(model, name), float):
            raise InvalidArgument(name, getattr(model, name), "one number for the reference")
    for name, known_names in (
        ("student", ("tanh", "erf", "sin", "relu")),
        ("target", ("sin", "tanh", "relu", "sign", "linear")),
    ):
        given: Activation = getattr(model, name)
        if given.name not in known_names or given != ACTIVATIONS[given.name]:
            raise InvalidArgument(name, given, f"one of {', '.join(known_names)} for the reference")
    if model.target.name in CLOSED and abs(model.gamma) == 1:
        raise InvalidArgument("gamma", model.gamma, f"inside (-1, 1) for target {model.target}")

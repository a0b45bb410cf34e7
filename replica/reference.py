"""The oracle: one point of ridge regression solved again, at 30 digits or more.

Eqs. (3.2)-(3.3) and (4.1)-(4.11) for one group of neurons, typed as they stand and evaluated
with mpmath: it shares no table, rule, moment or rearrangement with the rest of the library,
which lends only the point that Newton's iteration starts from.  Expectations are trapezoidal
sums on a wide interval; their steps are halved until the answer stands still, and the last
change is reported beside the residual of the equations.

Meant for tests: a point takes from one to ten seconds, less where its model was met before.
Importing this module imports mpmath, which ``import replica`` does not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from itertools import accumulate, repeat
from operator import mul
from typing import Any, NamedTuple

import mpmath
from mpmath import mp

from solvers.results import ConvergenceError

from .errors import InvalidArgument
from .observables import solve as solve_in_floats
from .problem import ACTIVATIONS, Activation, SpikedRandomFeatures

GUARD = 20  # digits carried beyond those asked for: mu_2^2 is a difference, and V2 may be 1/lam
FIRST, LAST = 4, 9  # the step in kappa is 2^-FIRST at first, 2^-LAST at most
SPARE = 8  # digits that may still change at the last halving

Moments = list[tuple[Any, Any, Any]]  # (E f, E z f, E f^2) at each node kappa


@dataclass(frozen=True)
class ReferenceSolution:
    """The theory at one point, as numbers of ``digits`` + 20 digits (``mpmath.mpf``).

    Attributes
    ----------
    test_error, train_error : mpf
        Eq. (4.11)
    V1, V2, m, theta, psi, Q1, q2 : mpf
        The overlaps of docs/theory.md 4.
    residual : mpf
        Largest relative violation of (4.1)-(4.10) by these numbers.
    change : mpf
        Largest relative change of any of them when the quadrature steps were last halved.
    nodes : int
        Size of the rule over kappa.
    """

    test_error: Any
    train_error: Any
    V1: Any
    V2: Any
    m: Any
    theta: Any
    psi: Any
    Q1: Any
    q2: Any
    residual: Any
    change: Any
    nodes: int


def solve(
    model: SpikedRandomFeatures, *, alpha: float, lam: float, digits: int = 30
) -> ReferenceSolution:
    """Errors and overlaps at one point, to about ``digits`` - 8 digits.  docs/theory.md 4

    Parameters
    ----------
    model : SpikedRandomFeatures
        With a student among tanh, erf, sin, relu and a target among sin, tanh, relu, sign,
        linear.
    alpha, lam : float
        As in :func:`replica.solve`.
    digits : int
        16 or more.

    Raises
    ------
    InvalidArgument
        For any other student or target, a kinked target with abs(gamma) = 1 (its kink would
        meet a trapezoidal rule), or a number out of range.
    ConvergenceError
        If Newton's iteration fails, or the answer still moves at the finest quadrature.

    Examples
    --------
    >>> from replica import GradientStep, reference
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> exact = reference.solve(model, alpha=0.9, lam=0.1)
    >>> round(float(exact.test_error), 7), bool(exact.change < 1e-22)
    (0.0425039, True)
    """
    if not (isinstance(digits, int) and digits >= 16):
        raise InvalidArgument("digits", digits, "an integer, 16 or more")
    start = solve_in_floats(model, alpha=alpha, lam=lam).overlaps
    _check(model)
    with mpmath.workdps(digits + GUARD):
        point = mp.mpf(alpha), mp.mpf(lam)
        settled = mp.mpf(10) ** (SPARE - digits)
        answers = _Answers(V1=mp.mpf(start.V1.item()), V2=mp.mpf(start.V2.item()))
        for level in range(FIRST, LAST + 1):
            previous, table = answers, _table(model, digits, level)
            answers = _solve_on(table, *point, previous)
            change = _distance(previous, answers)
            if change < settled:
                break
        residual = _distance(_equations(table, *point, answers), answers)
        found = ReferenceSolution(*answers, residual, change, len(table.kappa))
        if max(residual, change) >= settled:
            raise ConvergenceError(
                f"the reference is not settled: residual {mp.nstr(residual, 2)}, last change "
                f"{mp.nstr(change, 2)} with {found.nodes} nodes",
                found,
            )
    return found


def _check(model: SpikedRandomFeatures) -> None:
    """Refuse what this module has no formula for."""
    for name, known in (
        ("student", ("tanh", "erf", "sin", "relu")),
        ("target", ("sin", "tanh", "relu", "sign", "linear")),
    ):
        given: Activation = getattr(model, name)
        if given.name not in known or given != ACTIVATIONS[given.name]:
            raise InvalidArgument(name, given, f"one of {', '.join(known)} for the reference")
    if model.target.name in CLOSED and abs(model.gamma) == 1:
        raise InvalidArgument("gamma", model.gamma, f"inside (-1, 1) for target {model.target}")


# The table


def _rule(step: Any, digits: int) -> tuple[list[Any], list[Any]]:
    """Nodes step * j and weights for a standard Gaussian, whose mass beyond them is below
    10^-(digits + 10)."""
    last = int(mp.ceil(mp.sqrt(2 * mp.log(10) * (digits + 10)) / step))
    nodes = [step * j for j in range(-last, last + 1)]
    return nodes, [step * mp.npdf(x) for x in nodes]


def _odd_moments(
    function: Callable[[Any], Any], slope: Any, variance: Any, step: Any, digits: int
) -> Moments:
    """(E f, E z f, E f^2) of f(slope * kappa + sqrt(variance) z), f odd, at the nodes kappa of
    _rule(step, digits).

    The step in z is h = 2 ``step``.  The nodes z = h j - shift move with kappa so that f is
    only ever needed at multiples of one ``unit``; their weights are those at h j times
    exp(h j shift - shift^2 / 2).  Sums run over integers, numbers scaled by 2^bits, which
    Python multiplies several times faster than mpf.
    """
    kappa, _ = _rule(step, digits)
    if variance == 0:
        values = [function(slope * x) for x in kappa]
        return [(f, mp.zero, f**2) for f in values]
    h, bits = 2 * step, mp.prec
    unit = h * mp.sqrt(variance)

    def scaled(x: Any) -> int:
        return int(mp.nint(mp.ldexp(x, bits)))

    def unscaled(total: int, factors: int) -> Any:
        return mp.ldexp(mp.mpf(total), -factors * bits)

    @cache
    def value(index: int) -> int:
        return scaled(function(index * unit))

    centred = [scaled(w) for w in _rule(h, digits)[1]]
    last = len(centred) // 2
    right: Moments = []
    for s in (slope * x for x in kappa[len(kappa) // 2 :]):
        middle = int(mp.nint(s / unit))
        shift = s / mp.sqrt(variance) - middle * h
        tilt = _powers(scaled(mp.exp(-h * shift)), last, bits)[:0:-1]
        tilt += _powers(scaled(mp.exp(h * shift)), last, bits)
        row = [value(i) for i in range(middle - last, middle + last + 1)]
        terms = [w * t * f for w, t, f in zip(centred, tilt, row, strict=True)]
        norm = mp.exp(-(shift**2) / 2)
        mean = norm * unscaled(sum(terms), 3)
        moment = norm * h * unscaled(sum(map(mul, range(-last, last + 1), terms)), 3)
        power = norm * unscaled(sum(map(mul, terms, row)), 4)
        right.append((mean, moment - shift * mean, power))
    left = [(-mean, moment, power) for mean, moment, power in right[:0:-1]]
    return left + right


def _powers(q: int, last: int, bits: int) -> list[int]:
    """q^0, ..., q^last of a number scaled by 2^bits."""
    return list(accumulate(repeat(q, last), lambda a, b: a * b >> bits, initial=1 << bits))


def _relu_moments(s: Any, variance: Any) -> tuple[Any, Any, Any]:
    """(E f, E z f, E f^2) of f(s + sqrt(variance) z), f(x) = max(x, 0)."""
    root = mp.sqrt(variance)
    above = mp.erfc(-s / (root * mp.sqrt(2))) / 2  # P(s + root z > 0)
    density = mp.exp(-(s**2) / (2 * variance)) / mp.sqrt(2 * mp.pi)
    mean = s * above + root * density
    return mean, root * above, s * mean + variance * above


def _sign_moments(s: Any, variance: Any) -> tuple[Any, Any, Any]:
    """(E f, E z f, E f^2) of f(s + sqrt(variance) z), f(x) = sign x."""
    t = s / mp.sqrt(variance)
    return mp.erf(t / mp.sqrt(2)), 2 * mp.npdf(t), mp.one


ODD = {"tanh": mp.tanh, "erf": mp.erf, "sin": mp.sin, "linear": mp.mpf}
CLOSED = {"relu": _relu_moments, "sign": _sign_moments}


class _Table(NamedTuple):
    """The moments of Eqs. (3.2)-(3.3) at the nodes kappa, and what else the model has."""

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
def _table(model: SpikedRandomFeatures, digits: int, level: int) -> _Table:
    """The table with step 2^-level in kappa.  To be called at digits + GUARD digits."""
    step = mp.mpf(2) ** -level
    kappa, weights = _rule(step, digits)

    def moments(name: str, slope: Any, variance: Any) -> Moments:
        if name in CLOSED:
            return [CLOSED[name](slope * x, variance) for x in kappa]
        return _odd_moments(ODD[name], slope, variance, step, digits)

    c, gamma = mp.mpf(model.c), mp.mpf(model.gamma)
    # Eq. (3.2)
    student = moments(model.student.name, mp.mpf(model.r), c)
    mu0 = [mean for mean, _, _ in student]
    mu1 = [first / mp.sqrt(c) for _, first, _ in student]
    mu2sq = [s[2] - a**2 - c * b**2 for s, a, b in zip(student, mu0, mu1, strict=True)]
    # Eq. (3.3)
    target = moments(model.target.name, gamma, 1 - gamma**2)
    h, g, k = (list(column) for column in zip(*target, strict=True))
    beta, noise = mp.mpf(model.beta), mp.mpf(model.noise)
    return _Table(weights, kappa, mu0, mu1, mu2sq, h, g, k, c, beta, noise)


# The equations


class _Answers(NamedTuple):
    """What is solved for, and the errors that follow."""

    test_error: Any = mp.inf
    train_error: Any = mp.inf
    V1: Any = mp.inf
    V2: Any = mp.inf
    m: Any = mp.zero
    theta: Any = mp.zero
    psi: Any = mp.zero
    Q1: Any = mp.zero
    q2: Any = mp.zero


def _resistance(t: _Table, V1: Any, V2: Any) -> list[Any]:
    """R = 1 / (1 + V(kappa)) at the nodes.  Eq. (4.1)"""
    V = [mu1**2 * V1 + mu2sq * V2 for mu1, mu2sq in zip(t.mu1, t.mu2sq, strict=True)]
    return [1 / (1 + v) for v in V]


def _responses(t: _Table, alpha: Any, lam: Any, R: list[Any], V2: Any) -> tuple[Any, Any]:
    """V1 and V2 again.  Eqs. (4.2)-(4.4) at A = 1"""
    V1_hat = alpha / t.beta * _mean(t, t.mu1, t.mu1, R)
    V2_hat = alpha / t.beta * _mean(t, t.mu2sq, R)
    tau = t.beta * t.c * V2
    G = V1_hat / (1 + tau * V1_hat)
    return 1 / (t.beta * (1 / tau + V1_hat)), 1 / (lam + V2_hat + t.c * G)


def _spikes(t: _Table, alpha: Any, R: list[Any], u: _Answers) -> tuple[Any, Any]:
    """m and theta again, each with the other as in ``u``.  Eq. (4.5)"""
    misfit = [r * (h - C) for r, h, C in zip(R, t.h, _fit(t, u), strict=True)]
    theta_hat = _mean(t, t.kappa, t.mu1, misfit)
    size = _mean(t, t.mu0, t.mu0, R)
    # Where mu_0 = 0, any m solves its equation; the least-norm one is 0.
    m = u.m + _mean(t, t.mu0, misfit) / size if size else mp.zero
    return m, alpha * t.c * u.V2 * theta_hat


def _fit(t: _Table, u: _Answers) -> list[Any]:
    """C(kappa) = mu_0 m + mu_1 kappa theta."""
    nodes = zip(t.kappa, t.mu0, t.mu1, strict=True)
    return [mu0 * u.m + mu1 * kappa * u.theta for kappa, mu0, mu1 in nodes]


def _second_moments(t: _Table, alpha: Any, R: list[Any], u: _Answers) -> tuple[Any, Any, Any, Any]:
    """Q1 and q2 again, and the two errors.  Eqs. (4.7)-(4.11) at A = 1"""
    c, beta = t.c, t.beta
    nodes = zip(t.k, _fit(t, u), t.h, t.g, t.mu1, t.mu2sq, strict=True)
    # Eq. (4.7)
    error = [
        k - 2 * C * h + C**2 - 2 * mu1 * u.psi * g + mu1**2 * u.Q1 + mu2sq * u.q2 + t.noise
        for k, C, h, g, mu1, mu2sq in nodes
    ]
    # Eq. (4.8), with theta = alpha c V2 theta_hat and psi = alpha V1 p_hat
    theta_hat, p_hat = u.theta / (alpha * c * u.V2), u.psi / (alpha * u.V1)
    shrunk = _product(error, R, R)
    X1 = alpha / beta * _mean(t, t.mu1, t.mu1, shrunk) + alpha**2 / beta * p_hat**2
    X2 = alpha / beta * _mean(t, t.mu2sq, shrunk) + alpha**2 / beta * c * theta_hat**2
    # Eqs. (4.9)-(4.10)
    V1_hat = alpha / beta * _mean(t, t.mu1, t.mu1, R)
    tau = beta * c * u.V2
    G = V1_hat / (1 + tau * V1_hat)
    P = 1 / (1 + V1_hat * tau)
    D = P * X1 * P
    dV2 = -(u.V2**2) * (X2 + c * D) / (1 - u.V2**2 * c * G**2 * beta * c)
    dV1 = beta * u.V1 * (beta * c * dV2 / tau**2 - X1) * u.V1
    # Eq. (4.11)
    return -dV1, -dV2, _mean(t, error) - t.noise, _mean(t, shrunk)


def _equations(t: _Table, alpha: Any, lam: Any, u: _Answers) -> _Answers:
    """All numbers again, each from its own equation with the others as in ``u``."""
    R = _resistance(t, u.V1, u.V2)
    V1, V2 = _responses(t, alpha, lam, R, u.V2)
    m, theta = _spikes(t, alpha, R, u)
    psi = alpha * u.V1 * _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    Q1, q2, test, train = _second_moments(t, alpha, R, u)
    return _Answers(test, train, V1, V2, m, theta, psi, Q1, q2)


# Their solution


def _solve_on(t: _Table, alpha: Any, lam: Any, start: _Answers) -> _Answers:
    """The solution on one table; Newton starts from the V1 and V2 of ``start``."""

    def violation(log_V1: Any, log_V2: Any) -> list[Any]:
        V1, V2 = mp.exp(log_V1), mp.exp(log_V2)
        again = _responses(t, alpha, lam, _resistance(t, V1, V2), V2)
        return [mp.log(again[0] / V1), mp.log(again[1] / V2)]

    # Near alpha = beta the violation may be 1/sqrt(lam) times smaller than the distance.
    tol = mp.mpf(10) ** (GUARD // 2 - mp.dps)
    try:
        root = mp.findroot(violation, (mp.log(start.V1), mp.log(start.V2)), tol=tol, maxsteps=30)
    except (ValueError, ZeroDivisionError) as error:
        raise ConvergenceError(f"Newton's iteration failed: {error}", start) from None
    u = _Answers(V1=mp.exp(root[0]), V2=mp.exp(root[1]))

    # Given V the rest is linear: (m, theta), then psi, then (Q1, q2).
    R = _resistance(t, u.V1, u.V2)
    m, theta = _affine_root(lambda m, theta: _spikes(t, alpha, R, u._replace(m=m, theta=theta)))
    psi = alpha * u.V1 * _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    v = u._replace(m=m, theta=theta, psi=psi)
    Q1, q2 = _affine_root(lambda Q1, q2: _second_moments(t, alpha, R, v._replace(Q1=Q1, q2=q2))[:2])
    _, _, test, train = _second_moments(t, alpha, R, v._replace(Q1=Q1, q2=q2))
    return v._replace(Q1=Q1, q2=q2, test_error=test, train_error=train)


def _affine_root(function: Callable[[Any, Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    """The fixed point of an affine map of two numbers, from three of its values."""
    origin = mp.matrix(function(mp.zero, mp.zero))
    first = mp.matrix(function(mp.one, mp.zero)) - origin
    second = mp.matrix(function(mp.zero, mp.one)) - origin
    matrix = mp.matrix([[1 - first[0], -second[0]], [-first[1], 1 - second[1]]])
    x, y = mp.lu_solve(matrix, origin)
    return x, y


def _product(*factors: list[Any]) -> list[Any]:
    return [reduce(mul, values) for values in zip(*factors, strict=True)]


def _mean(t: _Table, *factors: list[Any]) -> Any:
    """E over kappa of the product of ``factors``."""
    return mp.fdot(t.weights, _product(*factors))


def _distance(a: _Answers, b: _Answers) -> Any:
    """Largest |a - b| / |b|; m, theta and psi count as zeros by symmetry below 1e-15."""

    def relative(name: str, x: Any, y: Any) -> Any:
        return abs(x - y) / max(abs(y), 1e-15 if name in ("m", "theta", "psi") else 0)

    return max(map(relative, _Answers._fields, a, b))

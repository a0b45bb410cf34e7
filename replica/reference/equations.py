"""Eqs. (4.1)-(4.11) for one group of neurons, as they stand, and their solution on one table."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

from mpmath import mp

from solvers.results import ConvergenceError

from .table import GUARD, Table


@dataclass(frozen=True)
class Unknowns:
    """What the equations are solved for, and the errors that follow, as numbers of mpmath.

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


def shrinkage(t: Table, V1: Any, V2: Any) -> list[Any]:
    """R = 1 / (1 + V(kappa)) at the nodes.  Eq. (4.1)"""
    V = [mu1**2 * V1 + mu2sq * V2 for mu1, mu2sq in zip(t.mu1, t.mu2sq, strict=True)]
    return [1 / (1 + v) for v in V]


def responses(t: Table, alpha: Any, lam: Any, R: list[Any], V2: Any) -> tuple[Any, Any]:
    """V1 and V2 from R and V2.  Eqs. (4.2)-(4.4) at A = 1"""
    V1_hat = alpha / t.beta * _mean(t, t.mu1, t.mu1, R)
    V2_hat = alpha / t.beta * _mean(t, t.mu2sq, R)
    tau = t.beta * t.c * V2
    G = V1_hat / (1 + tau * V1_hat)
    return 1 / (t.beta * (1 / tau + V1_hat)), 1 / (lam + V2_hat + t.c * G)


def signal(t: Table, alpha: Any, R: list[Any], u: Unknowns) -> tuple[Any, Any]:
    """m and theta from their own equations, each with the other as in ``u``.  Eq. (4.5)"""
    misfit = [r * (h - C) for r, h, C in zip(R, t.h, _fit(t, u), strict=True)]
    theta_hat = _mean(t, t.kappa, t.mu1, misfit)
    size = _mean(t, t.mu0, t.mu0, R)
    # Where mu_0 = 0, any m solves its equation; the least-norm one is 0.
    m = u.m + _mean(t, t.mu0, misfit) / size if size else mp.zero
    return m, alpha * t.c * u.V2 * theta_hat


def _fit(t: Table, u: Unknowns) -> list[Any]:
    """C(kappa) = mu_0 m + mu_1 kappa theta at the nodes."""
    nodes = zip(t.kappa, t.mu0, t.mu1, strict=True)
    return [mu0 * u.m + mu1 * kappa * u.theta for kappa, mu0, mu1 in nodes]


def second_moments(t: Table, alpha: Any, R: list[Any], u: Unknowns) -> tuple[Any, Any, Any, Any]:
    """Q1 and q2 from their own equations, with all as in ``u``, and the two errors.
    Eqs. (4.7)-(4.11) at A = 1"""
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


def equations(t: Table, alpha: Any, lam: Any, u: Unknowns) -> Unknowns:
    """All numbers again, each from its own equation with the others as in ``u``."""
    R = shrinkage(t, u.V1, u.V2)
    V1, V2 = responses(t, alpha, lam, R, u.V2)
    m, theta = signal(t, alpha, R, u)
    psi = alpha * u.V1 * _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    Q1, q2, test, train = second_moments(t, alpha, R, u)
    return Unknowns(test, train, V1, V2, m, theta, psi, Q1, q2)


def solve_on(t: Table, alpha: Any, lam: Any, start: Unknowns) -> Unknowns:
    """The solution on one table; Newton starts from the V1 and V2 of ``start``."""

    def violation(log_V1: Any, log_V2: Any) -> list[Any]:
        V1, V2 = mp.exp(log_V1), mp.exp(log_V2)
        again = responses(t, alpha, lam, shrinkage(t, V1, V2), V2)
        return [mp.log(again[0] / V1), mp.log(again[1] / V2)]

    # Near alpha = beta the violation may be 1/sqrt(lam) times smaller than the distance.
    tol = mp.mpf(10) ** (GUARD // 2 - mp.dps)
    try:
        root = mp.findroot(violation, (mp.log(start.V1), mp.log(start.V2)), tol=tol, maxsteps=30)
    except (ValueError, ZeroDivisionError) as error:
        raise ConvergenceError(f"Newton's iteration failed: {error}", start) from None
    u = Unknowns(V1=mp.exp(root[0]), V2=mp.exp(root[1]))

    # Given V the rest is linear: (m, theta), then psi, then (Q1, q2).
    R = shrinkage(t, u.V1, u.V2)
    m, theta = _affine_root(lambda m, theta: signal(t, alpha, R, replace(u, m=m, theta=theta)))
    psi = alpha * u.V1 * _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    u = replace(u, m=m, theta=theta, psi=psi)
    Q1, q2 = _affine_root(lambda Q1, q2: second_moments(t, alpha, R, replace(u, Q1=Q1, q2=q2))[:2])
    u = replace(u, Q1=Q1, q2=q2)
    _, _, test, train = second_moments(t, alpha, R, u)
    return replace(u, test_error=test, train_error=train)


def _affine_root(function: Callable[[Any, Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    """The fixed point of an affine map of two numbers, from three of its values."""
    origin = mp.matrix(function(mp.zero, mp.zero))
    first = mp.matrix(function(mp.one, mp.zero)) - origin
    second = mp.matrix(function(mp.zero, mp.one)) - origin
    matrix = mp.matrix([[1 - first[0], -second[0]], [-first[1], 1 - second[1]]])
    x, y = mp.lu_solve(matrix, origin)
    return x, y


def _product(*factors: list[Any]) -> list[Any]:
    """The product of ``factors`` at each node."""
    return [reduce(mul, values) for values in zip(*factors, strict=True)]


def _mean(t: Table, *factors: list[Any]) -> Any:
    """E over kappa of the product of ``factors``."""
    return mp.fdot(t.weights, _product(*factors))


def relative_change(a: Unknowns, b: Unknowns) -> Any:
    """Largest |a - b| / |b|; m, theta and psi count as zeros by symmetry below 1e-15."""
    least = {"m": 1e-15, "theta": 1e-15, "psi": 1e-15}
    pairs = ((name, getattr(a, name), y) for name, y in vars(b).items())
    return max(abs(x - y) / max(abs(y), least.get(name, 0)) for name, x, y in pairs)

"""Eqs. (4.1)-(4.11) for one group of neurons, as they stand, and their solution on one table."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

from mpmath import mp

from solvers.results import ConvergenceError

from .table import GUARD, ReferenceTable


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
    moments = list(zip(t.kappa, t.mu0, t.mu1, t.mu2sq, t.h, t.g, t.k, strict=True))
    R = [1 / (1 + mu1**2 * u.V1 + mu2sq * u.V2) for _, _, mu1, mu2sq, *_ in moments]  # Eq. (4.1)
    # Eqs. (4.2)-(4.3)
    V1_hat = alpha / beta * _mean(t, t.mu1, t.mu1, R)
    V2_hat = alpha / beta * _mean(t, t.mu2sq, R)
    tau = beta * c * u.V2
    P = 1 / (1 + V1_hat * tau)
    G = V1_hat * P
    # Eq. (4.5); where mu_0 = 0, any m solves its equation, and the least-norm one is 0
    C = [mu0 * u.m + mu1 * kappa * u.theta for kappa, mu0, mu1, *_ in moments]
    misfit = [r * (h - fit) for r, h, fit in zip(R, t.h, C, strict=True)]
    theta_hat = _mean(t, t.kappa, t.mu1, misfit)
    size = _mean(t, t.mu0, t.mu0, R)
    m = u.m + _mean(t, t.mu0, misfit) / size if size else mp.zero
    p_hat = _mean(t, t.mu1, t.g, R)  # Eq. (4.6)
    # Eq. (4.7)
    error = [
        k - 2 * fit * h + fit**2 - 2 * mu1 * u.psi * g + mu1**2 * u.Q1 + mu2sq * u.q2 + t.noise
        for fit, (_, _, mu1, mu2sq, h, g, k) in zip(C, moments, strict=True)
    ]
    # Eq. (4.8)
    shrunk = _product(error, R, R)
    X1 = alpha / beta * _mean(t, t.mu1, t.mu1, shrunk) + alpha**2 / beta * p_hat**2
    X2 = alpha / beta * _mean(t, t.mu2sq, shrunk) + alpha**2 / beta * c * theta_hat**2
    # Eqs. (4.9)-(4.10)
    q2 = u.V2**2 * (X2 + c * P**2 * X1) / (1 - u.V2**2 * c**2 * beta * G**2)
    Q1 = beta * u.V1**2 * (X1 + beta * c * q2 / tau**2)
    return Unknowns(
        test_error=_mean(t, error) - t.noise,  # Eq. (4.11)
        train_error=_mean(t, shrunk),  # Eq. (4.11)
        V1=tau * P / beta,  # Eqs. (4.3)-(4.4)
        V2=1 / (lam + V2_hat + c * G),
        m=m,
        theta=alpha * c * u.V2 * theta_hat,  # Eq. (4.5)
        psi=alpha * u.V1 * p_hat,  # Eq. (4.6)
        Q1=Q1,
        q2=q2,
    )


def solve_on(t: ReferenceTable, alpha: Any, lam: Any, start: Unknowns) -> Unknowns:
    """The solution on one table, by Newton's method on all unknowns from ``start``."""
    names = ["V1", "V2", "m", "theta", "psi", "Q1", "q2"]
    units = {name: max(abs(getattr(start, name)), 1e-15) for name in names}

    def scaled(u: Unknowns) -> list[Any]:
        return [getattr(u, name) / unit for name, unit in units.items()]

    def at(*x: Any) -> Unknowns:
        return Unknowns(**{name: units[name] * each for name, each in zip(names, x, strict=True)})

    def violation(*x: Any) -> list[Any]:
        again = scaled(equations(t, alpha, lam, at(*x)))
        return [after - before for after, before in zip(again, x, strict=True)]

    # Near alpha = beta the violation may be 1/sqrt(lam) times smaller than the distance.
    tol = mp.mpf(10) ** (GUARD // 2 - mp.dps)
    try:
        root = at(*mp.findroot(violation, scaled(start), tol=tol, maxsteps=30))
    except (ValueError, ZeroDivisionError) as error:
        raise ConvergenceError(f"Newton's iteration failed: {error}", start) from None
    errors = equations(t, alpha, lam, root)
    return replace(root, test_error=errors.test_error, train_error=errors.train_error)


def _product(*factors: list[Any]) -> list[Any]:
    """The product of ``factors`` at each node."""
    return [reduce(mul, values) for values in zip(*factors, strict=True)]


def _mean(t: ReferenceTable, *factors: list[Any]) -> Any:
    """E over kappa of the product of ``factors``."""
    return mp.fdot(t.weights, _product(*factors))


def relative_change(a: Unknowns, b: Unknowns) -> Any:
    """Largest |a - b| / |b|; m, theta and psi count as zeros by symmetry below 1e-15."""
    least = {"m": 1e-15, "theta": 1e-15, "psi": 1e-15}
    pairs = ((name, getattr(a, name), y) for name, y in vars(b).items())
    return max(abs(x - y) / max(abs(y), least.get(name, 0)) for name, x, y in pairs)

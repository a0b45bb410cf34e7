"""The moments of Eqs. (3.2)-(3.3) at the nodes of a trapezoidal rule, with mpmath."""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate, repeat
from operator import mul
from typing import Any, NamedTuple

from mpmath import mp

from ..problem import SpikedRandomFeatures

GUARD = 20  # digits carried beyond those asked for: mu_2^2 is a difference, and V2 may be 1/lam

Moments = list[tuple[Any, Any, Any]]  # (E f, E z f, E f^2) at each node kappa


def gaussian_rule(step: Any, digits: int) -> tuple[list[Any], list[Any]]:
    """Nodes ``step`` * j and weights of a trapezoidal rule for a standard Gaussian, whose mass
    beyond the last node is below 10^-(digits + 10)."""
    last = int(mp.ceil(mp.sqrt(2 * mp.log(10) * (digits + 10)) / step))
    nodes = [step * j for j in range(-last, last + 1)]
    return nodes, [step * mp.npdf(x) for x in nodes]


def _odd_moments(
    function: Callable[[Any], Any], slope: Any, variance: Any, step: Any, digits: int
) -> Moments:
    """(E f, E z f, E f^2) of f(slope * kappa + sqrt(variance) z), f odd, at the nodes kappa of
    gaussian_rule(step, digits).

    The step in z is h = 2 ``step``.  The nodes z = h j - shift move with kappa so that f is
    only ever needed at multiples of one ``unit``; their weights are those at h j times
    exp(h j shift - shift^2 / 2).  Sums run over integers, numbers scaled by 2^bits, which
    Python multiplies several times faster than mpf.
    """
    kappa, _ = gaussian_rule(step, digits)
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

    def powers(q: Any) -> list[int]:
        """q^0, ..., q^last, scaled."""
        factor = scaled(q)
        return list(accumulate(repeat(factor, last), lambda a, b: a * b >> bits, initial=1 << bits))

    centred = [scaled(w) for w in gaussian_rule(h, digits)[1]]
    last = len(centred) // 2
    right: Moments = []
    for s in (slope * x for x in kappa[len(kappa) // 2 :]):
        middle = int(mp.nint(s / unit))
        shift = s / mp.sqrt(variance) - middle * h
        tilt = powers(mp.exp(-h * shift))[:0:-1] + powers(mp.exp(h * shift))
        row = [value(i) for i in range(middle - last, middle + last + 1)]
        terms = [w * t * f for w, t, f in zip(centred, tilt, row, strict=True)]
        norm = mp.exp(-(shift**2) / 2)
        mean = norm * unscaled(sum(terms), 3)
        moment = norm * h * unscaled(sum(map(mul, range(-last, last + 1), terms)), 3)
        power = norm * unscaled(sum(map(mul, terms, row)), 4)
        right.append((mean, moment - shift * mean, power))
    left = [(-mean, moment, power) for mean, moment, power in right[:0:-1]]
    return left + right


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
def tabulate(model: SpikedRandomFeatures, digits: int, level: int) -> ReferenceTable:
    """The table with step 2^-level in kappa.  To be called at digits + GUARD digits."""
    step = mp.mpf(2) ** -level
    kappa, weights = gaussian_rule(step, digits)

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
    return ReferenceTable(weights, kappa, mu0, mu1, mu2sq, h, g, k, c, beta, noise)

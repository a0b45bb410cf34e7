"""Expectations over kappa on a contour in the complex plane.  docs/theory.md 4 and 9.

At z = x + i0 the averages (4.2) have poles next to the real line wherever 1 + V(kappa) nearly
vanishes: samples whose features are so large, or so small, that each makes an isolated
eigenvalue.  No rule on the real line resolves them.  But the moments (3.2) of any sigma are entire
functions of kappa, since

    E sigma(s + i t + sqrt(c) z) = E sigma(s + sqrt(c) z) exp(i t z / sqrt(c) + t^2 / 2c),

and Im V > 0 there: the poles lie above the line where the features' conditional variance T
increases with kappa and below where it decreases.  A contour that runs on the other side of the
line, and crosses it at the extrema of T, meets none of the poles, and a trapezoidal rule on it
converges geometrically.
"""

from dataclasses import replace

import numpy as np
from scipy.special import erf

from solvers.quadrature import expectation
from solvers.results import Array
from solvers.rules import Rule, half_range

from ..equivalence import Table, group_kinds
from ..problem import MOMENT_TOLERANCE, Activation, Model, Moments


def contour_table(model: Model, table: Table) -> Table | None:
    """The ``table`` of features with one spike, with kappa moved from the real line to a contour.

    A component of the inputs on which T is constant keeps its real nodes; None if all do.
    """
    T = table.fractions @ (table.c[:, None] * table.mu1**2 + table.mu2sq)
    groups, inputs, places, nodes_of_components = model.geometry, model.components, table.places, []
    for j, (mean, slope) in enumerate(zip(inputs.mean[:, 0], inputs.slope[:, 0, 0], strict=True)):
        members = places.component == j
        z, weights = places.z[0, members], table.weights[members]
        side, turns = sides_and_turns(z, T[members])
        if side:
            steepest = slope * float((np.abs(groups.r[:, 0]) / np.sqrt(groups.c)).max())
            z, weights = contour(side, turns, z.size, steepest)
            weights = inputs.shares[j] * weights
        nodes_of_components.append((mean + slope * z, weights))
    kappa, weights = map(np.concatenate, zip(*nodes_of_components, strict=True))
    if not np.iscomplexobj(kappa):
        return None
    kinds, _ = group_kinds(model)
    moments = [
        complex_moments(model.student, groups.r[a, 0] * kappa + groups.bias[a], groups.c[a])
        for a in kinds
    ]
    return replace(
        table,
        weights=weights,
        kappa=kappa[None],
        mu1=np.array([moment.first for moment in moments]) / np.sqrt(groups.c[kinds])[:, None],
        mu2sq=np.array([moment.variance for moment in moments]),
    )


def contour(side: int, turns: Array, nodes: int, steepest: float) -> tuple[Array, Array]:
    """Complex nodes (nodes,) of the contour and their Gaussian weights, of sum 1."""
    half = half_range(nodes)
    kappa, slope = contour_points(np.linspace(-half, half, nodes), side, turns, steepest)
    weights = slope * np.exp(-(kappa**2) / 2)
    return kappa, weights / weights.sum()


def contour_points(
    u: Array,
    side: int,
    turns: Array,
    steepest: float,
    ends: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[Array, Array]:
    """Points of the contour over u (n,) on the real line, and their derivatives in u.

    Parameters
    ----------
    u : (n,)
    side : {-1, 1}
        Whether the contour starts below or above the line.
    turns : (k,)
        Places at which it crosses the line.
    steepest : float
        Root of the largest a for which averages contain exp(-a kappa^2).
    ends : pair of float
        Where finite, places at which the contour meets the line.
    """
    # sign: +-1, changing smoothly at the turns, over less than the distance of two of them
    gaps = np.diff([ends[0], *turns, ends[1]])
    width = min(0.6, 0.4 * float(gaps.min()))
    distances = (u - turns[:, None]) / width
    flip = side * (-1.0) ** np.arange(1, len(turns) + 1)
    sign = side + flip @ (1 + erf(distances))
    sign_slope = flip @ np.exp(-(distances**2)) * (2 / (np.sqrt(np.pi) * width))
    # The height of the contour grows with slope 1/4 up to |u| = 1.75 / steepest, and decays as
    # 1 / |u| far out.  T falls off like exp(-a kappa^2), a <= steepest^2: at height
    # pi / (a |kappa|) the next branch of its logarithm has a pole, too.  The contour stays below
    # half of that height.
    bend = (steepest / 1.75) ** 2
    modulus, damping = np.sqrt(1 + u**2), 1 / (1 + bend * u**2)
    height = 0.25 * modulus * damping
    growth = u / modulus**2 - 2 * bend * u * damping  # derivative of log height
    for end in filter(np.isfinite, ends):
        height = height * np.abs(u - end) / np.sqrt(1 + (u - end) ** 2)
        growth = growth + 1 / ((u - end) * (1 + (u - end) ** 2))
    return u + 1j * sign * height, 1 + 1j * height * (sign * growth + sign_slope)


def sides_and_turns(kappa: Array, T: Array) -> tuple[int, Array]:
    """Side of the real line, +-1, of the contour's left end, and the places where it crosses.

    The contour runs above the line where T(kappa) falls, below where it rises.  The side is 0 if T
    is constant.
    """
    kappa, index = np.unique(kappa, return_index=True)
    increments = np.diff(T[index])
    # smaller changes are rounding, and |kappa| > 7 has probability 3e-12
    changing = np.flatnonzero((np.abs(increments) > 1e-12 * T.max()) & (np.abs(kappa[1:]) < 7))
    if not changing.size:
        return 0, np.empty(0)
    side = -np.sign(increments[changing])
    reversals = np.flatnonzero(side[1:] != side[:-1])
    return int(side[0]), (kappa[changing[reversals] + 1] + kappa[changing[reversals + 1]]) / 2


def complex_moments(student: Activation, s: Array, c: float) -> Moments:
    """The moments (3.2), continued analytically to complex shifts s (n,)."""
    root = np.sqrt(c)
    shift, t = s.real[:, None], s.imag[:, None] / root

    def compute(rule: Rule) -> tuple[Array, Array]:
        """Mean, first moment and variance (3, n) by one rule, and the scales of their errors."""
        z = rule.nodes - 1j * t
        w = rule.weights * np.exp(1j * t * rule.nodes + t**2 / 2)
        f = student(shift + root * rule.nodes)
        mean = (f * w).sum(axis=-1)
        first = (f * z * w).sum(axis=-1)
        rest = f - mean[:, None] - first[:, None] * z
        variance = (rest**2 * w).sum(axis=-1)
        power = (f**2 * np.abs(w)).sum(axis=-1)
        power = np.maximum(power, 1e-8 * power.max())
        return np.stack([mean, first, variance]), np.stack([np.sqrt(power)] * 2 + [power])

    breaks = (np.asarray(student.kinks) - shift) / root
    rule = "gauss-legendre" if student.kinks else "trapezoid, gauss-legendre"
    result = expectation(compute, breaks, rule=rule, tol=10 * MOMENT_TOLERANCE)
    return Moments(*result.value)

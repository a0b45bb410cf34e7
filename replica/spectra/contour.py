"""Expectations over kappa on a contour beside the real line.  docs/theory.md 4 and 9.

At z = x + i0 the averages (4.2) have poles next to the real line wherever 1 + V(kappa) nearly
vanishes: samples whose features are so large, or so small, that they make eigenvalues of their
own far from the rest.  No rule on the real line resolves them.  But the moments (3.2) of any
sigma are entire functions of kappa, since

    E sigma(s + i t + sqrt(c) z) = E sigma(s + sqrt(c) z) exp(i t z / sqrt(c) + t^2 / 2c),

and Im V > 0 there: the poles lie above the line where the features' conditional variance T
increases with kappa and below where it decreases.  A contour that runs on the other side of the
line, and crosses it where T turns, meets none of them, and a trapezoidal rule on it converges
geometrically.
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
    """The features of ``table``, of one spike, at as many places of a contour for z, in every
    component of the inputs for which T is not constant; None where it is for all: there is no side
    to leave the line on.
    """
    T = table.fractions @ (table.c[:, None] * table.mu1**2 + table.mu2sq)
    groups, inputs, places, parts = model.geometry, model.components, table.places, []
    for j, (mean, slope) in enumerate(zip(inputs.mean[:, 0], inputs.slope[:, 0, 0], strict=True)):
        own = places.component == j
        z, weights = places.z[0, own], table.weights[own]
        side, turns = sides(z, T[own])
        if side:
            steepest = slope * float((np.abs(groups.r[:, 0]) / np.sqrt(groups.c)).max())
            z, weights = contour(side, turns, z.size, steepest)
            weights = inputs.shares[j] * weights
        parts.append((mean + slope * z, weights))
    kappa, weights = map(np.concatenate, zip(*parts, strict=True))
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
        mu1=np.array([one.first for one in moments]) / np.sqrt(groups.c[kinds])[:, None],
        mu2sq=np.array([one.variance for one in moments]),
    )


def contour(side: int, turns: Array, nodes: int, steepest: float) -> tuple[Array, Array]:
    """Complex nodes (nodes,) and weights of the Gaussian, which sum to 1, on a contour that leaves
    the line ``beside`` it."""
    half = half_range(nodes)
    kappa, slope = beside(np.linspace(-half, half, nodes), side, turns, steepest)
    weights = slope * np.exp(-(kappa**2) / 2)
    return kappa, weights / weights.sum()


def beside(
    u: Array,
    side: int,
    turns: Array,
    steepest: float,
    ends: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[Array, Array]:
    """Places on a contour at u (n,) on the line, and their slopes in u: it leaves the line on
    ``side``, changes sides at every one of ``turns``, and meets the line at finite ``ends``.

    ``steepest`` is the root of a for averages of exp(-a kappa^2).
    """
    # +-1, changing where T turns; smoothly, but before it turns back
    gaps = np.diff([ends[0], *turns, ends[1]])
    width = min(0.6, 0.4 * float(gaps.min()))
    away = (u - turns[:, None]) / width
    flip = side * (-1.0) ** np.arange(1, len(turns) + 1)
    sign = side + flip @ (1 + erf(away))
    change = flip @ np.exp(-(away**2)) * (2 / (np.sqrt(np.pi) * width))
    # The height at which to run grows with slope 1/4 up to |u| = 1.75 / steepest, and flattens as
    # 1 / |u| far out.  T falls off like exp(-a kappa^2), a <= steepest^2: at height
    # pi / (a |kappa|) the next branch of its logarithm has a pole, too, and the contour keeps at
    # most half of the way to it.
    bend = (steepest / 1.75) ** 2
    root, flat = np.sqrt(1 + u**2), 1 / (1 + bend * u**2)
    far = 0.25 * root * flat
    growth = u / root**2 - 2 * bend * u * flat  # of log far
    for end in filter(np.isfinite, ends):
        far = far * np.abs(u - end) / np.sqrt(1 + (u - end) ** 2)
        growth = growth + 1 / ((u - end) * (1 + (u - end) ** 2))
    return u + 1j * sign * far, 1 + 1j * far * (sign * growth + change)


def sides(kappa: Array, T: Array) -> tuple[int, Array]:
    """On which side to leave the line in the left tail, +-1, and where to change it: above it
    where T falls as kappa increases, below where it rises.  0 if T does neither."""
    kappa, first = np.unique(kappa, return_index=True)
    change = np.diff(T[first])
    # less is rounding, and beyond 7 kappa is with probability 3e-12
    moves = np.flatnonzero((np.abs(change) > 1e-12 * T.max()) & (np.abs(kappa[1:]) < 7))
    if not moves.size:
        return 0, np.empty(0)
    side = -np.sign(change[moves])
    turned = np.flatnonzero(side[1:] != side[:-1])
    return int(side[0]), (kappa[moves[turned] + 1] + kappa[moves[turned + 1]]) / 2


def complex_moments(student: Activation, s: Array, c: float) -> Moments:
    """The moments (3.2) at complex shifts s (n,), as the analytic functions they are."""
    root = np.sqrt(c)
    shift, t = s.real[:, None], s.imag[:, None] / root

    def compute(rule: Rule) -> tuple[Array, Array]:
        """Mean, first moment and variance (3, n) by one rule, and the sizes errors are relative
        to."""
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

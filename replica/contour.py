"""Expectations over kappa on a contour beside the real line.  THEORY 4 and 9.

At z = x + i0 the averages (4.2) have poles next to the real line wherever 1 + V(kappa) nearly
vanishes: samples whose features are so large, or so small, that they make eigenvalues of their
own far from the rest.  No rule on the real line resolves them.  But the moments (3.2) of any
sigma are entire functions of kappa, since

    E sigma(s + i t + sqrt(c) z) = E sigma(s + sqrt(c) z) exp(i t z / sqrt(c) + t^2 / 2c),

and Im V > 0 there: the poles lie above the line where the features' conditional variance T
increases with kappa and below where it decreases.  A contour that leaves the line on the other
side in each tail meets none of them, and a trapezoidal rule on it converges geometrically.
"""

from dataclasses import replace

import numpy as np

from solvers.quadrature import Rule, interval, refine
from solvers.results import Array

from .activations import MOMENT_NODES, MOMENT_TOLERANCE, Activation
from .closed_forms import Moments
from .equivalence import Table, alike
from .network import Model

ANGLE = 0.25  # slope of the contour, up to r kappa / sqrt(c) = BEND
# T falls off like exp(-a kappa^2), a <= r^2 / c: at height pi / (a |kappa|) the next branch of
# its logarithm has a pole, too.  This keeps the contour at most half of the way to it.
BEND = 1.75


def contour_table(model: Model, table: Table, nodes: int) -> Table | None:
    """The features of ``table``, of one spike, at ``nodes`` places of a contour; None where T
    does not settle on a direction in both tails: there is no side to leave the line on.
    """
    left, right = _directions(table)
    if 0 in (left, right):
        return None
    groups = model.geometry
    half = interval(nodes)
    steepest = float((np.abs(groups.r[:, 0]) / np.sqrt(groups.c)).max())
    u = np.linspace(-half, half, nodes)
    # right * u in the right tail, left * |u| in the left one, flattened as 1 / |u| far out
    odd, even = (right - left) / 2, (right + left) / 2
    root = np.sqrt(1 + u**2)
    bend = (steepest / BEND) ** 2
    flat = 1 / (1 + bend * u**2)
    height = ANGLE * (odd * u + even * root) * flat
    slope = ANGLE * (odd + even * u / root) * flat - 2 * bend * u * flat * height
    kappa = u + 1j * height
    weights = (1 + 1j * slope) * np.exp(-(kappa**2) / 2)
    kinds, _ = alike(model)
    found = [
        complex_moments(model.student, groups.r[a, 0] * kappa + groups.bias[a], groups.c[a])
        for a in kinds
    ]
    return replace(
        table,
        weights=weights / weights.sum(),
        kappa=kappa[None],
        mu1=np.array([one.first for one in found]) / np.sqrt(groups.c[kinds])[:, None],
        mu2sq=np.array([one.variance for one in found]),
    )


def _directions(table: Table) -> tuple[int, int]:
    """On which side to leave the line in the left and right tail, +-1, or 0 for neither: above
    (below) it where T falls (rises) as kappa increases."""
    T = table.fractions @ (table.c[:, None] * table.mu1**2 + table.mu2sq)
    kappa = table.kappa[0]
    sides = []
    for tail in (kappa < -1, kappa > 1):
        change = np.diff(T[tail & (np.abs(kappa) < 6)])
        net, total = change.sum(), np.abs(change).sum()
        settled = abs(net) > max(total / 4, 1e-9 * T.max())
        sides.append(-int(np.sign(net)) if settled else 0)
    return sides[0], sides[1]


def complex_moments(student: Activation, s: Array, c: float) -> Moments:
    """The moments (3.2) at complex shifts s (n,), as the analytic functions they are."""
    root = np.sqrt(c)
    shift, t = s.real[:, None], s.imag[:, None] / root

    def compute(rule: Rule) -> tuple[Array, Array]:
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
    found = refine(compute, breaks, rule=rule, tol=10 * MOMENT_TOLERANCE, max_nodes=MOMENT_NODES)
    return Moments(*found.value)

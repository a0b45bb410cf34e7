"""Where the spectrum begins and ends.  docs/theory.md 9.

Outside the spectrum V is real and z a smooth function of s along the curve of real solutions;
an edge is where the curve turns back, dz/ds = 0.  There the Jacobian of (4.1)-(4.4) is singular
in V at fixed z, but not in (V, z) at fixed s: the edge is a simple zero of dz/ds, found by a
secant method to rounding.  A search on a logarithmic grid brackets the edges first.

Not every spectrum has edges.  Where the conditional variance of the features comes arbitrarily
close to 0 or infinity (or, slowly enough, to its supremum) in the tails of kappa, the density
runs out like the tails of the Gaussian; its end is then put where x times the density falls
below ``NEGLIGIBLE_MASS`` and marked as not sharp.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.linear import solve_rows
from solvers.results import Array, ConvergenceError

from ..equivalence import Table
from ..saddle_point import Rows
from .resolvent import Resolvent

SMALLEST_X = 1e-18  # lower end of an interval that reaches 0, relative to its upper end
NEGLIGIBLE_MASS = 1e-10  # x times the density, below which the spectrum counts as ended


def support(resolvent: Resolvent, x: Array, mass: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The intervals (n, 2) that carry the density, and which of their ends are sharp, from
    x times the density, ``mass``, on a grid of increasing x."""
    x, mass = _refine_at_dips(resolvent, x, mass)
    inside = mass > NEGLIGIBLE_MASS
    ends = np.flatnonzero(inside[1:] != inside[:-1])
    edges, sharp = _edges_in_cells(resolvent, x[ends], x[ends + 1], inside[ends])
    if inside[0]:
        edges, sharp = np.append(0.0, edges), np.append(False, sharp)
    if inside[-1]:
        edges, sharp = np.append(edges, x[-1]), np.append(sharp, False)
    return edges.reshape(-1, 2), sharp.reshape(-1, 2)


def mass_per_log(resolvent: Resolvent, x: Array, U: Array | None = None) -> Array:
    """x times the density at x (P,), where the solution is U (P, D) if it is known."""
    found = resolvent.at(x.astype(complex)) if U is None else U
    density = resolvent.transform(found).imag / np.pi
    return np.asarray(x * np.nan_to_num(density))


def scan(table: Table, alpha: float) -> Array:
    """A logarithmic grid of x, 14 points a decade: from 14 decades below what is the largest
    possible eigenvalue of an sRF to beyond the largest one here."""
    rows = table.covariance
    top = _bound(table, alpha, table.c if rows is None else _largest_variance(rows))
    if not top:
        raise ConvergenceError("the features have no bulk: they do not depend on the input", None)
    low = _bound(table, alpha, table.c) * 10.0**-14
    return np.geomspace(low, top, int(np.ceil(np.log10(top / low) * 14)) + 1)


def _largest_variance(rows: Rows) -> Array:
    """Rows of each group have in no direction more variance than this, (A,)."""
    bound = np.ones(rows.groups)
    for b in reversed(rows.batches):
        widest = (1 + b.alpha**-0.5) ** 2  # of the mean of x x^T, and weighted
        own, passed = (np.abs(t).max(axis=1, initial=0.0) * widest for t in (b.t11, b.t12))
        bound = (1 + passed) ** 2 * bound + own
    return bound


def _bound(table: Table, alpha: float, c: Array | float) -> float:
    """An upper bound on the bulk for rows of variance ``c``, of all groups or (A,): norms of the
    linear and the remaining part of the features, each its largest size over kappa times that of
    a matrix of independent entries."""
    linear = np.sqrt((np.reshape(c, (-1, 1)) * table.mu1**2).max())
    linear *= (1 + 1 / np.sqrt(alpha)) * (1 + np.sqrt(table.beta))
    rest = np.sqrt(table.mu2sq.max()) * (1 + np.sqrt(table.beta / alpha))
    return float(2 * (linear + rest) ** 2)


def _refine_at_dips(resolvent: Resolvent, x: Array, mass: Array) -> tuple[Array, Array]:
    """The grid made three times six times finer where the density dips: a gap may be narrower than
    its cells."""
    for _ in range(3):
        dips = 1 + np.flatnonzero((mass[1:-1] < mass[:-2]) & (mass[1:-1] <= mass[2:]))
        dips = dips[mass[dips] > NEGLIGIBLE_MASS]
        if not dips.size:
            break
        cells = np.concatenate([dips - 1, dips])
        new = np.geomspace(x[cells], x[cells + 1], 7)[1:-1].ravel()
        mass, x = np.append(mass, mass_per_log(resolvent, new)), np.append(x, new)
        order = np.argsort(x)
        x, mass = x[order], mass[order]
    return x, mass


def _edges_in_cells(
    resolvent: Resolvent, low: Array, high: Array, low_inside: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """The edge in every cell (low, high), of which ``low_inside`` says whether the lower end
    carries density."""
    edge = np.full(len(low), np.nan)
    low, high = low.copy(), high.copy()
    for _ in range(4):  # into 16 parts each time: five more digits where the edge is not sharp
        cells = np.flatnonzero(np.isnan(edge))
        turn = turning_point(resolvent, np.where(low_inside, high, low)[cells])
        edge[cells] = np.where((turn >= low[cells]) & (turn <= high[cells]), turn, np.nan)
        cells = np.flatnonzero(np.isnan(edge))
        if not cells.size:
            break
        x = np.geomspace(low[cells], high[cells], 17, axis=1)
        inside = mass_per_log(resolvent, x[:, 1:-1].ravel()) > NEGLIGIBLE_MASS
        same = inside.reshape(len(cells), -1) == low_inside[cells, None]
        last = np.logical_and.accumulate(same, axis=1).sum(axis=1)
        each = np.arange(len(cells))
        low[cells], high[cells] = x[each, last], x[each, last + 1]
    sharp = ~np.isnan(edge)
    return np.where(sharp, edge, np.sqrt(low * high)), sharp


def turning_point(resolvent: Resolvent, x: Array) -> Array:
    """z where dz/ds = 0 on the curve of real solutions through x (P,), outside the spectrum;
    NaN where none is found or 1 + V(kappa) changes sign on the way."""
    V, z = resolvent.at(x.astype(complex)), x.astype(complex)
    s = resolvent.transform(V)
    with np.errstate(all="ignore"):  # some rows may have no such point, and run away
        V, z, slope, curve = _on_curve(resolvent, V, z, s)
        for _ in range(12):  # some six do where there is an edge in the cell
            # at most half of the way to s = 0, where z has gone to infinity
            step = np.clip((-slope / curve).real, -np.abs(s) / 2, np.abs(s) / 2)
            moving = np.abs(step) > 1e-12 * np.abs(s)
            if not moving.any():
                break
            s = s + np.where(np.isfinite(step), step, 0.0)
            V, z, slope, curve = _on_curve(resolvent, V, z, s)
        good = np.abs(slope) * np.abs(s) < 1e-6 * np.abs(z)
        good &= resolvent.one_sign(V) & (np.abs(z.imag) < 1e-9 * np.abs(z))
    return np.where(good, z.real, np.nan)


def _on_curve(
    resolvent: Resolvent, V: Array, z: Array, s: Array
) -> tuple[Array, Array, Array, Array]:
    """V and z where the transform is s, with dz/ds and d^2z/ds^2, from close guesses."""
    for _ in range(8):
        system = _bordered(resolvent, V, z)
        residual = np.column_stack([resolvent.residual(V, z)[0], resolvent.transform(V) - s])
        step = solve_rows(system, -residual)
        V, z = V + step[:, :-1], z + step[:, -1]
        if not (np.abs(step).max(axis=1) > 1e-12 * np.abs(V).max(axis=1)).any():
            break
    unit = np.zeros_like(residual)
    unit[:, -1] = 1
    tangent = solve_rows(_bordered(resolvent, V, z), unit)
    # the system's change along the tangent, by a difference, gives the second derivative
    reach = (1e-5 * np.abs(s))[:, None]
    ahead = _bordered(resolvent, V + reach * tangent[:, :-1], z + reach[:, 0] * tangent[:, -1])
    curve = (solve_rows(ahead, unit) - tangent)[:, -1] / reach[:, 0]
    return V, z, tangent[:, -1], curve


def _bordered(resolvent: Resolvent, V: Array, z: Array) -> Array:
    """Derivatives of the equations and of s in (V, z), (P, D + 1, D + 1)."""
    value, slope = resolvent.residual(V, z)
    along = resolvent.residual(V, z + 1)[0] - value  # linear in z
    D = V.shape[1]
    matrix = np.zeros((len(V), D + 1, D + 1), dtype=complex)
    matrix[:, :D, :D], matrix[:, :D, D] = slope, along
    matrix[:, D, D - resolvent.responses.groups : D] = resolvent.ratio
    return matrix


def angle_of(x: Array, low: float, high: float) -> Array:
    """The angle in (0, pi) with log x = middle - half cos(angle), for x (P,) in (low, high)."""
    a, b = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.arccos(np.clip((a + b - 2 * np.log(x)) / (b - a), -1, 1)))


def place_of(angle: Array, low: float, high: float) -> Array:
    """x (P,) at angles of ``angle_of``."""
    a, b = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.exp((a + b - (b - a) * np.cos(angle)) / 2))

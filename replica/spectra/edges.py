"""Edges of the spectrum.  docs/theory.md 9.

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
from ..saddle_point import TrainedRows
from .resolvent import Resolvent

SMALLEST_X = 1e-18  # lower end of an interval that reaches 0, relative to its upper end
NEGLIGIBLE_MASS = 1e-10  # x times the density, below which the spectrum counts as ended


def support(resolvent: Resolvent, x: Array, mass: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Intervals (n, 2) of positive density, and whether their ends are sharp edges, (n, 2).

    ``mass`` is x times the density on a grid of increasing x.
    """
    x, mass = _refine_at_dips(resolvent, x, mass)
    has_density = mass > NEGLIGIBLE_MASS
    cells = np.flatnonzero(has_density[1:] != has_density[:-1])
    support_edges, sharp = _edges_in_cells(resolvent, x[cells], x[cells + 1], has_density[cells])
    if has_density[0]:
        support_edges, sharp = np.append(0.0, support_edges), np.append(False, sharp)
    if has_density[-1]:
        support_edges, sharp = np.append(support_edges, x[-1]), np.append(sharp, False)
    return support_edges.reshape(-1, 2), sharp.reshape(-1, 2)


def mass_per_log(resolvent: Resolvent, x: Array, U: Array | None = None) -> Array:
    """Mass per unit of log x, x times the density, at x (P,), from solutions U (P, D) if given."""
    resolvent_coordinates = resolvent.solutions(x.astype(complex)) if U is None else U
    density = resolvent.transform(resolvent_coordinates).imag / np.pi
    return np.asarray(x * np.nan_to_num(density))


def logarithmic_grid(table: Table, alpha: float) -> Array:
    """Logarithmic grid of x over the whole spectrum, 14 points a decade.

    From 14 decades below a bound on the largest eigenvalue of an sRF, to a bound for these rows.
    """
    rows = table.covariance
    largest_x = _bulk_bound(table, alpha, table.c if rows is None else _covariance_bound(rows))
    if not largest_x:
        raise ConvergenceError("the features have no bulk: they do not depend on the input", None)
    x_min = _bulk_bound(table, alpha, table.c) * 10.0**-14
    return np.geomspace(x_min, largest_x, int(np.ceil(np.log10(largest_x / x_min) * 14)) + 1)


def _covariance_bound(trained_rows: TrainedRows) -> Array:
    """Upper bound (A,) on the largest eigenvalue of the row covariance of each group."""
    eigenvalue_bound = np.ones(trained_rows.groups)
    for batch in reversed(trained_rows.batches):
        widest = (1 + batch.alpha**-0.5) ** 2  # bound on |(1/n) sum x x^T|
        noise, gain = (np.abs(t).max(axis=1, initial=0.0) * widest for t in (batch.t11, batch.t12))
        eigenvalue_bound = (1 + gain) ** 2 * eigenvalue_bound + noise
    return eigenvalue_bound


def _bulk_bound(table: Table, alpha: float, row_variance: Array | float) -> float:
    """Upper bound on the bulk for rows of variance ``row_variance``, a number or (A,).

    The norms of the linear and of the nonlinear part of the features add up; each is its largest
    size over kappa times the norm of a matrix of independent entries.
    """
    linear_norm = np.sqrt((np.reshape(row_variance, (-1, 1)) * table.mu1**2).max())
    linear_norm *= (1 + 1 / np.sqrt(alpha)) * (1 + np.sqrt(table.beta))
    curved_norm = np.sqrt(table.mu2sq.max()) * (1 + np.sqrt(table.beta / alpha))
    return float(2 * (linear_norm + curved_norm) ** 2)


def _refine_at_dips(resolvent: Resolvent, x_grid: Array, mass: Array) -> tuple[Array, Array]:
    """Grid and mass with cells divided by six, three times, at every minimum of the density.

    A gap of the spectrum may be narrower than the first cells.
    """
    for _ in range(3):
        density_dips = 1 + np.flatnonzero((mass[1:-1] < mass[:-2]) & (mass[1:-1] <= mass[2:]))
        density_dips = density_dips[mass[density_dips] > NEGLIGIBLE_MASS]
        if not density_dips.size:
            break
        dip_cells = np.concatenate([density_dips - 1, density_dips])
        added_x = np.geomspace(x_grid[dip_cells], x_grid[dip_cells + 1], 7)[1:-1].ravel()
        mass, x_grid = np.append(mass, mass_per_log(resolvent, added_x)), np.append(x_grid, added_x)
        x_order = np.argsort(x_grid)
        x_grid, mass = x_grid[x_order], mass[x_order]
    return x_grid, mass


def _edges_in_cells(
    resolvent: Resolvent, low: Array, high: Array, low_has_density: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """The edge in every cell (low, high), and whether it is sharp.

    ``low_has_density`` is true where the lower end of the cell carries density.
    """
    edges = np.full(len(low), np.nan)
    low, high = low.copy(), high.copy()
    for _ in range(4):  # cells are divided by 16 each time: five digits where no edge is sharp
        cells = np.flatnonzero(np.isnan(edges))
        turns = turning_point(resolvent, np.where(low_has_density, high, low)[cells])
        edges[cells] = np.where((turns >= low[cells]) & (turns <= high[cells]), turns, np.nan)
        cells = np.flatnonzero(np.isnan(edges))
        if not cells.size:
            break
        x = np.geomspace(low[cells], high[cells], 17, axis=1)
        has_density = mass_per_log(resolvent, x[:, 1:-1].ravel()) > NEGLIGIBLE_MASS
        before_edge = has_density.reshape(len(cells), -1) == low_has_density[cells, None]
        edge_cell = np.logical_and.accumulate(before_edge, axis=1).sum(axis=1)
        cell_index = np.arange(len(cells))
        low[cells], high[cells] = x[cell_index, edge_cell], x[cell_index, edge_cell + 1]
    is_sharp = ~np.isnan(edges)
    return np.where(is_sharp, edges, np.sqrt(low * high)), is_sharp


def turning_point(resolvent: Resolvent, x: Array) -> Array:
    """Point z with dz/ds = 0 on the curve of real solutions through x (P,) outside the spectrum.

    NaN where none is found or 1 + V(kappa) changes sign.
    """
    V, edge_z = resolvent.solutions(x.astype(complex)), x.astype(complex)
    transform = resolvent.transform(V)
    with np.errstate(all="ignore"):  # points without a turning point diverge
        V, edge_z, dz_ds, d2z_ds2 = _solution_at_transform(resolvent, V, edge_z, transform)
        for _ in range(12):  # six are enough where the cell has an edge
            # at most half of the distance to s = 0, where z is infinite
            s_step = np.clip((-dz_ds / d2z_ds2).real, -np.abs(transform) / 2, np.abs(transform) / 2)
            still_moving = np.abs(s_step) > 1e-12 * np.abs(transform)
            if not still_moving.any():
                break
            transform = transform + np.where(np.isfinite(s_step), s_step, 0.0)
            V, edge_z, dz_ds, d2z_ds2 = _solution_at_transform(resolvent, V, edge_z, transform)
        is_edge = np.abs(dz_ds) * np.abs(transform) < 1e-6 * np.abs(edge_z)
        is_edge &= resolvent.one_sign(V) & (np.abs(edge_z.imag) < 1e-9 * np.abs(edge_z))
    return np.where(is_edge, edge_z.real, np.nan)


def _solution_at_transform(
    resolvent: Resolvent, V: Array, z: Array, s: Array
) -> tuple[Array, Array, Array, Array]:
    """V and z where the transform is s, with dz/ds and d^2z/ds^2, by Newton from guesses V, z."""
    for _ in range(8):
        bordered_system = _bordered_system(resolvent, V, z)
        system_error = np.column_stack([resolvent.residual(V, z)[0], resolvent.transform(V) - s])
        bordered_step = solve_rows(bordered_system, -system_error)
        V, z = V + bordered_step[:, :-1], z + bordered_step[:, -1]
        if not (np.abs(bordered_step).max(axis=1) > 1e-12 * np.abs(V).max(axis=1)).any():
            break
    unit_transform = np.zeros_like(system_error)
    unit_transform[:, -1] = 1
    tangent = solve_rows(_bordered_system(resolvent, V, z), unit_transform)
    # second derivative: finite difference of the system along the tangent
    h = (1e-5 * np.abs(s))[:, None]
    ahead = _bordered_system(resolvent, V + h * tangent[:, :-1], z + h[:, 0] * tangent[:, -1])
    d2z_ds2 = (solve_rows(ahead, unit_transform) - tangent)[:, -1] / h[:, 0]
    return V, z, tangent[:, -1], d2z_ds2


def _bordered_system(resolvent: Resolvent, V: Array, z: Array) -> Array:
    """Bordered Jacobian (P, D + 1, D + 1): derivatives of the equations and of s in (V, z)."""
    edge_residual, V_derivative = resolvent.residual(V, z)
    z_derivative = resolvent.residual(V, z + 1)[0] - edge_residual  # linear in z
    D = V.shape[1]
    bordered_jacobian = np.zeros((len(V), D + 1, D + 1), dtype=complex)
    bordered_jacobian[:, :D, :D], bordered_jacobian[:, :D, D] = V_derivative, z_derivative
    bordered_jacobian[:, D, D - resolvent.responses.groups : D] = resolvent.ratio
    return bordered_jacobian


def angle_of(x: Array, low: float, high: float) -> Array:
    """The angle in (0, pi) with log x = middle - half cos(angle), for x (P,) in (low, high)."""
    log_low, b = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.arccos(np.clip((log_low + b - 2 * np.log(x)) / (b - log_low), -1, 1)))


def x_at_angle(angle: Array, low: float, high: float) -> Array:
    """The inverse of ``angle_of``: x (P,) at angles (P,)."""
    log_low, log_high = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.exp((log_low + log_high - (log_high - log_low) * np.cos(angle)) / 2))

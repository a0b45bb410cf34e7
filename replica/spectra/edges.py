"""Edges of the spectrum.  docs/theory.md 9.

A logarithmic grid brackets the ends of the density, and the brackets are divided.  At an edge the
squared density is analytic in x and has a simple zero, which is extrapolated from places inside,
to rounding.

Not every spectrum has edges.  Where the conditional variance of the features comes arbitrarily
close to 0 or infinity (or, slowly enough, to its supremum) in the tails of kappa, the density
runs out like the tails of the Gaussian; its end is then put where x times the density falls
below ``NEGLIGIBLE_MASS`` and marked as not sharp.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
    steep_mass = 1e-7  # the same a millionth of x inside an edge, at least

    def density_at(places: Array) -> NDArray[np.bool_]:
        return mass_per_log(resolvent, places) > NEGLIGIBLE_MASS

    x, mass = _refine_at_dips(resolvent, x, mass)
    has_density = mass > NEGLIGIBLE_MASS
    inside, outside = density_ends(x, has_density, density_at, pieces=16, rounds=4)
    edge_cell, cell_counts = (inside - outside)[..., None], np.arange(4.0)
    square = mass_per_log(resolvent, (inside[..., None] + edge_cell * cell_counts).ravel()) ** 2
    square = square.reshape(*inside.shape, 1, 4)
    with np.errstate(all="ignore"):  # ends of the grid have no cell
        # Lagrange's polynomial for the place as a function of the squared density, at 0
        lagrange_factors = square / (square - square.swapaxes(2, 3))
        lagrange_factors[..., range(4), range(4)] = 1.0
        edges = inside + edge_cell[..., 0] * (lagrange_factors.prod(axis=-1) @ cell_counts)
        # in a tail the density at a cell's distance is as small as at its end
        is_sharp = ((edges - inside) * (edges - outside) < 0) & (square[..., 0, 1] > steep_mass**2)
    edges = np.where(is_sharp, edges, np.sqrt(inside * outside))
    if has_density[0]:
        edges[0, 0] = 0.0
    return edges, is_sharp


def density_ends(
    x: Array,
    has_density: NDArray[np.bool_],
    density_at: Callable[[Array], NDArray[np.bool_]],
    pieces: int,
    rounds: int,
) -> tuple[Array, Array]:
    """Places (n, 2) right inside and right outside the ends of n intervals with a density, of which
    a grid of increasing x (P,) tells where it ``has_density``: its cells are divided into
    ``pieces``, so many ``rounds``.  The ends of the grid itself are both."""
    cells = np.flatnonzero(has_density[1:] != has_density[:-1])
    cell_low, cell_high = x[cells], x[cells + 1]
    inside, outside = np.where(has_density[cells], (cell_low, cell_high), (cell_high, cell_low))
    for _ in range(rounds):
        places = np.geomspace(inside, outside, pieces + 1, axis=1)
        with_density = density_at(places[:, 1:-1].ravel()).reshape(len(cells), pieces - 1)
        last_inside = np.logical_and.accumulate(with_density, axis=1).sum(axis=1)
        inside, outside = places[np.arange(len(cells)), [last_inside, last_inside + 1]]
    first, final = x[:1][has_density[:1]], x[-1:][has_density[-1:]]
    inside, outside = (np.concatenate([first, ends, final]) for ends in (inside, outside))
    return inside.reshape(-1, 2), outside.reshape(-1, 2)


def mass_per_log(resolvent: Resolvent, x: Array, U: Array | None = None) -> Array:
    """Mass per unit of log x, x times the density, at x (P,), from solutions U (P, D) if given."""
    resolvent_coordinates = resolvent.solutions(x.astype(complex)) if U is None else U
    spectral_density = resolvent.transform(resolvent_coordinates).imag / np.pi
    return np.asarray(x * np.nan_to_num(spectral_density))


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


def angle_of(x: Array, low: float, high: float) -> Array:
    """The angle in (0, pi) with log x = middle - half cos(angle), for x (P,) in (low, high)."""
    log_low, b = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.arccos(np.clip((log_low + b - 2 * np.log(x)) / (b - log_low), -1, 1)))


def x_at_angle(angle: Array, low: float, high: float) -> Array:
    """The inverse of ``angle_of``: x (P,) at angles (P,)."""
    log_low, log_high = np.log(max(low, SMALLEST_X * high)), np.log(high)
    return np.asarray(np.exp((log_low + log_high - (log_high - log_low) * np.cos(angle)) / 2))

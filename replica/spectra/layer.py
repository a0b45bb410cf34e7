"""The spectrum of a given first layer, from (20.2) at complex penalties.  docs/theory.md 20

At lam = -(n/p) z the response is G = (p/n) E (Phi^T Phi / n - z)^-1, up to terms of order 1/n, so
that (n/p) tr G / p is the Stieltjes transform at z.  The solution is continued along the real line,
from above the spectrum downwards.

Eigenvectors of M = E phi phi^T whose eigenvalues are far above the others make outliers.  They are
projected out of the response of the bulk.  An outlier x is an eigenvalue of
sum_nu omega M_nu / (1 + V_nu), with the bulk's V at x.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from solvers.arrays import diagonal_view
from solvers.fixed_point import fixed_point
from solvers.resources import GivenUp, check_time, one_thread
from solvers.results import Array, ConvergenceError, Indices, Status

from ..given import FirstLayer, Strata, check_memory
from .density import SpectralDensity, even_angles
from .edges import angle_of, density_ends, x_at_angle

LOG_V_TOLERANCE = 1e-5  # on log V
POINTS_PER_INTERVAL = 32  # of the grid between two edges
LAYER_TOLERANCE = 3e-3  # on x times the density, and on the mass


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LayerSpectrum(SpectralDensity):
    """The spectrum of Phi^T Phi / n of a given layer, (p, p), of :func:`replica.spectrum`.

    Attributes
    ----------
    model : FirstLayer
    samples : float
        Number of samples n.
    edges : (B, 2)
        The intervals that carry the density, in increasing order; to three digits or so.
    sharp : bool (B, 2)
        True at an edge of the density: all ends are, but for the lowest point of the grid.
    atom : float
        Share of eigenvalues that are exactly 0: of fewer samples than features, or of linearly
        dependent features.
    outliers : (O,)
        Eigenvalues above the bulk, the largest first; the density does not include them.
    quadrature_error : float
        Largest change of x times the density from coarser strata.
    mass_error : float
        Difference between the mass of the density and the exact mass of the bulk.
    status : Status
    """

    model: FirstLayer
    samples: float
    curves: tuple[Callable[[Array], Array], ...]  # x times the density as a function of the angle

    @property
    def settings(self) -> dict[str, Any]:
        """The layer and the number of samples, in plain values."""
        return self.model.described | {"samples": self.samples}

    @property
    def notes(self) -> list[str]:
        """Lines of text for the legend of a figure."""
        return super().notes + [f"outlier at {value:.3g}" for value in self.outliers[:2]]

    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,), interpolated in the angle."""
        angle = angle_of(x, *self.edges[interval])
        return np.maximum(self.curves[interval](angle), 0) / x


@one_thread()
def layer_spectrum(model: FirstLayer, samples: float, quadrature_tol: float) -> LayerSpectrum:
    """The spectrum of a given layer, on finer and finer strata until the density converges.

    At the deadline, the finest spectrum found so far, flagged.
    """
    check_memory(model)
    model = replace(model, intercept=False, device="cpu")  # an intercept changes no other feature
    strata_level, change = 0, np.inf
    found: LayerSpectrum | None = None
    with suppress(GivenUp):
        while (stratified := model.stratified(strata_level)) is not None:
            solver = _BulkSolver(stratified.strata, samples)
            if found is not None:
                # every seventh grid point is compared
                grids = [found.grid(k, POINTS_PER_INTERVAL)[2::7] for k in range(len(found.edges))]
                x = np.concatenate(grids)[::-1]
                density_before = x * found.density(x)
                density_after = solver.density_along(x, solver.leading_order(solver.highest))[0]
                change = float(np.abs(density_after - density_before).max() / density_before.max())
                if change <= quadrature_tol:
                    break
            found, strata_level = _spectrum_on_strata(model, solver, samples), strata_level + 1
    if found is None:
        raise GivenUp(Status.TIME)
    return found._flagged(solver.mass, LAYER_TOLERANCE, change, quadrature_tol)


def _spectrum_on_strata(model: FirstLayer, solver: "_BulkSolver", samples: float) -> LayerSpectrum:
    """The spectrum on one set of strata, without error estimates."""
    negligible_density = 1e-4  # x times the density that counts as zero: V is not exact
    from scipy.interpolate import CubicSpline

    decades = np.log10(solver.highest / solver.lowest)
    x_down = np.geomspace(solver.highest, solver.lowest, int(10 * decades) + 2)
    known = [(solver.highest, solver.leading_order(solver.highest))]  # x, and V there

    def mass_along(places: Array) -> Array:
        """x times the density from one place to the next, from the nearest that is known."""
        nearest_V = min(known, key=lambda pair: abs(np.log(pair[0] / places[0])))[1]
        mass, V = solver.density_along(places, nearest_V)
        with_density = zip(places, V, mass > negligible_density, strict=True)
        known.extend((place, place_V) for place, place_V, is_inside in with_density if is_inside)
        return mass

    def density_at(places: Array) -> NDArray[np.bool_]:
        return np.array([mass_along(place)[0] > negligible_density for place in places[:, None]])

    x, has_density = x_down[::-1], mass_along(x_down)[::-1] > negligible_density
    if not has_density.any():
        raise ConvergenceError("no density was found anywhere", None)
    layer_edges, outside = density_ends(x, has_density, density_at, pieces=2, rounds=8)
    layer_sharp, curves = layer_edges != outside, []
    for (low_edge, high_edge), padding in zip(layer_edges, layer_sharp.astype(int), strict=True):
        curve_angle = even_angles(POINTS_PER_INTERVAL)
        mass = mass_along(x_at_angle(curve_angle, low_edge, high_edge)[::-1])[::-1]
        curve_finite = np.isfinite(mass)  # next to an edge the iteration may fail
        curve_angle = np.pad(curve_angle[curve_finite], padding, constant_values=(0.0, np.pi))
        curves.append(CubicSpline(curve_angle, np.pad(mass[curve_finite], padding)))
    return LayerSpectrum(
        model=model,
        samples=samples,
        edges=layer_edges,
        sharp=layer_sharp,
        atom=solver.atom,
        outliers=solver.outliers[solver.outliers > layer_edges.max()],
        curves=tuple(curves),
    )


class _BulkSolver:
    """Solutions of (20.2) at z on or above the real line, with the outliers projected out.

    Attributes
    ----------
    outliers : (O,)
        Positions, found first.
    atom : float
        Share of eigenvalues that are 0.
    mass : float
        Share of eigenvalues in the bulk.
    lowest, highest : float
        Bounds on the bulk.
    """

    def __init__(self, strata: Strata, samples: float) -> None:
        self.strata, self.ratio = strata, samples / strata.width
        sizes = np.linalg.eigvalsh(strata.mix(strata.shares))[::-1]
        self._modes = np.empty((strata.width, 0))
        feature_rank = int(np.count_nonzero(sizes > 1e-12 * sizes[0]))
        if not sizes[0] > 0:
            raise ConvergenceError("the features have no spectrum: they vanish", None)
        most_outliers = min(12, feature_rank - 1)  # outliers at most
        # n samples estimate an eigenvalue x to about x sqrt(2 / n)
        gaps = sizes[:most_outliers] > sizes[1 : most_outliers + 1] * (1 + 4 * np.sqrt(2 / samples))
        outlier_count = int(np.flatnonzero(gaps).max(initial=-1)) + 1
        outlier_positions = [self._outlier(sizes[k], k + 1) for k in range(outlier_count)]
        self.outliers = np.array(outlier_positions)
        self.atom = 1 - min(samples, feature_rank) / strata.width
        self.mass = min(samples, feature_rank - outlier_count) / strata.width
        norm_factor = 1 + 1 / np.sqrt(self.ratio)
        self.highest = 2 * sizes[outlier_count] * norm_factor**2
        smallest_bulk = sizes[feature_rank - 1] * (norm_factor - 2) ** 2 / 10
        self.lowest = max(1e-8 * self.highest, smallest_bulk)

    def _outlier(self, position: float, count: int) -> float:
        """Position of the outlier of rank ``count``, by iteration from a guess ``position``.

        Sets ``_modes`` to the leading ``count`` eigenvectors.  NaN if the iteration does not
        converge: there is no such outlier.
        """
        bulk_V = self.leading_order(position)
        for _ in range(60):
            weighted_moments = self.strata.mix(self.strata.shares / (1 + bulk_V))
            if not np.isfinite(weighted_moments).all():
                break
            p, previous_position = len(weighted_moments), position
            (position, *_), self._modes = eigh(weighted_moments, subset_by_index=[p - count, p - 1])
            bulk_V = self.response_map(bulk_V, position)[1].real
            if abs(position / previous_position - 1) <= LOG_V_TOLERANCE:
                return float(position)
        return np.nan

    def leading_order(self, z: float) -> Array:
        """V (N,) at large z, to the leading order in 1 / z."""
        return self.strata.trace(np.eye(self.strata.width)) / (-z * self.ratio)

    def response_map(self, V: Array, z: complex) -> tuple[Array, Array]:
        """G at V (N,), and the V (N,) that follows from it, by (20.2).

        Raises ``GivenUp`` past the deadline.
        """
        check_time()
        weights = self.ratio * self.strata.shares / (1 + V)
        total = self._projected(self.strata.mix(weights.real) + 1j * self.strata.mix(weights.imag))
        diagonal_view(total)[:] += -z * self.ratio
        G = self._projected(np.linalg.inv(total))
        return G, self.strata.trace(G.real.copy()) + 1j * self.strata.trace(G.imag.copy())

    def _projected(self, strata_matrix: Array) -> Array:
        """A matrix (p, p) projected on the complement of the outliers' eigenvectors."""
        right_projected = strata_matrix - (strata_matrix @ self._modes) @ self._modes.T
        return right_projected - self._modes @ (self._modes.T @ right_projected)

    def solve(self, z: complex, start: Array) -> Array:
        """V (N,) at z with Im z >= 0, from a guess ``start``; NaN if the iteration fails."""
        N = len(start)

        def log_V_image(log_V: Array, rows: Indices) -> Array:
            return _log_parts(self.response_map(np.exp(log_V[0, :N] + 1j * log_V[0, N:]), z)[1])

        with np.errstate(all="ignore"):
            layer_solution = fixed_point(
                log_V_image,
                _log_parts(start),
                tol=LOG_V_TOLERANCE,
                size=np.ones_like,
                history=np.zeros((1, 8, 2, 2 * N)),
                linear_below=1.0,
                longest_step=2.0,
                max_iterations=100,
            )
        log_V = layer_solution.value[0]
        V_converged = layer_solution.status[0] is Status.CONVERGED
        return np.exp(log_V[:N] + 1j * log_V[N:]) if V_converged else np.full(N, np.nan + 0j)

    def density_along(self, grid: Array, start_V: Array) -> tuple[Array, list[Array]]:
        """x times the density at ``grid`` x (P,), and V, by continuation from one to the next."""
        density_masses, V_solutions = [], []
        for x in grid:
            V = np.full_like(start_V, np.nan)
            if np.abs(np.imag(start_V)).max() > 1e-3 * np.abs(start_V).max():
                V = self.solve(x, start_V)
            # from a real guess V would stay real: the line is reached from above
            for angle in () if np.isfinite(V).all() else (0.3, 0.05, 0.01, 0.0):
                V = self.solve(x * np.exp(1j * angle), start_V)
                start_V = V if np.isfinite(V).all() else start_V
            start_V = V if np.isfinite(V).all() else start_V
            G = self.response_map(start_V, x)[0]
            stieltjes_transform = self.ratio * np.trace(G) / self.strata.width
            V_is_finite = np.isfinite(V).all()
            density_masses.append(x * stieltjes_transform.imag / np.pi if V_is_finite else np.nan)
            V_solutions.append(start_V)
        return np.array(density_masses), V_solutions


def _log_parts(V: Array) -> Array:
    """Real and imaginary parts of log V, (1, 2 N), for V with Im V >= 0 up to rounding."""
    log_V = np.log(np.real(V) + 1j * np.abs(np.imag(V)))
    return np.concatenate([log_V.real, log_V.imag])[None]

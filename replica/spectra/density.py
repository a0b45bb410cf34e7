"""A spectrum as a density on intervals, an atom at 0, and outliers."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.results import Array, Status

from ..display import Displayed
from ..plotting import plot_spectrum
from .edges import SMALLEST_X, x_at_angle

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpectralDensity(Displayed):
    """The spectrum of Phi^T Phi / n, (p, p); ``Spectrum`` and ``LayerSpectrum`` document the
    attributes."""

    edges: Array
    sharp: NDArray[np.bool_]
    atom: float
    outliers: Array
    quadrature_error: float = np.nan
    mass_error: float = np.nan
    status: Status = Status.QUADRATURE

    @property
    def converged(self) -> bool:
        """True if the quadrature error and the mass meet their tolerances."""
        return self.status == Status.CONVERGED

    @property
    def notes(self) -> list[str]:
        """Lines of text for the legend of a figure."""
        atom = [f"atom at 0: {self.atom:.3g}"] if self.atom else []
        return atom + ["density diverges at 0"] * self.diverges

    def outliers_at(self, width: int | None) -> Array:
        """Positions (O,) of the outliers for features of ``width`` p."""
        return self.outliers

    def outliers_among(self, eigenvalues: ArrayLike) -> Array:
        """Eigenvalues beyond the bulk, (draws, K), among ``eigenvalues`` (draws, p) of simulated
        matrices: from the largest on, NaN where a draw has fewer."""
        eigenvalues_down = np.sort(np.atleast_2d(eigenvalues))[:, ::-1]
        above_bulk = eigenvalues_down > self.outlier_threshold(eigenvalues_down.shape[1])
        return np.where(above_bulk, eigenvalues_down, np.nan)[:, : above_bulk.sum(axis=1).max()]

    def outlier_threshold(self, width: int) -> float:
        """Place above which one of p = ``width`` simulated eigenvalues stands clear of the bulk:
        its end, and four times the scale on which the largest of a Wishart matrix varies there."""
        root_positive, root_p = np.sqrt([(1 - self.atom) * width, width])
        edge_width = 4 * np.cbrt(1 / root_positive + 1 / root_p) / (root_positive + root_p)
        return float(self._bulk_end(width) * (1 + edge_width))

    def _bulk_end(self, width: float) -> float:
        """Upper end of the bulk of p = ``width`` eigenvalues: the largest edge, or, where a tail
        ends at no sharp edge, the place beyond which 0.01 of them are expected."""
        if self.sharp[-1, 1]:
            return float(self.edges[-1, 1])
        tail_x, tail_share = self._tail
        return float(np.exp(np.interp(np.log(width / 0.01), -np.log(tail_share), np.log(tail_x))))

    @cached_property
    def _tail(self) -> tuple[Array, Array]:
        """Places in the last interval, in increasing order, and the share of eigenvalues beyond:
        none beyond the last, which is the edge, nor anywhere if the density is not known."""
        x, bulk_edge = self.grid(len(self.edges) - 1, 400), float(self.edges[-1, 1])
        density_mass = np.append(self.density(x) * np.gradient(x), 0.0)
        tail_share = np.cumsum(density_mass[::-1])[::-1]
        known_density = np.isfinite(tail_share)
        return np.append(x, bulk_edge)[known_density], np.maximum(tail_share[known_density], 1e-300)

    def _flagged(self, mass: float, mass_tol: float, change: float, quadrature_tol: float) -> Self:
        """The spectrum with quadrature_error, mass_error and status.

        Parameters
        ----------
        mass : float
            Exact mass of the density.
        change : float
            Change of the density from the next coarser rule.
        mass_tol, quadrature_tol : float
        """
        mass_error = abs(self.moment(0) - mass)
        density_status = Status.CONVERGED if mass_error <= mass_tol else Status.MASS
        if np.isnan(mass_error):  # somewhere no density was found
            density_status = Status.NOT_FINITE
        elif not change <= quadrature_tol:
            density_status = Status.QUADRATURE
        return replace(self, quadrature_error=change, mass_error=mass_error, status=density_status)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        eigenvalues: Array | None = None,
        label: str | None = None,
    ) -> "Axes":
        """Plot of the density, by :func:`replica.plotting.plot_spectrum`."""
        return plot_spectrum(self, ax, eigenvalues=eigenvalues, label=label)

    def density(self, x: ArrayLike) -> Array:
        """Density of the eigenvalues at real x of any shape; its mass is 1 less atom and outliers.

        0 outside the edges, infinite at 0 where it diverges, NaN where no solution was found.
        """
        x = np.asarray(x, dtype=float)
        density_at_x = np.where(np.isnan(x), np.nan, 0.0)
        for interval, (low_edge, high_edge) in enumerate(self.edges):
            between_edges = (x > max(low_edge, SMALLEST_X * high_edge)) & (x < high_edge)
            if between_edges.any():
                density_at_x[between_edges] = self._density(x[between_edges], interval)
            near_zero = (low_edge == 0) & (x >= 0) & (x <= SMALLEST_X * high_edge)
            if near_zero.any():
                least_x, least_density, power_of_x = self._towards_zero(interval)
                with np.errstate(divide="ignore"):
                    density_at_x[near_zero] = least_density * (x[near_zero] / least_x) ** power_of_x
        return density_at_x

    def _towards_zero(self, interval: int) -> tuple[float, float, float]:
        """The least x of an interval at which the density is solved for, that density, and the
        power of x that it follows below; a density of 0 where it has no such power: at 2 and 20
        times that x, and at 200 and 2000 times it, it has the same."""
        low_edge, high_edge = self.edges[interval]
        x_near_zero = SMALLEST_X * high_edge * np.array([1.0, 2.0, 20.0, 200.0, 2000.0])
        density_near_zero = np.zeros(4) if low_edge else self._density(x_near_zero[1:], interval)
        if np.isnan(density_near_zero).any():  # somewhere no density was found
            return float(x_near_zero[0]), np.nan, 0.0
        exponent = exponent_above = -1.0
        if (density_near_zero > 0).all():
            exponent, exponent_above = np.log10(density_near_zero[1::2] / density_near_zero[::2])
        # a power of -1 or less has no mass; to 0.02 the two are one
        if exponent <= -1 or abs(exponent_above - exponent) > 0.02:
            return float(x_near_zero[0]), 0.0, 0.0
        return float(x_near_zero[0]), float(density_near_zero[0] * 0.5**exponent), float(exponent)

    @property
    def diverges(self) -> bool:
        """True if the density grows beyond all bounds towards 0."""
        return any(self._towards_zero(k)[2] < 0 for k in range(len(self.edges)))

    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,) inside one of the intervals."""
        raise NotImplementedError

    def grid(self, interval: int, points: int) -> Array:
        """Grid of so many ``points`` in one of the intervals, denser towards its edges."""
        return x_at_angle(even_angles(points), *self.edges[interval])

    def moment(self, k: int) -> float:
        """Integral of x^k times the density, k >= 0; the mass of the bulk for k = 0.

        Adaptive quadrature in the angle of ``angle_of``, in which square roots at the edges are
        smooth.  It is adaptive as a density may nearly vanish inside an interval.
        """
        behaviour_at_0 = [self._towards_zero(interval) for interval in range(len(self.edges))]
        masses_at_0 = (y * x ** (k + 1) / (exponent + k + 1) for x, y, exponent in behaviour_at_0)
        return sum(self._moment(k, low, high) for low, high in self.edges) + sum(masses_at_0)

    def _moment(self, k: int, low_edge: float, high_edge: float) -> float:
        """Contribution to ``moment`` of the interval between ``low_edge`` and ``high_edge``."""
        from scipy.integrate import cubature

        log_half_width = np.log(high_edge / max(low_edge, SMALLEST_X * high_edge)) / 2

        def integrand(density_angle: Array) -> Array:
            x = x_at_angle(density_angle[:, 0], low_edge, high_edge)
            return self.density(x) * x ** (k + 1) * log_half_width * np.sin(density_angle[:, 0])

        tolerances = {"rtol": 1e-9, "atol": 1e-12 * high_edge**k}
        # a square-root edge takes half as many subdivisions
        moment_integral = cubature(integrand, [0.0], [np.pi], **tolerances, max_subdivisions=60)
        return float(moment_integral.estimate)

    def _facts(self) -> dict[str, Any]:
        errors = f"quadrature_error {self.quadrature_error:.1e}, mass_error {self.mass_error:.1e}"
        density_status = f"{self.status.value} ({errors})"
        density_facts = {name: getattr(self, name) for name in ("edges", "atom", "outliers")}
        density_diverges = {"density": "diverges at 0"} if self.diverges else {}
        return density_facts | density_diverges | {"status": density_status}

    def _rows(self) -> list[dict[str, float]]:
        grid_x = np.concatenate([self.grid(interval, 500) for interval in range(len(self.edges))])
        density_rows = zip(grid_x.tolist(), self.density(grid_x).tolist(), strict=True)
        return [{"x": density_x, "density": density} for density_x, density in density_rows]


def even_angles(angle_count: int) -> Array:
    """Evenly spaced angles (count,) of ``angle_of`` between the edges of an interval."""
    return (np.arange(angle_count) + 0.5) * np.pi / angle_count

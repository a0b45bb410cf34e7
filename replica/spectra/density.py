"""What every spectrum has: a density on intervals, an atom at 0, and outliers."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.results import Array, Status

from ..display import Displayed
from ..plotting import plot_spectrum
from .edges import SMALLEST_X, place_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpectralDensity(Displayed):
    """The spectrum of Phi^T Phi / n, (p, p): ``Spectrum`` and ``LayerSpectrum`` say what of, and
    what the attributes are."""

    edges: Array
    sharp: NDArray[np.bool_]
    atom: float
    outliers: Array
    quadrature_error: float = np.nan
    mass_error: float = np.nan
    status: Status = Status.QUADRATURE

    @property
    def converged(self) -> bool:
        """Whether quadrature error and mass met their tolerances."""
        return self.status == Status.CONVERGED

    @property
    def notes(self) -> list[str]:
        """What a figure says beside the density."""
        atom = [f"atom at 0: {self.atom:.3g}"] if self.atom else []
        return atom + ["density diverges at 0"] * self.diverges

    def outliers_at(self, width: int | None) -> Array:
        """Where the outliers of features of that ``width`` p are, (O,): of a given layer those of
        its own; of a limit, none where they depend on p, and that is not known."""
        return self.outliers

    def _judged(self, mass: float, mass_tol: float, change: float, quadrature_tol: float) -> Self:
        """The same with what it is known to: the ``change`` from coarser rules, and what its mass
        lacks of what it should be."""
        lacking = abs(self.moment(0) - mass)
        status = Status.CONVERGED if lacking <= mass_tol else Status.MASS
        if np.isnan(lacking):  # somewhere no density was found
            status = Status.NOT_FINITE
        elif not change <= quadrature_tol:
            status = Status.QUADRATURE
        return replace(self, quadrature_error=change, mass_error=lacking, status=status)

    def plot(self, ax: "Axes | None" = None, *, eigenvalues: Array | None = None) -> "Axes":
        """The density, :func:`replica.plotting.plot_spectrum`."""
        return plot_spectrum(self, ax, eigenvalues=eigenvalues)

    def density(self, x: ArrayLike) -> Array:
        """Density of the eigenvalues at real x of any shape, of mass 1 less atom and outliers; 0
        outside the edges, NaN where it was not found, infinite at 0 where it diverges."""
        x = np.asarray(x, dtype=float)
        density = np.where(np.isnan(x), np.nan, 0.0)
        for interval, (low, high) in enumerate(self.edges):
            inside = (x > max(low, SMALLEST_X * high)) & (x < high)
            if inside.any():
                density[inside] = self._density(x[inside], interval)
            below = (low == 0) & (x >= 0) & (x <= SMALLEST_X * high)
            if below.any():
                least, own, power = self._towards_zero(interval)
                with np.errstate(divide="ignore"):
                    density[below] = own * (x[below] / least) ** power
        return density

    def _towards_zero(self, interval: int) -> tuple[float, float, float]:
        """The least x of an interval at which the density is solved for, that density, and the
        power of x that it follows below; a density of 0 where it has no such power."""
        low, high = self.edges[interval]
        x = SMALLEST_X * high * np.array([1.0, 2.0, 20.0])
        y = np.zeros(2) if low else self._density(x[1:], interval)
        power = np.log(y[1] / y[0]) / np.log(10) if (y > 0).all() else -1.0
        if power <= -1:  # which has no mass
            return float(x[0]), 0.0, 0.0
        return float(x[0]), float(y[0] * 0.5**power), float(power)

    @property
    def diverges(self) -> bool:
        """Whether the density grows beyond all bounds towards 0."""
        return any(self._towards_zero(k)[2] < 0 for k in range(len(self.edges)))

    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,) inside one of the intervals."""
        raise NotImplementedError

    def grid(self, interval: int, points: int) -> Array:
        """``points`` places in one of the intervals, denser towards its edges."""
        return place_of(angles(points), *self.edges[interval])

    def moment(self, k: int) -> float:
        """Integral of x^k times the density, k >= 0; the mass of the bulk for k = 0.

        In the angle that makes the square roots at the edges smooth; adaptively, as a density
        may all but vanish beyond what looks like an edge.
        """
        least = [self._towards_zero(i) for i in range(len(self.edges))]
        below = (y * x ** (k + 1) / (power + k + 1) for x, y, power in least)
        return sum(self._moment(k, low, high) for low, high in self.edges) + sum(below)

    def _moment(self, k: int, low: float, high: float) -> float:
        """The part of ``moment`` from the interval between ``low`` and ``high``."""
        from scipy.integrate import cubature

        stretch = np.log(high / max(low, SMALLEST_X * high)) / 2

        def integrand(angle: Array) -> Array:
            x = place_of(angle[:, 0], low, high)
            return self.density(x) * x ** (k + 1) * stretch * np.sin(angle[:, 0])

        tolerances = {"rtol": 1e-9, "atol": 1e-12 * high**k}
        # twice the subdivisions that an edge takes
        integral = cubature(integrand, [0.0], [np.pi], **tolerances, max_subdivisions=60)
        return float(integral.estimate)

    def _facts(self) -> dict[str, Any]:
        status = f"{self.status.value} (quadrature_error {self.quadrature_error:.1e})"
        known = {name: getattr(self, name) for name in ("edges", "atom", "outliers")}
        diverges = {"density": "diverges at 0"} if self.diverges else {}
        return known | diverges | {"status": status}

    def _rows(self) -> list[dict[str, float]]:
        x = np.concatenate([self.grid(k, 500) for k in range(len(self.edges))])
        columns = zip(x.tolist(), self.density(x).tolist(), strict=True)
        return [{"x": place, "density": density} for place, density in columns]


def angles(count: int) -> Array:
    """So many, evenly between the edges of an interval: of ``angle_of``."""
    return (np.arange(count) + 0.5) * np.pi / count

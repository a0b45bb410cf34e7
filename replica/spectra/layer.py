"""The spectrum of a given first layer, from (20.2) at complex penalties.  docs/theory.md 20

At lam = -(n/p) z the response is G = (p/n) E (Phi^T Phi / n - z)^-1, up to terms of order 1/n, so
that (n/p) tr G / p is the Stieltjes transform at z.  It is followed along the real line, from above
the spectrum downwards.

Modes of M = E phi phi^T far above the others make eigenvalues of their own.  They are projected out
of the response that the bulk is found from.  With that response at the place x of an outlier, x is
an eigenvalue of sum_nu omega M_nu / (1 + V_nu).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from solvers.arrays import diagonal_view
from solvers.fixed_point import fixed_point
from solvers.resources import GivenUp, check_time, one_thread
from solvers.results import Array, ConvergenceError, Rows, Status

from ..given import FirstLayer, Strata, check_memory
from .density import SpectralDensity, angles
from .edges import angle_of, place_of

TOLERANCE = 1e-5  # of log V
LOWEST = 1e-8  # place that is looked at, relative to the highest
PER_DECADE, PER_INTERVAL = 10, 32  # places
NEGLIGIBLE = 1e-4  # x times the density below which there is none: there V is known to TOLERANCE
MOST_OUTLIERS = 12
BESIDE = 0.3, 0.05, 0.01, 0.0  # angles above the line at which a place is approached
LAYER_TOLERANCE = 3e-3  # of x times the density, and of the mass


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LayerSpectrum(SpectralDensity):
    """The spectrum of Phi^T Phi / n of a given layer, (p, p), of :func:`replica.spectrum`.

    Attributes
    ----------
    model : FirstLayer
    samples : float
        n.
    edges : (B, 2)
        The intervals that carry the density, in increasing order; to three digits or so.
    sharp : bool (B, 2)
        Which ends are edges: all but the lowest place that was looked at.
    atom : float
        Share of eigenvalues that are exactly 0, as there are fewer samples than features, or
        features that depend on each other.
    outliers : (O,)
        Eigenvalues above the bulk, the largest first, none of which is part of the density.
    quadrature_error : float
        Largest change of x times the density from coarser strata.
    mass_error : float
        What the mass of the density lacks of that of the other eigenvalues.
    status : Status
    """

    model: FirstLayer
    samples: float
    curves: tuple[Callable[[Array], Array], ...]  # x times the density, of the angle

    @property
    def settings(self) -> dict[str, Any]:
        """The layer and the number of samples, in plain values."""
        return self.model.described | {"samples": self.samples}

    @property
    def notes(self) -> list[str]:
        """What a figure says beside the density."""
        return super().notes + [f"outlier at {value:.3g}" for value in self.outliers[:2]]

    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,), between places at which it was found."""
        angle = angle_of(x, *self.edges[interval])
        return np.maximum(self.curves[interval](angle), 0) / x


@one_thread()
def layer_spectrum(model: FirstLayer, samples: float, quadrature_tol: float) -> LayerSpectrum:
    """The spectrum of a given layer, of :func:`replica.spectrum`: on finer and finer strata, until
    the density stands still, or the deadline."""
    check_memory(model)
    model = replace(model, intercept=False, device="cpu")  # an intercept changes no other feature
    level, change = 0, np.inf
    found: LayerSpectrum | None = None
    with suppress(GivenUp):
        while (given := model.stratified(level)) is not None:
            line = _Line(given.strata, samples)
            if found is not None:
                # some of the places at which the density was found
                grids = [found.grid(k, PER_INTERVAL)[2::7] for k in range(len(found.edges))]
                x = np.concatenate(grids)[::-1]
                before, now = x * found.density(x), line.along(x, line.far(line.highest))[0]
                change = float(np.abs(now - before).max() / before.max())
                if change <= quadrature_tol:
                    break
            found, level = _found(model, line, samples), level + 1
    if found is None:
        raise GivenUp(Status.TIME)
    return found._judged(line.mass, LAYER_TOLERANCE, change, quadrature_tol)


def _found(model: FirstLayer, line: "_Line", samples: float) -> LayerSpectrum:
    """The spectrum on one set of strata; what it is known to is still open."""
    from scipy.interpolate import CubicSpline

    x, mass, V = _scanned(line)
    inside = mass > NEGLIGIBLE
    if not inside.any():
        raise ConvergenceError("no density was found anywhere", None)
    ends = [x[0]] if inside[0] else []
    for k in np.flatnonzero(inside[1:] != inside[:-1]):
        outer, inner = (x[k], x[k + 1]) if inside[k + 1] else (x[k + 1], x[k])
        start = V[k + 1] if inside[k + 1] else V[k]
        for _ in range(8):
            middle = np.sqrt(outer * inner)
            (there,), (at,) = line.along(np.array([middle]), start)
            if there > NEGLIGIBLE:
                inner, start = middle, at
            else:
                outer = middle
        ends.append(inner)
    if inside[-1]:
        ends.append(x[-1])
    edges = np.array(ends)[::-1].reshape(-1, 2)
    sharp = np.full(edges.shape, True)
    sharp[0, 0] = not inside[-1]
    curves = []
    for (low, high), sharp_low in zip(edges, sharp[:, 0], strict=True):
        angle = angles(PER_INTERVAL)
        places = place_of(angle, low, high)[::-1]
        start = V[int(np.argmin(np.abs(np.log(x / places[0]))))]
        mass = line.along(places, start)[0][::-1]
        known = np.isfinite(mass)  # next to an edge it may not be
        zeros = int(sharp_low), 1
        angle = np.pad(angle[known], zeros, constant_values=(0.0, np.pi))
        curves.append(CubicSpline(angle, np.pad(mass[known], zeros)))
    return LayerSpectrum(
        model=model,
        samples=samples,
        edges=edges,
        sharp=sharp,
        atom=line.atom,
        outliers=line.outliers[line.outliers > edges.max()],
        curves=tuple(curves),
    )


def _scanned(line: "_Line") -> tuple[Array, Array, list[Array]]:
    """Places x (P,) downwards until the mass is complete, x times the density and V there."""
    decades = np.log10(line.highest / line.lowest)
    x = np.geomspace(line.highest, line.lowest, int(decades * PER_DECADE) + 2)
    masses, V = np.empty(0), [line.far(line.highest)]
    for part in np.array_split(x, int(decades) + 1):
        mass, found = line.along(part, V[-1])
        masses, V = np.append(masses, mass), V + found
        total = np.nansum(masses) * np.log(x[0] / x[1])
        if not masses[-1] > NEGLIGIBLE and total > 0.98 * line.mass:
            break
    return x[: masses.size], masses, V[1:]


class _Line:
    """Solutions of (20.2) at places z on, or beside, the real line, of features without the modes
    of the ``outliers`` (O,), which are found first; the ``atom``, and the ``mass`` that is left for
    the density."""

    def __init__(self, strata: Strata, samples: float) -> None:
        self.strata, self.ratio = strata, samples / strata.width
        sizes = np.linalg.eigvalsh(strata.mix(strata.shares))[::-1]
        self._modes = np.empty((strata.width, 0))
        rank = int(np.count_nonzero(sizes > 1e-12 * sizes[0]))
        if not sizes[0] > 0:
            raise ConvergenceError("the features have no spectrum: they vanish", None)
        most = min(MOST_OUTLIERS, rank - 1)
        # samples move an eigenvalue by about x sqrt(2 / n)
        gaps = sizes[:most] > sizes[1 : most + 1] * (1 + 4 * np.sqrt(2 / samples))
        count = int(np.flatnonzero(gaps).max(initial=-1)) + 1
        places = [self._outlier(sizes[k], k + 1) for k in range(count)]
        self.outliers = np.array(places)
        self.atom = 1 - min(samples, rank) / strata.width
        self.mass = min(samples, rank - count) / strata.width
        widest = 1 + 1 / np.sqrt(self.ratio)
        self.highest = 2 * sizes[count] * widest**2
        least = sizes[rank - 1] * (widest - 2) ** 2 / 10
        self.lowest = max(LOWEST * self.highest, least)

    def _outlier(self, place: float, count: int) -> float:
        """The place of one, from a guess, and projections of so many modes in all; NaN where there
        is none, as the iteration does not stand still."""
        V = self.far(place)
        for _ in range(60):
            mixed = self.strata.mix(self.strata.shares / (1 + V))
            if not np.isfinite(mixed).all():
                break
            p, before = len(mixed), place
            (place, *_), self._modes = eigh(mixed, subset_by_index=[p - count, p - 1])
            V = self.response(V, place)[1].real
            if abs(place / before - 1) <= TOLERANCE:
                return float(place)
        return np.nan

    def far(self, z: float) -> Array:
        """V (N,) at a large z."""
        return self.strata.trace(np.eye(self.strata.width)) / (-z * self.ratio)

    def response(self, V: Array, z: complex) -> tuple[Array, Array]:
        """G at V (N,), and what V that makes.  Eq. (20.2)  Raises ``GivenUp`` past the deadline."""
        check_time()
        weights = self.ratio * self.strata.shares / (1 + V)
        total = self._rest(self.strata.mix(weights.real) + 1j * self.strata.mix(weights.imag))
        diagonal_view(total)[:] += -z * self.ratio
        G = self._rest(np.linalg.inv(total))
        return G, self.strata.trace(G.real.copy()) + 1j * self.strata.trace(G.imag.copy())

    def _rest(self, matrix: Array) -> Array:
        """A matrix between projections that leave out the modes."""
        half = matrix - (matrix @ self._modes) @ self._modes.T
        return half - self._modes @ (self._modes.T @ half)

    def solve(self, z: complex, start: Array) -> Array:
        """V (N,) at z with Im z >= 0, from a guess; NaN where it is not found."""
        N = len(start)

        def image(x: Array, rows: Rows) -> Array:
            return _parts(self.response(np.exp(x[0, :N] + 1j * x[0, N:]), z)[1])

        with np.errstate(all="ignore"):
            found = fixed_point(
                image,
                _parts(start),
                tol=TOLERANCE,
                size=np.ones_like,
                history=np.zeros((1, 8, 2, 2 * N)),
                linear_below=1.0,
                longest_step=2.0,
                max_iterations=100,
            )
        x = found.value[0]
        good = found.status[0] is Status.CONVERGED
        return np.exp(x[:N] + 1j * x[N:]) if good else np.full(N, np.nan + 0j)

    def along(self, places: Array, start: Array) -> tuple[Array, list[Array]]:
        """x times the density at places x (P,), in their order, each from the one before, and V."""
        masses, found = [], []
        for x in places:
            V = np.full_like(start, np.nan)
            if np.abs(np.imag(start)).max() > 1e-3 * np.abs(start).max():
                V = self.solve(x, start)
            for turn in () if np.isfinite(V).all() else BESIDE:  # a real guess would stay real
                V = self.solve(x * np.exp(1j * turn), start)
                start = V if np.isfinite(V).all() else start
            start = V if np.isfinite(V).all() else start
            G = self.response(start, x)[0]
            transform = self.ratio * np.trace(G) / self.strata.width
            known = np.isfinite(V).all()
            masses.append(x * transform.imag / np.pi if known else np.nan)
            found.append(start)
        return np.array(masses), found


def _parts(V: Array) -> Array:
    """Real and imaginary parts of log V, (1, 2 N), for V with Im V >= 0 but for rounding."""
    log = np.log(np.real(V) + 1j * np.abs(np.imag(V)))
    return np.concatenate([log.real, log.imag])[None]

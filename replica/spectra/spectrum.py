"""The eigenvalues of the features' covariance Phi^T Phi / n.  docs/theory.md 9, [C] App. F.

The bulk of p = beta d eigenvalues from n = alpha d samples has the Stieltjes transform of
(9.1), found by continuation from the negative axis (``resolvent``), a density
Im s(x + i0) / pi, obtained on the real line itself and not at a distance from it, and edges
(``edges``).  Beside it stand an atom at 0 and, where the mu_0 do not vanish, outliers of order
p.  None of this depends on the target or on how the readout is fitted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT, GivenUp, deadline, one_thread
from solvers.results import Array, ConvergenceError
from solvers.settle import settle

from ..equivalence import Table, tables
from ..errors import InvalidArgument
from ..given import FeatureSample, FirstLayer, asked, needs_alpha, samples_of
from ..problem import (
    SpikedRandomFeatures,
    as_made,
    check_model,
    limits,
    one_positive,
    positive,
)
from ..saddle_point import ridge
from ..steps import NetworkRows
from .batch_contour import beside_line
from .contour import contour_table
from .density import SpectralDensity, angles
from .edges import NEGLIGIBLE_MASS, angle_of, mass_per_log, place_of, scan, support
from .layer import LAYER_TOLERANCE, LayerSpectrum, layer_spectrum
from .outliers import atom, outliers, outliers_from
from .resolvent import Resolvent

DENSITY_TOLERANCE = 1e-8  # of x times the density, which is of order one
# A resolvent with a grid x (P,) over the whole spectrum and its solutions U (P, D) there.
Scan = tuple[Resolvent, Array, Array]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Spectrum(SpectralDensity):
    """The limiting spectrum of Phi^T Phi / n, (p, p), of :func:`replica.spectrum`.

    Attributes
    ----------
    model : SpikedRandomFeatures
    alpha : float
        Samples over input dimension, n/d.
    edges : (B, 2)
        The intervals that carry the density, in increasing order.
    sharp : bool (B, 2)
        Which ends are edges at which the density vanishes like a square root, known to
        rounding.  Others are 0, or where x times the density runs out, below 1e-10.
    atom : float
        Share of eigenvalues that are exactly 0.
    outliers : (O,)
        Leading eigenvalues over p: those of (sqrt(pi_a pi_b) E mu_0^a mu_0^b), [C] Eq. (191).
    quadrature_error : float
        Largest change of x times the density from the next coarser rule.
    mass_error : float
        What the mass of the bulk and the atom lacks of 1: eigenvalues below 1e-18 of the largest;
        in a network, what is lost on the axis of labels that cannot be taken beside the line.  NaN
        if somewhere no density was found.
    status : Status
    """

    model: SpikedRandomFeatures
    alpha: float
    resolvent: Resolvent

    @property
    def settings(self) -> dict[str, Any]:
        """The model and alpha, in plain values."""
        return as_made(self.model) | {"alpha": self.alpha}

    @property
    def notes(self) -> list[str]:
        """What a figure says beside the density."""
        notes = super().notes
        for value, samples in zip(self.outliers[:2], self.outliers_from[:2], strict=True):
            seen = rf", from $n = {samples:.0f}$" if np.isfinite(samples) and samples >= 1 else ""
            notes += [rf"outlier at ${value:.3g}\,p${seen}"]
        return notes

    def outliers_at(self, width: int | None) -> Array:
        """Outliers (O,) of features of ``width`` p: they grow with p."""
        return np.empty(0) if width is None else self.outliers * width

    @cached_property
    def outliers_from(self) -> Array:
        """The number of samples n from which each of the outliers (O,) lies above the bulk: with
        fewer it is part of that, and no eigenvalue of its own.  Eq. (9.2)"""
        return outliers_from(self.resolvent, float(self.edges.max()), len(self.outliers))

    @one_thread()
    def stieltjes(self, z: ArrayLike) -> Array:
        """The Stieltjes transform s(z) = (1/p) tr (Phi^T Phi / n - z)^-1 of the bulk and the atom,
        z != 0.  Eq. (9.1)

        On the real line inside the spectrum, its limit from above.  NaN where it was not found.
        """
        z = np.asarray(z, dtype=complex)
        above = np.where(z.imag < 0, z.conj(), z)
        s = self.resolvent.transform(self.resolvent.at(above.ravel())).reshape(z.shape)
        return np.where(z.imag < 0, s.conj(), s)

    def companion(self, z: ArrayLike) -> Array:
        """(1/n) tr (Phi Phi^T / n - z)^-1, of the same non-zero eigenvalues among n."""
        z = np.asarray(z, dtype=complex)
        wide = 1 / self.resolvent.ratio  # p / n
        return np.asarray(wide * self.stieltjes(z) + (wide - 1) / z)

    @one_thread()
    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,) inside one of the intervals; NaN where it was not found."""
        guess = self._guides[interval](angle_of(x, *self.edges[interval]))
        V = self.resolvent.at(x.astype(complex), guess)
        return np.maximum(self.resolvent.transform(V).imag / np.pi, 0.0)

    @cached_property
    def _guides(self) -> list[Callable[[Array], Array]]:
        """V of each interval as a function of the angle, to three digits or so."""
        from scipy.interpolate import CubicSpline

        angle = angles(64)
        guides: list[Callable[[Array], Array]] = []
        for low, high in self.edges:
            V = self.resolvent.at(place_of(angle, low, high).astype(complex))
            good = np.isfinite(V).all(axis=1)
            if good.sum() < 2:  # guesses of 0 are too far: each point is then solved by itself
                V, good = np.zeros_like(V), np.full_like(good, True)
            guides.append(CubicSpline(angle[good], V[good]))
        return guides


@overload
def spectrum(
    model: SpikedRandomFeatures,
    alpha: float,
    *,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Spectrum: ...


@overload
def spectrum(
    model: FirstLayer,
    alpha: float | None = None,
    *,
    samples: float | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> LayerSpectrum: ...


@one_thread()  # more only get into each other's way: the matrices are small
def spectrum(
    model: SpikedRandomFeatures | FirstLayer,
    alpha: float | None = None,
    *,
    samples: float | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Spectrum | LayerSpectrum:
    """The spectrum of the features' covariance: its limit, or of a given layer.  docs/theory.md 9,
    20

    A second for one group of neurons, or a network after one step; two to ten for a few groups, or
    after several steps; half a minute for a network on a mixture of which several directions
    matter, ten to thirty seconds for a given layer of 400 neurons, and minutes for the dozens of
    groups that stand for a continuous readout: more than the usual ``time_limit``, and on a busy
    machine two or three times that.

    Parameters
    ----------
    model : SpikedRandomFeatures or FirstLayer
        Its student, width and groups, or weights, matter; target, noise and intercept do not.
    alpha : float
        Samples over input dimension, n/d.
    samples : float
        Number n of samples, in the place of alpha, of a FirstLayer.
    quadrature_tol : float
        Bound on the estimated quadrature error of x times the density, of total order 1: 1e-8
        unless given, 3e-3 of a FirstLayer.
    time_limit : float
        Seconds after which the search is given up.

    Raises
    ------
    InvalidArgument
        If alpha or samples is missing or out of range, a bias is trained, as the features then
        depend on the fit, or the model has features, whose eigenvalues need no theory.
    ConvergenceError
        If no density was found anywhere, or none in time.

    Examples
    --------
    >>> from replica import GradientStep, spectrum
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=0.5)
    >>> found = spectrum(model, 2.0)
    >>> found.edges.round(6).tolist(), found.atom, round(found.moment(0), 8)
    ([[0.028603, 0.980667]], 0.0, 1.0)
    """
    tol, time_limit = limits(quadrature_tol, time_limit)
    if isinstance(model, FeatureSample):
        allowed = "a model or a FirstLayer (numpy.linalg.eigvalsh has those of given features)"
        raise InvalidArgument("model", "a FeatureSample", allowed)
    find: Callable[[], Spectrum | LayerSpectrum]
    if isinstance(model, FirstLayer):
        name, value = asked(model, alpha, samples)
        (n,) = samples_of(model, name, one_positive(name, value))
        find = partial(layer_spectrum, model, float(n), tol or LAYER_TOLERANCE)
    else:
        check_model(model)
        alpha = needs_alpha(alpha, samples)
        if model.train_bias:
            raise InvalidArgument("train_bias", True, "off: the spectrum would depend on the fit")
        (ratio,) = positive("alpha", [alpha])
        find = partial(_limit, model, float(ratio), tol or DENSITY_TOLERANCE)
    message = "the spectrum was not found"
    try:
        with deadline(time_limit):
            return find()
    except GivenUp:
        message += (
            " within its time_limit: many groups of neurons, a very narrow layer, or many given "
            "neurons take minutes"
        )
    except np.linalg.LinAlgError:
        message += ": a matrix of its equations is singular"
    raise ConvergenceError(message, None)


def _limit(model: SpikedRandomFeatures, alpha: float, quadrature_tol: float) -> Spectrum:
    """The spectrum of a model in the limit."""
    settled = settle(
        _scans(model, alpha),
        lambda scanned: mass_per_log(*scanned),
        lambda before, now: float(np.nan_to_num(np.abs(now - before), nan=np.inf).max()),
        quadrature_tol,
    )
    resolvent, x, _ = settled.candidate
    intervals, sharp = support(resolvent, x, settled.value)
    if not len(intervals):
        raise ConvergenceError("no density was found anywhere", None)
    found = Spectrum(
        model=model,
        alpha=alpha,
        edges=intervals,
        sharp=sharp,
        atom=atom(resolvent.real.table, alpha),
        outliers=outliers(model, resolvent.real.table),
        resolvent=resolvent,
    )
    return found._judged(1 - found.atom, 1e-6, settled.change, quadrature_tol)


def _scans(model: SpikedRandomFeatures, alpha: float) -> Iterator[Scan]:
    """Finer and finer tables, one at least and none too large after it; each starts from what was
    found on the last."""
    last = None
    for table in tables(model, first=1):
        if last and len(table.weights) > 4096:  # takes minutes, and is flagged instead
            return
        yield (last := _scanned(model, table, alpha, last))


def _scanned(model: SpikedRandomFeatures, table: Table, alpha: float, last: Scan | None) -> Scan:
    """On a contour for one spike, unless poles lie between it and the real line somewhere in
    the spectrum.  Outside of it they come in conjugate pairs, far from the line."""
    real = ridge.responses_of(table)
    if isinstance(model.rows, NetworkRows) and not model.step.steps:
        table = replace(table, covariance=beside_line(model.rows, real.analytic.table.covariance))
    x, start = (scan(real.analytic.table, alpha), None) if last is None else last[1:]
    spiked = len(table.kappa) == 1 and model.geometry.r.any()
    beside = contour_table(model, table) if spiked else None
    if beside is not None:
        resolvent = Resolvent(real, ridge.responses_of(beside).analytic, alpha)
        U = resolvent.at(x.astype(complex), start)
        inside = x * resolvent.transform(U).imag > NEGLIGIBLE_MASS
        probed = U[::6][inside[::6]]  # every sixth place tells
        if (np.nan_to_num(resolvent.winding(probed)) < 0.5).all():
            return resolvent, x, U
    resolvent = Resolvent(real, ridge.responses_of(table).analytic, alpha)
    return resolvent, x, resolvent.at(x.astype(complex), start)

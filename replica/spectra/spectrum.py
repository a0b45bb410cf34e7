"""The eigenvalues of the features' covariance Phi^T Phi / n.  docs/theory.md 9, [C] App. F.

The bulk of p = beta d eigenvalues from n = alpha d samples has the Stieltjes transform of
(9.1), found by continuation from the negative axis (``resolvent``), a density
Im s(x + i0) / pi, computed on the real line itself, and edges (``edges``).  There is an atom at 0
too and, where the mu_0 do not vanish, outliers of order p.  None of this depends on the target or
on how the readout is fitted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT, GivenUp, deadline, one_thread
from solvers.results import Array, ConvergenceError, Status
from solvers.successive_refinement import settle

from ..equivalence import Table, tables
from ..errors import InvalidArgument
from ..given import FeatureMoments, FeatureSample, FirstLayer
from ..problem import (
    SpikedRandomFeatures,
    asked,
    check_call,
    describe_with_step,
    number,
    refuse_options,
    samples_of,
)
from ..saddle_point import ridge
from ..steps import GradientStep, NetworkRows, model_of
from .contour import contour_table, on_real_nodes, with_complex_batch
from .density import SpectralDensity, even_angles
from .edges import NEGLIGIBLE_MASS, angle_of, logarithmic_grid, mass_per_log, support, x_at_angle
from .layer import LAYER_TOLERANCE, LayerSpectrum, layer_spectrum
from .resolvent import Resolvent, atom, outliers, samples_of_outliers

DENSITY_TOLERANCE = 1e-8  # on x times the density, which is of order one
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
        True at an edge at which the density vanishes like a square root, known to rounding.  Other
        ends are 0, or points where x times the density falls below 1e-10.
    atom : float
        Share of eigenvalues that are exactly 0.
    outliers : (O,)
        Leading eigenvalues over p: the eigenvalues of (sqrt(pi_a pi_b) E mu_0^a mu_0^b),
        [C] Eq. (191).
    quadrature_error : float
        Largest change of x times the density from the next coarser rule.
    mass_error : float
        Difference of the mass of bulk and atom from 1.  Eigenvalues below 1e-18 of the largest
        are missing, unless the density is a power of x there; in a network also mass near poles of
        residuals that stay on real nodes.  NaN if no density was found somewhere.
    status : Status
    """

    model: SpikedRandomFeatures
    alpha: float
    resolvent: Resolvent

    @property
    def settings(self) -> dict[str, Any]:
        """The model and alpha, in plain values."""
        return describe_with_step(self.model) | {"alpha": self.alpha}

    @property
    def notes(self) -> list[str]:
        """Lines of text for the legend of a figure."""
        spectrum_notes = super().notes
        for outlier_value, samples in zip(self.outliers[:2], self.outliers_from[:2], strict=True):
            spectrum_notes.append(rf"outlier at ${outlier_value:.3g}\,p$ to leading order")
            if np.isfinite(samples) and samples >= 1:
                spectrum_notes.append(rf"above the bulk from $n = {samples:.0f}$ samples on")
        return spectrum_notes

    def outliers_at(self, width: int | None) -> Array:
        """Positions of the outliers that lie above the bulk where the ``width`` is p, from the
        largest on; none if it is unknown.  Eq. (9.2)"""
        from scipy.optimize import brentq

        if width is None:
            return np.empty(0)
        sample_size, edge = width * self.alpha / self.model.beta, self._above_bulk(width)
        is_above = self._samples_at(edge, len(self.outliers)) < sample_size

        def above_onset(log_position: float, k: int) -> float:
            with np.errstate(divide="ignore"):
                sample_ratio = self._samples_at(np.exp(log_position), k + 1)[k] / sample_size
                return float(np.clip(np.log(sample_ratio), -1.0, 1.0))

        log_positions = [
            brentq(above_onset, np.log(edge), np.log(2 * (edge + outlier * width)), (k,), rtol=1e-6)
            for k, outlier in enumerate(self.outliers)
            if is_above[k]
        ]
        return np.exp(log_positions)

    @cached_property
    def outliers_from(self) -> Array:
        """Sample sizes n (O,) from which each outlier lies above the bulk.  Eq. (9.2)

        The end of a tail without a sharp edge grows with p, and so with n: n is iterated from that
        of p = 4, where it grows, up to the least n that is its own onset.
        """
        count, per_width = len(self.outliers), self.alpha / self.model.beta
        onsets = np.full(count, 4 * per_width)
        for k in range(count):
            last_onset = 0.0
            while onsets[k] > 1.01 * last_onset:
                last_onset = onsets[k]
                onsets[k] = self._samples_at(self._above_bulk(last_onset / per_width), count)[k]
        return onsets

    def _samples_at(self, x: float, count: int) -> Array:
        """Sample sizes n (count,) at which the outliers are at x; in a tail, to some 5 %."""
        tail_tilt = 1.0 if self.sharp[-1, 1] else 1 + 0.1j
        return samples_of_outliers(self.resolvent, x * tail_tilt, count)

    def _above_bulk(self, width: float) -> float:
        """Place right above the bulk.  Near a sharp edge V varies as the root of the distance, and
        differs there by 1e-3 from its value at the edge."""
        return self._bulk_end(width) * (1 + 1e-6)

    @one_thread()
    def stieltjes(self, z: ArrayLike) -> Array:
        """The Stieltjes transform s(z) = (1/p) tr (Phi^T Phi / n - z)^-1 of the bulk and the atom,
        z != 0.  Eq. (9.1)

        On the real line inside the spectrum, its limit from above.  NaN where it was not found.
        """
        z = np.asarray(z, dtype=complex)
        z_above = np.where(z.imag < 0, z.conj(), z)
        s = self.resolvent.transform(self.resolvent.solutions(z_above.ravel())).reshape(z.shape)
        return np.where(z.imag < 0, s.conj(), s)

    def companion(self, z: ArrayLike) -> Array:
        """The companion transform (1/n) tr (Phi Phi^T / n - z)^-1, of n eigenvalues."""
        z = np.asarray(z, dtype=complex)
        width_per_sample = 1 / self.resolvent.ratio  # p / n
        return np.asarray(width_per_sample * self.stieltjes(z) + (width_per_sample - 1) / z)

    @one_thread()
    def _density(self, x: Array, interval: int) -> Array:
        """The density at x (n,) inside one of the intervals; NaN where it was not solved."""
        spectrum_guess = self._guess_splines[interval](angle_of(x, *self.edges[interval]))
        spectrum_V = self.resolvent.solutions(x.astype(complex), spectrum_guess)
        return np.maximum(self.resolvent.transform(spectrum_V).imag / np.pi, 0.0)

    @cached_property
    def _guess_splines(self) -> list[Callable[[Array], Array]]:
        """Splines of V in the angle, one for each interval: initial guesses, to three digits."""
        from scipy.interpolate import CubicSpline

        guess_angle = even_angles(64)
        guess_splines: list[Callable[[Array], Array]] = []
        for low, high in self.edges:
            guess_V = self.resolvent.solutions(x_at_angle(guess_angle, low, high).astype(complex))
            finite = np.isfinite(guess_V).all(axis=1)
            if finite.sum() < 2:  # guesses of 0, which Newton rejects: each point is then continued
                guess_V, finite = np.zeros_like(guess_V), np.full_like(finite, True)
            guess_splines.append(CubicSpline(guess_angle[finite], guess_V[finite]))
        return guess_splines


@overload
def spectrum(
    model: SpikedRandomFeatures | GradientStep,
    alpha: float,
    *,
    beta: float | None = None,
    theory: str | None = None,
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


@one_thread()  # the matrices are small: more threads slow each other down
@check_call
def spectrum(
    model: SpikedRandomFeatures | GradientStep | FirstLayer,
    alpha: float | None = None,
    *,
    samples: float | None = None,
    beta: float | None = None,
    theory: str | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Spectrum | LayerSpectrum:
    """The spectrum of the features' covariance, in the limit or of a given layer.
    docs/theory.md 9, 20

    Time: a second for one group of neurons; ten seconds for several groups or steps; half a minute
    for a network on a mixture, or a given layer of 400 neurons.  The dozens of groups that
    discretise a continuous readout take minutes, more than the default ``time_limit``, and so do
    some networks after several steps.

    Parameters
    ----------
    model : GradientStep, SpikedRandomFeatures or FirstLayer
        The result depends on its student, width and groups, or weights, not on target, noise and
        intercept.
    alpha, samples, beta, theory
        As in :func:`replica.solve`.
    quadrature_tol : float
        Bound on the estimated quadrature error of x times the density, which is of order 1.  The
        default is 1e-8, and 3e-3 for a FirstLayer.
    time_limit : float
        Seconds after which ConvergenceError is raised.

    Raises
    ------
    InvalidArgument
        If an argument is missing or out of range, a network has a dimension or reuses samples, or
        a bias is trained, on which features depend.
    ConvergenceError
        If no density was found, or none within the time limit.

    Examples
    --------
    >>> from replica import GradientStep, spectrum
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> found = spectrum(step, alpha=2.0, beta=0.5)
    >>> found.edges.round(6).tolist(), found.atom, round(found.moment(0), 8)
    ([[0.028603, 0.980667]], 0.0, 1.0)
    """
    given = FirstLayer | FeatureSample | FeatureMoments
    model = model_of(model, beta, theory, given=given, samples=samples)
    if isinstance(model, FeatureSample | FeatureMoments):
        allowed_here = "a model or a FirstLayer (numpy.linalg.eigvalsh has those of given features)"
        raise InvalidArgument("model", model, allowed_here)
    find_spectrum: Callable[[], Spectrum | LayerSpectrum]
    if isinstance(model, FirstLayer):
        samples_name, spectrum_samples = asked(model, alpha, samples)
        (n,) = samples_of(model, samples_name, np.array([number(samples_name, spectrum_samples)]))
        find_spectrum = partial(layer_spectrum, model, float(n), quadrature_tol or LAYER_TOLERANCE)
    else:
        refuse_options(model, "alpha0", "reuse", "dimension", "train_bias")
        ratio = number("alpha", alpha)
        assert isinstance(model, SpikedRandomFeatures)
        find_spectrum = partial(_limit_spectrum, model, ratio, quadrature_tol or DENSITY_TOLERANCE)
    not_found = "the spectrum was not found"
    try:
        with deadline(time_limit), np.errstate(all="ignore"):  # iterates that are not finite end
            return find_spectrum()
    except GivenUp:
        slow = (
            "targets with kinks, many groups of neurons, a very narrow layer, or many given "
            "neurons take minutes; replica-validate spectrum simulates it"
        )
        if isinstance(model, SpikedRandomFeatures) and on_real_nodes(model):
            slow = Status.LABEL_NODES.value.removeprefix("not converged: ")
        not_found += f" within its time_limit (a larger time_limit gives it more seconds): {slow}"
    except np.linalg.LinAlgError:
        not_found += ": a matrix of its equations is singular"
    raise ConvergenceError(not_found, None)


def _limit_spectrum(model: SpikedRandomFeatures, alpha: float, quadrature_tol: float) -> Spectrum:
    """The spectrum of a model in the limit, on finer and finer tables until it converges."""
    converged_scan = settle(
        _scans_on_tables(model, alpha),
        lambda scanned: mass_per_log(*scanned),
        lambda before, after: float(np.nan_to_num(np.abs(after - before), nan=np.inf).max()),
        quadrature_tol,
    )
    resolvent, scan_x, _ = converged_scan.candidate
    spectrum_edges, sharp_edges = support(resolvent, scan_x, converged_scan.value)
    if not len(spectrum_edges):
        raise ConvergenceError("no density was found anywhere", None)
    in_limit = Spectrum(
        model=model,
        alpha=alpha,
        edges=spectrum_edges,
        sharp=sharp_edges,
        atom=atom(resolvent.real.table, alpha),
        outliers=outliers(model, resolvent.real.table),
        resolvent=resolvent,
    )
    found = in_limit._flagged(1 - in_limit.atom, 1e-6, converged_scan.change, quadrature_tol)
    has_peaks = found.status is Status.MASS and on_real_nodes(model)
    return replace(found, status=Status.LABEL_NODES) if has_peaks else found


def _scans_on_tables(model: SpikedRandomFeatures, alpha: float) -> Iterator[Scan]:
    """Scans on finer and finer tables, each started from the solutions of the one before.

    The first table is used whatever its size; later ones only while they are small enough.
    """
    last_scan = None
    for table in tables(model, first=1):
        if last_scan and len(table.weights) > 4096:  # takes minutes: the result is flagged instead
            return
        yield (last_scan := _scan_table(model, table, alpha, last_scan))


def _scan_table(model: SpikedRandomFeatures, table: Table, alpha: float, last: Scan | None) -> Scan:
    """Solutions on a grid over the whole spectrum, for one ``table``.

    With one spike kappa is on a contour, unless poles lie between contour and real line at some x
    in the spectrum.  Outside the spectrum poles come in conjugate pairs, far from the line.
    """
    real = ridge.responses_of(table)
    if isinstance(model.rows, NetworkRows) and not on_real_nodes(model):
        complex_rows = with_complex_batch(model.rows, real.analytic.table.covariance)
        table = replace(table, covariance=complex_rows)
    x, start_U = (logarithmic_grid(real.analytic.table, alpha), None) if last is None else last[1:]
    has_one_spike = len(table.kappa) == 1 and model.geometry.r.any()
    on_contour = contour_table(model, table) if has_one_spike else None
    if on_contour is not None:
        resolvent = Resolvent(real, ridge.responses_of(on_contour).analytic, alpha)
        scan_U = resolvent.solutions(x.astype(complex), start_U)
        has_density = x * resolvent.transform(scan_U).imag > NEGLIGIBLE_MASS
        checked_U = scan_U[::6][has_density[::6]]  # every sixth point is checked
        if (np.nan_to_num(resolvent.winding(checked_U)) < 0.5).all():
            return resolvent, x, scan_U
    resolvent = Resolvent(real, ridge.responses_of(table).analytic, alpha)
    return resolvent, x, resolvent.solutions(x.astype(complex), start_U)

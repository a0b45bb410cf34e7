"""Number of samples that the readout of a given layer, or of given features, needs for an error.

The learning curve is taken at numbers of samples a sixth of a decade apart, and straight between
them on logarithmic scales.  docs/theory.md 20, 22
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array

from ..convex import loss as as_loss
from ..display import Displayed, Progress, progress_callback, reasons_text
from ..errors import InvalidArgument
from ..given import FeatureSample, Given, has_classes
from ..plotting import BARS, add_legend, plot_curve
from ..problem import MAX_NUMBER, check_call, number
from .grid import solve_grid
from .learning_curve import BEST, at_best
from .readout_curves import (
    BEST_AT_END,
    FAR,
    FITS_DIFFER,
    MOST_FREQUENT,
    NO_FITS,
    TRAINING_DIFFERS,
    TRAINING_SCATTERS,
    beyond,
    beyond_note,
    differs,
    has_fits,
    notes_of,
    with_noted,
)
from .row_fits import fitted_errors

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

BAND_TEXT = f"of the error less and plus {BARS} standard errors over test rows"


@dataclass(frozen=True, eq=False, repr=False)
class SamplesNeeded(Displayed):
    """The number of samples from which on an error is small enough.

    Returned by :func:`replica.samples_needed`.

    Attributes
    ----------
    error : str
        Name of the error.
    target : float
    samples : float
        Smallest n from which on the error is at most the target, as far as it is known; NaN if it
        is larger at the largest n.  Where it rises above it again by less than its standard error
        over test rows, the n before that, and the note says so.
    low, high : float
        Smallest n for the error less and plus two standard errors over the rows of a sample that
        test, the band of its figure; NaN where there are none, or the error is then larger at the
        largest n.
    beyond_rows : bool
        True if ``samples`` exceeds a sample's rows.  Features are then taken for Gaussian in each
        class, and errors are scaled to meet those of the rows (22.14).
    curve : xarray.Dataset
        Errors at the numbers of samples that were tried, with the penalty of each as ``lam``.
    lam : float
        The penalty at ``samples``; where these are NaN, at the most that were tried.
    alpha : float
        p lam, the ``alpha`` of Ridge, which ``replica.sklearn.ProbeCurve`` shows in the place of
        ``lam``.
    note : str
        Notes on errors near ``samples``, why more samples may be needed, and where the error is
        not known.  Mostly empty.
    """

    error: str
    target: float
    samples: float
    low: float
    high: float
    beyond_rows: bool
    curve: "xarray.Dataset"
    lam: float
    note: str = ""
    alpha: float = np.nan

    @property
    def _penalty(self) -> dict[str, float]:
        """The penalty by its name, in the units of who asks."""
        return {"lam": self.lam} if np.isnan(self.alpha) else {"alpha": self.alpha}

    @property
    def settings(self) -> dict[str, Any]:
        """Question in plain values: the curve, and the error that is to be reached."""
        return dict(self.curve.attrs) | {self.error: self.target}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The error over samples, with two standard errors, the target and the samples it needs,
        ``low`` to ``high`` as a bar."""
        error_curve, curve_penalties = self.curve, np.unique(self.curve["lam"])
        if curve_penalties.size == 1:
            error_curve = error_curve.assign_coords(lam=curve_penalties[0])
        ax = plot_curve(error_curve, ax, error=self.error, train=False)
        target_style: dict[str, Any] = {"color": "0.3", "linewidth": 1}
        ax.axhline(self.target, linestyle="--", label=f"error of {self.target:g}", **target_style)
        if np.isfinite(self.samples):
            see_note = ", or not: see its note" * (FITS_DIFFER in self.note)
            needed_label = f"$n$ = {self.samples:.0f}{see_note}"
            ax.plot(2 * [self.samples], [0, self.target], ":", label=needed_label, **target_style)
        if np.isfinite(self.low):
            band_end = self.high if np.isfinite(self.high) else self.curve.samples.values[-1]
            band_style: dict[str, Any] = {"linewidth": 4, "alpha": 0.5, "color": "0.3"}
            band_label = f"for the error ±{BARS} s.e. over test rows"
            ax.plot([self.low, band_end], 2 * [self.target], label=band_label, **band_style)
        return add_legend(ax)

    def _facts(self) -> dict[str, Any]:
        values, note_facts = self.curve[self.error].values, {"note": self.note} if self.note else {}
        is_solved = np.isfinite(values)
        n = self.curve.samples.values[is_solved]
        status_word = "tried" if is_solved.all() else "solved"
        if not n.size:
            return {"samples": "not known"} | note_facts
        if np.isnan(self.samples):
            k, name = values[is_solved].argmin(), self.error.replace("_", " ")
            least = f"{values[is_solved][k]:.4g}" + f" at {n[k]:g}" * bool(n[k] < n[-1])
            many = f"more than {n[-1]:g}, the largest {status_word} (smallest {name}: {least})"
            return {"samples": many} | self._penalty | note_facts
        band_ends = f"{self.low:.4g} to {self.high:.4g}".replace(" to nan", " on")
        band = f"{band_ends}, {BAND_TEXT}"
        sample_facts: dict[str, Any] = {"samples": f"{self.samples:.4g}"}
        if self.samples <= n[0]:
            at_most = "" if FITS_DIFFER in self.note else "at most "
            sample_facts["samples"] = f"{at_most}{n[0]:g}, the smallest {status_word}"
        sample_facts |= {} if np.isnan(self.low) else {"band": band}
        return sample_facts | self._penalty | note_facts

    def _rows(self) -> list[dict[str, Any]]:
        sample_numbers = {name: getattr(self, name) for name in ("samples", "low", "high")}
        return [{self.error: self.target} | sample_numbers | self._penalty]


@check_call
def samples_needed(
    model: Given,
    *,
    lam: float | str,
    test_error: float | None = None,
    classification_error: float | None = None,
    loss: Any = "square",
    most: float | None = None,
    time_limit: float = TIME_LIMIT,
    progress: bool | Progress = False,
) -> SamplesNeeded:
    """Number of samples that the readout needs for a test or classification error.

    Parameters
    ----------
    model : FirstLayer, FeatureSample or FeatureMoments
        The layer or the features that the readout is on.
    lam : float or "best"
        The ridge penalty, or the one of the smallest test error at every number of samples.
    test_error, classification_error : float
        One of them: the error that is wanted.
    loss : str or Loss
        As in :func:`replica.solve`; the square where ``lam`` is "best".
    most : float, optional
        Largest number of samples that is tried: the rows of a FeatureSample (of several classes
        or outputs 5 000 at most), and 100 p of others, unless given.  Beyond the rows features are
        taken for Gaussian in each class, which needs 3 rows for each feature.
    time_limit : float
        Seconds, for each number of samples.
    progress : bool or callable
        Whether to draw a bar meanwhile; a function is called with (done, total).

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or there are no classes.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import FeatureSample, samples_needed
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice([-1, 1], 400)
    >>> features = rng.standard_normal((400, 20)) + 0.4 * labels[:, None]
    >>> sample = FeatureSample(features=features, labels=labels)
    >>> needed = samples_needed(sample, lam=0.1, classification_error=0.08)
    >>> 20 < needed.low < needed.samples < needed.high or np.isnan(needed.high)
    True
    """
    if not isinstance(model, Given):
        raise InvalidArgument("model", model, "a FirstLayer, a FeatureSample or FeatureMoments")
    wanted_errors = {"test_error": test_error, "classification_error": classification_error}
    typed_errors = {name: value for name, value in wanted_errors.items() if value is not None}
    if len(typed_errors) != 1:
        allowed_error = "given, or classification_error in its place: one of them"
        raise InvalidArgument("test_error", test_error, allowed_error)
    ((error, value),) = typed_errors.items()
    if error == "classification_error" and not has_classes(model):
        raise InvalidArgument(error, value, "left out unless labels are +-1, or classes")
    target = wanted_error(error, value, model if error == "classification_error" else None)
    n = _tried_samples(model, most)
    with progress_callback(progress, "numbers of samples") as advance:
        curve = _curve(model, n, lam, as_loss(loss), time_limit, advance)
    tried, is_solved = curve.samples.values, np.isfinite(curve[error].values)
    if not is_solved.any():
        note = _unsolved_text(curve, tried)
        return SamplesNeeded(error, target, np.nan, np.nan, np.nan, False, curve, np.nan, note)
    solved_curve = curve.isel(samples=is_solved)
    n, tried_errors = solved_curve.samples.values, solved_curve[error].values
    error_stderr = np.asarray(
        solved_curve.get(f"{error}_stderr", np.nan * solved_curve[error]).values
    )
    slack, band_width = np.nan_to_num(error_stderr), BARS * error_stderr
    samples, low, high = (
        needed_on(n, errors, target, slack)
        for errors in (tried_errors, tried_errors - band_width, tried_errors + band_width)
    )
    curve = _with_fits(model, curve, samples, as_loss(loss))
    solved_curve = curve.isel(samples=is_solved)
    # of the number tried that is next to the answer
    log_samples = np.log(n[-1] if np.isnan(samples) else samples)
    needed_lam = float(np.exp(np.interp(log_samples, np.log(n), np.log(solved_curve.lam.values))))
    needed_lam = needed_lam if isinstance(lam, str) else float(lam)
    nearest_tried = int(np.argmin(np.abs(np.log(n) - log_samples)))
    # the number tried below the answer counts, too: with more samples a note ends
    nearby_tried = slice(max(nearest_tried - 1, 0), nearest_tried + 1)
    noted = notes_of(model, solved_curve)
    # notes on the error to reach follow
    for note in (MOST_FREQUENT, TRAINING_DIFFERS, TRAINING_SCATTERS):
        noted.pop(note, None)
    if has_fits(solved_curve).any():  # far from the answer none are made
        noted.pop(NO_FITS, None)
    if FITS_DIFFER in noted:  # of this error
        noted[FITS_DIFFER] = solved_curve.converged & differs(solved_curve, [error])
    notes = [note for note, has_note in noted.items() if has_note.values[nearby_tried].any()]
    if FITS_DIFFER in notes:
        by_fits = needed_on(n, solved_curve[f"fitted_{error}"].values, target, slack)
        if by_fits == samples == n[0]:  # the smallest tried is enough in any case
            notes.remove(FITS_DIFFER)
        else:
            most_fitted = n[np.isfinite(solved_curve[f"fitted_{error}"].values)][-1]
            needed = f"{by_fits:.4g}" if np.isfinite(by_fits) else f"more than {most_fitted:g}"
            notes.append(f"by the fits {needed} samples are needed")
    beyond_rows = bool(np.any(beyond(model, samples)))
    if beyond_rows and beyond_note(model) not in notes:
        notes.append(beyond_note(model))
    if lam == BEST and "lam" in str(solved_curve.at_edge.values[nearest_tried]).split():
        notes.append(BEST_AT_END)
    if np.isfinite(samples + error_stderr[-1]) and np.isnan(high):
        still = f"the error plus {BARS} standard errors is still above {target:g} at {n[-1]:g}"
        more = _no_more_text(model, tried[-1]) or "most= tries more"
        notes.append(f"high is not known: {still} samples, the largest tried ({more})")
    if (rises_at := n[(n > samples) & (tried_errors > target)]).size:
        rise_text = f"the error rises above {target:g} again, at {rises_at[0]:g} samples"
        notes.append(f"{rise_text}, by less than its standard error over test rows")
    # of those below the last error that is too large nothing is asked
    too_large = n[(tried_errors > target) & ~(n > samples)].max(initial=0)
    if (unsolved := tried[~is_solved & (tried > too_large)]).size:
        notes.append(_unsolved_text(curve, unsolved))
    if np.isnan(samples):
        far, far_error = 100 * tried[-1], np.nan
        with suppress(InvalidArgument):  # of what takes more rows
            _tried_samples(model, far)
            far_error = _curve(model, np.array([far]), lam, as_loss(loss), time_limit)[error].item()
            gaussian = ", of features taken for Gaussian" * bool(np.any(beyond(model, far)))
            far_text = f"at {far:g} samples the error is {far_error:.3g}{gaussian}"
            notes += [far_text] * bool(far_error > 0)
        other = "other features" if lam == BEST else "other penalties or features"
        no_more = _no_more_text(model, tried[-1])
        more = f"more rows, or {other}," if no_more else f"more samples (most=), or {other},"
        ways = other if far_error > target else more
        notes.append(f"{ways} may reach it" + f" ({no_more})" * bool(no_more))
    if isinstance(model, FeatureSample) and error == "classification_error":
        counts = np.unique(model.class_of_row, return_counts=True)[1]
        of_largest = 1 - counts.max() / counts.sum()
        always = f"always answering the most frequent class has an error of {of_largest:.3g}"
        notes += [f"{always}: see the confusion"] * bool(target >= of_largest)
    if lam == BEST and error == "classification_error":
        notes.append("lam is the best for the squared error: another may need fewer samples")
    note = "; ".join(notes)
    return SamplesNeeded(error, target, samples, low, high, beyond_rows, curve, needed_lam, note)


def wanted_error(name: str, value: Any, model: Given | None) -> float:
    """Error to reach, or InvalidArgument of that ``name``; with a ``model``, a classification error
    below the error of a guess."""
    if model is None:
        return number(name, value, 0, MAX_NUMBER, "an error, more than 0", open_low=True)
    guess = 1 - 1 / max(2, model.outputs)
    allowed = f"an error, more than 0 and less than {guess:.3g}, that of a guess (of an accuracy, "
    allowed += "1 - accuracy)"
    return number(name, value, 0, guess, allowed, open_low=True, open_high=True)


def needed_on(samples: Array, errors: Array, target: float, slack: Any = 0.0) -> float:
    """The smallest number of ``samples`` (N,) from which on ``errors`` (N,) are at most the target,
    straight between points on logarithmic scales, and at most ``slack`` more once they were; NaN if
    there is none.  Errors that are NaN are left out.

    >>> round(needed_on(np.array([10.0, 100.0]), np.array([1.0, 0.01]), 0.1), 6)
    31.622777
    >>> needed_on(np.array([10.0, 20, 30, 40]), np.array([4.0, 2, 1, 2.5]), 2, slack=1)
    20.0
    """
    solved = np.isfinite(errors)
    samples, errors, most = samples[solved], errors[solved], (target + slack + 0 * errors)[solved]
    too_large = np.flatnonzero(errors > most)
    first_reached = too_large[-1] + 1 if too_large.size else 0
    reached = first_reached + np.flatnonzero(errors[first_reached:] <= target)
    if not reached.size:
        return np.nan
    i = reached[0] - 1
    if i < 0:
        return float(samples[0])
    log_above, log_below = np.log(np.maximum(errors[[i, i + 1]], 1e-300))
    log_fraction = (log_above - np.log(target)) / (log_above - log_below)
    return float(samples[i] * (samples[i + 1] / samples[i]) ** log_fraction)


def _tried_samples(model: Given, most: float | None) -> Array:
    """Numbers of samples, from the fewest to the largest."""
    fewest_samples = 4.0  # samples that are tried
    # of a layer, a hundred times its features
    usual_most = model.most_by_rows if isinstance(model, FeatureSample) else 100.0 * model.width
    allowed_most = f"{2 * fewest_samples:g} or more samples"
    most = usual_most if most is None else most
    largest_tried = number("most", most, 2 * fewest_samples, MAX_NUMBER, allowed_most)
    if isinstance(model, FeatureSample) and largest_tried > usual_most:
        try:
            model.stratified(largest_tried)
        except InvalidArgument as error:
            raise InvalidArgument("most", round(largest_tried), error.allowed) from None
    tried_count = 2 + int(np.ceil(6 * np.log10(largest_tried / fewest_samples)))  # six in a decade
    tried_samples = np.geomspace(fewest_samples, largest_tried, tried_count)
    # next to all rows, which are few and given, errors may turn
    near_all = np.multiply([0.85, 0.9, 0.95], usual_most)
    near_rows = near_all if isinstance(model, FeatureSample) and largest_tried >= usual_most else []
    return np.unique(np.rint([*tried_samples, *near_rows]))


def _no_more_text(model: Given, most: float) -> str:
    """Why no more samples than the ``most`` tried can be; empty where they can."""
    if not isinstance(model, FeatureSample) or most < model.most_by_rows:
        return ""
    try:
        _tried_samples(model, 100 * most)
    except InvalidArgument as refusal:
        return f"most= must be {refusal.allowed}"
    return ""


def _unsolved_text(curve: Any, samples: Array) -> str:
    """Sentence on the ``samples`` at which a curve did not converge, with the number of points of
    each status."""
    sample_text = ", ".join(f"{n:g}" for n in samples)
    status_reasons = reasons_text(curve.status.sel(samples=samples).values.ravel())
    return f"the error at {sample_text} samples is not known: {status_reasons}"


def _curve(
    model: Given,
    n: Array,
    lam: float | str,
    loss: Any,
    time_limit: float,
    progress: Progress | None = None,
) -> Any:
    """The errors at the numbers of samples ``n``, with the ``lam`` of each."""
    curve_options: dict[str, Any] = {"time_limit": time_limit, "progress": progress}
    if isinstance(lam, str) and lam == BEST:
        return at_best(model, ["lam"], {"samples": n}, {}, loss, **curve_options).dataset(
            fits=False
        )
    if isinstance(lam, str) or np.ndim(lam):
        raise InvalidArgument("lam", lam, '"best" or one number (learning_curve takes several)')
    curve_penalty = number("lam", lam)
    curve = solve_grid(model, samples=n, lam=curve_penalty, loss=loss, **curve_options).dataset(
        False
    )
    return curve.assign(lam=("samples", np.full(len(n), curve_penalty)))


def _with_fits(model: Given, curve: Any, samples: float, loss: Any) -> Any:
    """The curve with errors of fits to random rows, near the ``samples`` that are needed, or at the
    most tried where that is NaN; other points of rows have a note."""
    n, is_solved = curve.samples.values, curve.converged.values
    near = (n >= 0.5 * samples) & (n <= 4 * samples) if samples > 0 else n >= 0.4 * n[-1]
    solved_n = np.where(near & is_solved, n, np.nan)
    fits = fitted_errors(model, solved_n, curve.lam.values, loss)
    with_fits = curve.assign({name: ("samples", values) for name, values in fits.items()})
    with_fits = with_noted(model, with_fits)
    if not fits:
        return with_fits
    has_no_note = ~(near | with_fits.noted | beyond(model, with_fits.samples)) & is_solved
    return with_fits.assign(
        noted=with_fits.noted | has_no_note, note=with_fits.note.where(~has_no_note, FAR)
    )

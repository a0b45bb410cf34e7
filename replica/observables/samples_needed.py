"""How many samples the readout of a given layer, or of given features, needs for an error.

The learning curve is taken at numbers of samples a sixth of a decade apart, and straight between
them on logarithmic scales.  docs/theory.md 20, 22
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array

from ..display import Displayed, Progress, told
from ..errors import InvalidArgument
from ..given import FeatureSample, Given
from ..plotting import add_legend, plot_curve
from ..problem import FINITE, number, one_positive
from .beyond_rows import BEYOND_ROWS, SENSITIVE, beyond, notes_of
from .given_layers import curve_given, has_classes
from .learning_curve import BEST, at_best

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FEWEST = 4.0  # samples that are tried
A_DECADE = 6  # numbers of samples in each
FURTHEST = 100.0  # features' number to which a layer is tried


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
        Smallest n from which on the error is at most the target, as far as it was tried; NaN if it
        is larger at the largest n.
    low, high : float
        The same for the error less and plus its standard error over rows of a sample; NaN where
        that has none, or is larger at the largest n, which the note says.
    beyond_rows : bool
        Whether ``samples`` is more than a sample's rows: taken from Gaussian classes, of which
        errors are scaled to meet those of the rows (22.14).
    curve : xarray.Dataset
        Errors at the numbers of samples that were tried, with the penalty of each as ``lam``.
    note : str
        Why more samples may be needed, or how their number is known; mostly empty.
    """

    error: str
    target: float
    samples: float
    low: float
    high: float
    beyond_rows: bool
    curve: "xarray.Dataset"
    note: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What is asked of, in plain values."""
        return dict(self.curve.attrs) | {self.error: self.target}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The error over samples, with its standard error, the target and the samples it needs."""
        ax = plot_curve(self.curve, ax, error=self.error, train=False)
        style: dict[str, Any] = {"color": "0.3", "linewidth": 1}
        ax.axhline(self.target, linestyle="--", label=f"error of {self.target:g}", **style)
        if np.isfinite(self.samples):
            ends = "" if np.isnan(self.high) else f" ({self.low:.0f} to {self.high:.0f})"
            label = f"$n$ = {self.samples:.0f}{ends}"
            ax.plot(2 * [self.samples], [0, self.target], ":", label=label, **style)
        if not np.isnan(self.high):
            ax.fill_between([self.low, self.high], 0, self.target, color="0.9", zorder=0)
        return add_legend(ax)

    def _facts(self) -> dict[str, Any]:
        n, noted = self.curve.samples.values, {"note": self.note} if self.note else {}
        if np.isnan(self.samples):
            least = float(self.curve[self.error].min())
            best = f"at best {least:.4g} of those: try a larger most= or another penalty"
            return {"samples": f"more than {n[-1]:g}, the largest tried ({best})"} | noted
        ends = f"{self.low:.4g} to {self.high:.4g}".replace(" to nan", " on")
        band = f"{ends} within a standard error of the sample's rows"
        said = {"samples": f"{self.samples:.4g}"}
        if self.samples <= n[0]:
            said["samples"] = f"at most {n[0]:g}, the smallest tried"
        said |= {} if np.isnan(self.low) else {"band": band}
        return said | noted

    def _rows(self) -> list[dict[str, Any]]:
        names = ("samples", "low", "high")
        return [{self.error: self.target} | {name: getattr(self, name) for name in names}]


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
    """How many samples the readout needs for a test or classification error.

    Parameters
    ----------
    model : FirstLayer, FeatureSample or FeatureMoments
        What the readout is on.
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
    wanted = {"test_error": test_error, "classification_error": classification_error}
    given = {name: value for name, value in wanted.items() if value is not None}
    if len(given) != 1:
        raise InvalidArgument("test_error", test_error, "given, or classification_error, not both")
    ((error, value),) = given.items()
    largest = 1 if error == "classification_error" else FINITE
    allowed = "an error, more than 0" + " and less than 1" * (largest == 1)
    target = number(error, value, 0, largest, allowed, open_low=True, open_high=largest == 1)
    if error == "classification_error" and not has_classes(model):
        raise InvalidArgument(error, value, "left out unless labels are +-1, or classes")
    n = _tried(model, most)
    with told(progress, "numbers of samples") as advance:
        curve = _curve(model, n, lam, loss, time_limit, advance)
    values = curve[error].values
    stderr = curve.get(f"{error}_stderr", np.nan * curve[error]).values
    samples, low, high = (
        needed_on(n, middle, target) for middle in (values, values - stderr, values + stderr)
    )
    past = bool(np.any(beyond(model, samples)))
    # of the number tried that is next to the answer
    near = np.argmin(np.abs(np.log(n / samples))) if samples > 0 else 0
    sensitive = error == "classification_error" and bool(notes_of(model, curve)[SENSITIVE][near])
    notes = [BEYOND_ROWS] * past + [f"{SENSITIVE}, and more samples are needed"] * sensitive
    if samples > 0 and np.isfinite(stderr[-1]) and np.isnan(high):
        above = f"with a standard error more it is above {target:g} at {n[-1]:g} samples"
        notes.append(f"the band has no upper end: {above}, the largest tried (most=)")
    return SamplesNeeded(error, target, samples, low, high, past, curve, "; ".join(notes))


def needed_on(samples: Array, errors: Array, target: float) -> float:
    """The smallest number of ``samples`` (N,) from which on ``errors`` (N,) are at most the target,
    straight between points on logarithmic scales; NaN if the last is not, or none is known.

    >>> round(needed_on(np.array([10.0, 100.0]), np.array([1.0, 0.01]), 0.1), 6)
    31.622777
    """
    above = np.flatnonzero(~(errors <= target))
    if not above.size:
        return float(samples[0])
    i = above[-1]
    if i == len(samples) - 1 or not np.isfinite(errors[i]):
        return np.nan
    first, last = np.log(np.maximum(errors[[i, i + 1]], 1e-300))
    part = (first - np.log(target)) / (first - last)
    return float(samples[i] * (samples[i + 1] / samples[i]) ** part)


def _tried(model: Given, most: float | None) -> Array:
    """Numbers of samples, from FEWEST to the largest."""
    usual = model.most_by_rows if isinstance(model, FeatureSample) else FURTHEST * model.width
    allowed = f"{2 * FEWEST:g} or more samples"
    last = number("most", usual if most is None else most, 2 * FEWEST, FINITE, allowed)
    if isinstance(model, FeatureSample) and last > usual:
        try:
            model.stratified(last)
        except InvalidArgument as error:
            raise InvalidArgument("most", last, error.allowed) from None
    count = 2 + int(np.ceil(A_DECADE * np.log10(last / FEWEST)))
    return np.unique(np.rint(np.geomspace(FEWEST, last, count)))


def _curve(
    model: Given, n: Array, lam: float | str, loss: Any, time_limit: float, advance: Progress | None
) -> Any:
    """The errors at the numbers of samples ``n``, with the ``lam`` of each."""
    limits: dict[str, Any] = {"time_limit": time_limit, "progress": advance}
    if isinstance(lam, str) and lam == BEST:
        return at_best(model, ["lam"], {"samples": n}, {}, loss, **limits)
    penalty = one_positive("lam", lam).item()
    curve = curve_given(model, None, n, penalty, loss, **limits)
    return curve.assign(lam=("samples", np.full(len(n), penalty)))

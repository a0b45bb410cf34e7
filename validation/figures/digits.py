"""Labels that a linear probe needs: scikit-learn's digits, ten classes, ridge regression.

The theory of all rows, and of the first ones, with the standard error over rows of a sample;
readouts that are fitted on random parts of all rows; and the power law through scikit-learn's
learning_curve of the first rows.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.optimize import curve_fit

import replica
from replica.documents import plain
from replica.errors import InvalidArgument, install
from replica.plotting import BARS, COLOURS, add_legend, draw_band, draw_noted, draw_points, marks_of
from solvers.results import Array

from ..run import simulate
from . import Run, Values

LAM = 0.1
IN_HAND = 300  # first rows, which the power law is taken from
DRAWN_SPLITS = 20  # of learning_curve
ERROR = "classification_error"


def rows_of_digits() -> tuple[Array, Array]:
    """The images as rows of pixels of mean 0 and variance 1, without those that are constant, in a
    random order; and their digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        needed = f"made with scikit-learn: {install('sklearn')}"
        raise InvalidArgument("the figure", "digits", needed) from None
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    pixels = pixels[order][:, pixels.std(axis=0) > 0]
    return (pixels - pixels.mean(axis=0)) / pixels.std(axis=0), digits[order]


def power_law(estimator: Any, features: Array, labels: Array, scoring: str | None = None) -> Array:
    """a, b and c of the law a + b n^-c of an error, 1 less the score or a ``scoring`` negated, in
    scikit-learn's learning_curve of these rows: 8 numbers of samples from 15 to four fifths."""
    from sklearn.model_selection import ShuffleSplit, learning_curve

    sizes = np.geomspace(15, 0.8 * len(labels), 8).astype(int)
    splits = ShuffleSplit(DRAWN_SPLITS, test_size=0.2, random_state=0)
    how: dict[str, Any] = {"train_sizes": sizes, "cv": splits, "scoring": scoring}
    samples, _, scores = learning_curve(estimator, features, labels, **how)
    errors = (0 if scoring else 1) - scores.mean(axis=1)
    fit: dict[str, Any] = {"p0": [errors.min() / 2, errors.max(), 0.5], "sigma": errors}
    law, _ = curve_fit(_law, samples, errors, bounds=(0, [np.inf, np.inf, 3]), **fit)
    return np.asarray(law)


def _law(n: Any, a: float, b: float, c: float) -> Any:
    return a + b * np.asarray(n, dtype=float) ** -c


def along(law: Any, samples: Any) -> Array:
    """The errors of a power law at these numbers of samples."""
    return np.asarray(_law(samples, *law))


def digits_values(run: Run) -> Values:
    """Theory of all rows and of the first ones, errors of fitted readouts, and the power law."""
    features, digits = rows_of_digits()
    if run.quick:
        features, digits = features[:600], digits[:600]
    rows, width = features.shape
    few = [40, 200, 500] if run.quick else [20, 50, 100, 200, 500, 1000, 1600]
    samples, curves = {}, {}
    for name, count in {"all": rows, "first": IN_HAND}.items():
        samples[name] = replica.FeatureSample(
            features=features[:count], labels=digits[:count], intercept=True
        )
        n = np.unique(np.geomspace(few[0], count, 4 if run.quick else 24).astype(int))
        curves[name] = replica.learning_curve(samples[name], samples=n, lam=LAM)
    seeds = 4 if run.quick else 40
    how: dict[str, Any] = {"seeds": seeds, "rng": 0, "workers": 1, "store": run.store}
    fits = []
    for count in run.tracked(few):
        found = simulate(samples["all"], samples=[count], lam=LAM, **how).columns
        fits.append([found[name].item() for name in (ERROR, f"{ERROR}_stderr")])
    from sklearn.linear_model import RidgeClassifier

    estimator = RidgeClassifier(alpha=LAM * width)
    law = power_law(estimator, features[:IN_HAND], digits[:IN_HAND])
    theory = {
        name: {
            "n": curve.samples.values,
            "error": curve[ERROR].values,
            "stderr": curve[f"{ERROR}_stderr"].values,
            "noted": curve.noted.values,
        }
        for name, curve in curves.items()
    }
    values = {"theory": theory, "n": few, "fits": fits, "law": law, "rows": rows}
    return dict(plain(values | {"seeds": seeds}))


def draw_digits(data: dict[str, Any]) -> Figure:
    """Errors against the number of labels."""
    picture = Figure(figsize=(7.5, 4.6), layout="constrained")
    ax = picture.subplots()
    labels = {"all": f"theory, all {data['rows']} rows", "first": f"theory, first {IN_HAND} rows"}
    for name, colour in {"all": COLOURS[0], "first": COLOURS[2]}.items():
        curve = {key: np.array(values, dtype=float) for key, values in data["theory"][name].items()}
        style = {"color": colour, "label": labels[name]} | marks_of(curve["error"])
        ax.plot(curve["n"], curve["error"], **style)
        draw_band(ax, curve["n"], curve["error"], curve["stderr"], color=colour)
        noted = np.where(curve["noted"], curve["error"], np.nan)
        draw_noted(ax, curve["n"], noted, color=colour)
    draw_noted(ax, [], [], color="0.3", label="may be off: see its note")
    label = f"theory, ±{BARS} s.e. over other rows"
    draw_band(ax, curve["n"], np.nan, np.nan, color="0.3", label=label)
    dense = np.geomspace(data["n"][0], data["rows"], 100)
    law = f"power law through learning_curve\nof the first {IN_HAND} rows"
    ax.plot(dense, along(data["law"], dense), "--", color=COLOURS[1], label=law)
    mean, stderr = np.array(data["fits"]).T
    fitted = f"{data['seeds']} fits on random parts of all rows (±{BARS} s.e.)"
    draw_points(ax, data["n"], mean, stderr, color="0.15", label=fitted)
    ax.axvline(IN_HAND, color="0.6", linestyle=":", linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="labels $n$", ylabel="classification error")
    ax.set_xticks([10, 30, 100, 300, 1000])
    ax.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g} %"))
    ax.set_title(f"scikit-learn's digits, ten classes: ridge regression, $\\lambda={LAM}$")
    add_legend(ax)
    return picture

"""Figures of the errors that more samples, or samples used twice, reach.

Digits: labels that a linear probe of scikit-learn's digits needs, ten classes, ridge regression.
The theory of all rows, and of the first ones, with the standard error over rows of a sample;
readouts that are fitted on random parts of all rows; and the power law through scikit-learn's
learning_curve of the first rows.

Reuse: the cost of training both layers on the same samples, errors against alpha = alpha0 of a
readout on the samples of its step, and on as many fresh ones.  Budget: the smallest test error of
each use of N samples, at its own best penalty.  Lines: theory; points: the network itself.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.optimize import curve_fit

import replica
from replica import GradientStep, learning_curve, plotting, sample_allocation
from replica.documents import plain
from replica.errors import InvalidArgument, install
from replica.plotting import BARS, COLOURS, add_legend, draw_band, draw_noted, draw_points, marks_of
from solvers.results import Array

from ..run import simulate
from . import Run, Values
from .panels import add_legend_entry, legend_below

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
        needed_sklearn = f"made with scikit-learn: {install('sklearn')}"
        raise InvalidArgument("the figure", "digits", needed_sklearn) from None
    pixels, digits = load_digits(return_X_y=True)
    row_order = np.random.default_rng(0).permutation(len(digits))
    pixels = pixels[row_order][:, pixels.std(axis=0) > 0]
    return (pixels - pixels.mean(axis=0)) / pixels.std(axis=0), digits[row_order]


def power_law(estimator: Any, features: Array, labels: Array, scoring: str | None = None) -> Array:
    """a, b and c of the law a + b n^-c of an error, 1 less the score or a ``scoring`` negated, in
    scikit-learn's learning_curve of these rows: 8 numbers of samples from 15 to four fifths."""
    from sklearn.model_selection import ShuffleSplit, learning_curve

    law_samples = np.geomspace(15, 0.8 * len(labels), 8).astype(int)
    splits = ShuffleSplit(DRAWN_SPLITS, test_size=0.2, random_state=0)
    curve_options: dict[str, Any] = {"train_sizes": law_samples, "cv": splits, "scoring": scoring}
    samples, _, split_scores = learning_curve(estimator, features, labels, **curve_options)
    errors = (0 if scoring else 1) - split_scores.mean(axis=1)
    fit_options: dict[str, Any] = {"p0": [errors.min() / 2, errors.max(), 0.5], "sigma": errors}
    law, _ = curve_fit(_law_error, samples, errors, bounds=(0, [np.inf, np.inf, 3]), **fit_options)
    return np.asarray(law)


def _law_error(samples: Any, a: float, b: float, c: float) -> Any:
    return a + b * np.asarray(samples, dtype=float) ** -c


def along(power_law_parameters: Any, samples: Any) -> Array:
    """The errors of a power law at these numbers of samples."""
    return np.asarray(_law_error(samples, *power_law_parameters))


def digits_values(run: Run) -> Values:
    """Theory of all rows and of the first ones, errors of fitted readouts, and the power law."""
    features, digits = rows_of_digits()
    if run.quick:
        features, digits = features[:600], digits[:600]
    digit_rows, width = features.shape
    few = [40, 200, 500] if run.quick else [20, 50, 100, 200, 500, 1000, 1600]
    samples, digit_curves = {}, {}
    for name, row_count in {"all": digit_rows, "first": IN_HAND}.items():
        samples[name] = replica.FeatureSample(
            features=features[:row_count], labels=digits[:row_count], intercept=True
        )
        n = np.unique(np.geomspace(few[0], row_count, 4 if run.quick else 24).astype(int))
        digit_curves[name] = replica.learning_curve(samples[name], samples=n, lam=LAM)
    fit_seeds = 4 if run.quick else 40
    how: dict[str, Any] = {"seeds": fit_seeds, "rng": 0, "workers": 1, "store": run.store}
    fits = []
    for row_count in run.tracked(few):
        simulated_columns = simulate(samples["all"], samples=[row_count], lam=LAM, **how).columns
        fits.append([simulated_columns[name].item() for name in (ERROR, f"{ERROR}_stderr")])
    from sklearn.linear_model import RidgeClassifier

    digit_estimator = RidgeClassifier(alpha=LAM * width)
    law = power_law(digit_estimator, features[:IN_HAND], digits[:IN_HAND])
    theory_curves = {
        name: {
            "n": curve.samples.values,
            "error": curve[ERROR].values,
            "stderr": curve[f"{ERROR}_stderr"].values,
            "noted": curve.noted.values,
        }
        for name, curve in digit_curves.items()
    }
    values = {"theory": theory_curves, "n": few, "fits": fits, "law": law, "rows": digit_rows}
    return dict(plain(values | {"seeds": fit_seeds}))


def draw_digits(data: dict[str, Any]) -> Figure:
    """Errors against the number of labels."""
    digits_figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axis = digits_figure.subplots()
    labels = {"all": f"theory, all {data['rows']} rows", "first": f"theory, first {IN_HAND} rows"}
    for name, colour in {"all": COLOURS[0], "first": COLOURS[2]}.items():
        curve = {key: np.array(values, dtype=float) for key, values in data["theory"][name].items()}
        digit_style = {"color": colour, "label": labels[name]} | marks_of(curve["error"])
        axis.plot(curve["n"], curve["error"], **digit_style)
        draw_band(axis, curve["n"], curve["error"], curve["stderr"], color=colour)
        noted_errors = np.where(curve["noted"], curve["error"], np.nan)
        draw_noted(axis, curve["n"], noted_errors, color=colour)
    draw_noted(axis, [], [], color="0.3", label="may be off: see its note")
    band_label = f"theory, ±{BARS} s.e. over other rows"
    draw_band(axis, curve["n"], np.nan, np.nan, color="0.3", label=band_label)
    dense_samples = np.geomspace(data["n"][0], data["rows"], 100)
    law = f"power law through learning_curve\nof the first {IN_HAND} rows"
    axis.plot(dense_samples, along(data["law"], dense_samples), "--", color=COLOURS[1], label=law)
    mean, stderr = np.array(data["fits"]).T
    fitted = f"{data['seeds']} fits on random parts of all rows (±{BARS} s.e.)"
    # filled: what is open may be off
    draw_points(axis, data["n"], mean, stderr, color="0.15", markerfacecolor="0.15", label=fitted)
    axis.axvline(IN_HAND, color="0.6", linestyle=":", linewidth=1)
    axis.set(xscale="log", yscale="log", xlabel="labels $n$", ylabel="classification error")
    axis.set_xticks([10, 30, 100, 300, 1000])
    axis.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g} %"))
    axis.set_title(f"scikit-learn's digits, ten classes: ridge regression, $\\lambda={LAM}$")
    add_legend(axis)
    return digits_figure


STEPS: list[dict[str, Any]] = [
    {"student": "tanh", "target": "sin", "eta": 1.0, "noise": 0.0},
    {"student": "relu", "target": "relu", "eta": 1.0, "noise": 0.3},
    {"student": "softplus", "target": "he1+he2/2", "eta": 1.0, "noise": 0.0},
]
READOUTS = {"the samples of the step": 1.0, "fresh samples": 0.0}  # the share reused
BOTH_ERRORS = ("test_error", "train_error")
USES = ("all for both", "part for the readout", "part for the step", "split")
USE_TITLES = ("all for both", "half for the readout, all for the step",
          "half for the step, all for the readout", "the best split")  # fmt: skip


def data(name: str, run: Run) -> Values:
    """Theory and simulated networks of one of the two figures, a panel for each of its steps."""
    dimension, seeds = (80, 3) if run.quick else (1000, 16)
    draw_size: dict[str, Any] = {"dimension": dimension, "seeds": seeds, "rng": 0, "workers": 1}
    draw_size |= {"test_samples": 4 * dimension, "store": run.store}  # test inputs over dimension
    make, steps = (_reuse, STEPS) if name == "reuse" else (_budget, STEPS[: 1 if run.quick else 2])
    panels = [make(step_settings, run.quick, draw_size) for step_settings in run.tracked(steps)]
    return dict(plain({"name": name, "dimension": dimension, "seeds": seeds, "panels": panels}))


def _reuse(step_settings: dict[str, Any], quick: bool, size: dict[str, Any]) -> dict[str, Any]:
    """Errors of one step over alpha = alpha0, on both kinds of samples."""
    alphas = np.geomspace(0.5, 8, 3 if quick else 13)
    simulated_alphas = alphas[:: 2 if quick else 3]
    curves = []
    for reuse in READOUTS.values():
        reuse_step = GradientStep(**step_settings, alpha0="alpha")
        model = reuse_step.network(beta=1.0, reuse=reuse)  # in the limit, both alike
        reuse_options: dict[str, Any] = {"quadrature_tol": 1e-3} if reuse else {}  # a line is wider
        reuse_theory = learning_curve(model, alpha=alphas, lam=LAM, time_limit=60, **reuse_options)
        drawn = [simulate(model, alpha=a, lam=LAM, **size) for a in simulated_alphas]
        curves.append(
            {error: reuse_theory[error].values for error in BOTH_ERRORS}
            | {f"{error}_simulated": [_mean(sim, error) for sim in drawn] for error in BOTH_ERRORS}
        )
    return {"step": step_settings, "x": alphas, "simulated_at": simulated_alphas, "curves": curves}


def _budget(of: dict[str, Any], quick: bool, simulated_size: dict[str, Any]) -> dict[str, Any]:
    """Test errors of the best of every use of N samples."""
    budgets = np.array([1.0, 4.0]) if quick else np.geomspace(0.5, 8, 7)
    simulated_budgets = slice(None, None, 1 if quick else 2)
    step, curves = GradientStep(**of, alpha0=1.0), []
    plans_of_budgets = [sample_allocation(step, budget=budget).plans for budget in budgets]
    for use in USES:
        plans = [next(plan for plan in plans if plan.use == use) for plans in plans_of_budgets]
        use_errors = []
        for plan in plans[simulated_budgets]:
            planned_network = replace(step, alpha0=plan.alpha0).network(beta=1.0, reuse=plan.reuse)
            simulation = simulate(planned_network, alpha=plan.alpha, lam=plan.lam, **simulated_size)
            use_errors.append(_mean(simulation, "test_error"))
        curves.append(
            {"test_error": [plan.test_error for plan in plans], "test_error_simulated": use_errors,
             "plans": [[plan.alpha0, plan.alpha, plan.lam] for plan in plans]}
        )  # fmt: skip
    return {"step": of, "x": budgets, "simulated_at": budgets[simulated_budgets], "curves": curves}


def _mean(simulation: Any, error: str) -> list[float]:
    """The mean of an error and its standard error."""
    return [getattr(simulation, name).item() for name in (error, f"{error}_stderr")]


def draw(data: dict[str, Any]) -> Figure:
    """A column for each step; rows of test errors and, of reuse, of training errors."""
    reuse = data["name"] == "reuse"
    errors, labels = (BOTH_ERRORS, list(READOUTS)) if reuse else (BOTH_ERRORS[:1], list(USE_TITLES))
    columns = len(data["panels"])
    sample_axis = r"$\alpha = \alpha_0 = n/d$" if reuse else r"samples per dimension $N/d$"
    picture = Figure(
        figsize=(max(3.4 * columns + 0.8, 8.0), 2.6 * len(errors) + 1.6), layout="constrained"
    )
    axes = picture.subplots(len(errors), columns, sharex=True, squeeze=False)
    legend_handles = []
    for column, panel in enumerate(data["panels"]):
        for row, error in enumerate(errors):
            panel_axis = axes[row, column]
            for i, curve in enumerate(panel["curves"]):
                style: dict[str, Any] = {"color": plotting.COLOURS[i]}
                line = panel_axis.plot(panel["x"], curve[error], ["-", "--", "-.", ":"][i], **style)
                mean, stderr = np.array(curve[f"{error}_simulated"]).T
                style["marker"] = "os^D"[i]
                marker_nudge = i - (len(labels) - 1) / 2
                at = plotting.nudged(np.array(panel["simulated_at"]), marker_nudge, len(labels))
                plotting.draw_points(panel_axis, at, mean, stderr, markerfacecolor="white", **style)
                if not (row or column):
                    line[0].set_label(f"theory, {labels[i]}" if reuse else labels[i])
                    legend_handles += line
            panel_axis.set_xscale("log", base=2)
            panel_axis.xaxis.set_major_formatter("{x:g}")
            panel_axis.set_ylim(bottom=0)
        axes[0, column].set_title(", ".join(plotting.settings(panel["step"])), fontsize="small")
        axes[-1, column].set_xlabel(sample_axis)
    for row, error in enumerate(errors):
        axes[row, 0].set_ylabel(plotting.ERROR_LABELS[error])
    simulated_size = data["dimension"], data["seeds"]
    legend_handles.append(add_legend_entry(axes[0, 0], *simulated_size, markerfacecolor="white"))
    legend_below(picture, legend_handles, ncols=len(legend_handles) if columns > 2 else 2)
    title_settings = {"beta": 1.0} | ({"lam": LAM} if reuse else {})
    penalty_text = "" if reuse else r", $\lambda$ the best of each"
    picture.suptitle(", ".join(plotting.settings(title_settings)) + penalty_text, fontsize="small")
    plotting.letter_panels(axes.ravel())
    return picture

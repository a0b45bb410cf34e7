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
from scipy.optimize import curve_fit

import replica
from replica import GradientStep, learning_curve, plotting, sample_allocation
from replica.errors import InvalidArgument, install
from replica.files import plain
from replica.plotting import BARS, COLOURS, add_legend, draw_band, draw_noted, draw_points, marks_of
from solvers.results import Array

from . import Run, Values
from .panels import Curve, Panel, draw_panels

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
    digit_order = np.random.default_rng(0).permutation(len(digits))
    pixels = pixels[digit_order][:, pixels.std(axis=0) > 0]
    return (pixels - pixels.mean(axis=0)) / pixels.std(axis=0), digits[digit_order]


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
    fitted_law, _ = curve_fit(
        lambda n, *law: along(law, n), samples, errors, bounds=(0, [np.inf, np.inf, 3]),
        **fit_options,
    )  # fmt: skip
    return np.asarray(fitted_law)


def along(power_law_parameters: Any, samples: Any) -> Array:
    """The errors of a power law at these numbers of samples."""
    a, b, c = power_law_parameters
    return np.asarray(a + b * np.asarray(samples, dtype=float) ** -c)


def digits_values(run: Run) -> Values:
    """Theory of all rows and of the first ones, errors of fitted readouts, and the power law."""
    digit_features, digits = rows_of_digits()
    if run.quick:
        digit_features, digits = digit_features[:600], digits[:600]
    digit_rows, width = digit_features.shape
    few = [40, 200, 500] if run.quick else [20, 50, 100, 200, 500, 1000, 1600]
    samples, digit_curves = {}, {}
    for name, row_count in {"all": digit_rows, "first": IN_HAND}.items():
        samples[name] = replica.FeatureSample(
            features=digit_features[:row_count], labels=digits[:row_count], intercept=True
        )
        n = np.unique(np.geomspace(few[0], row_count, 4 if run.quick else 24).astype(int))
        digit_curves[name] = replica.learning_curve(samples[name], samples=n, lam=LAM)
    fit_seeds = 4 if run.quick else 40
    how: dict[str, Any] = {"seeds": fit_seeds, "lam": LAM}
    fits = [
        run.simulated(samples["all"], [ERROR], samples=[row_count], **how)[0, 0]
        for row_count in run.tracked(few)
    ]
    from sklearn.linear_model import RidgeClassifier

    digit_estimator = RidgeClassifier(alpha=LAM * width)
    law = power_law(digit_estimator, digit_features[:IN_HAND], digits[:IN_HAND])
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
    band_label = f"theory, ±{BARS} s.e. over test rows"
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
    axis.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1000"])
    axis.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4], ["3 %", "5 %", "10 %", "20 %", "40 %"])
    axis.minorticks_off()
    axis.set_title(f"scikit-learn's digits, ten classes: ridge regression, $\\lambda={LAM}$")
    add_legend(axis)
    return digits_figure


STEPS: list[dict[str, Any]] = [
    {"student": "tanh", "target": "sin", "eta": 1.0, "noise": 0.0},
    {"student": "relu", "target": "relu", "eta": 1.0, "noise": 0.3},
]
READOUTS = {"the samples of the step": 1.0, "fresh samples": 0.0}  # the share reused
BOTH_ERRORS = ("test_error", "train_error")
USES = {
    "all for both": "all for both",
    "part for the readout": "half for the readout, all for the step",
    "part for the step": "half for the step, all for the readout",
    "best split": "the best split",
}


def data(name: str, run: Run) -> Values:
    """Theory and simulated networks of one of the two figures, a panel for each of its steps."""
    size = run.size((1000, 16), (80, 3))
    draw_options: dict[str, Any] = size | {"test_samples": 4 * size["dimension"]}
    curves_of, steps = (_reuse, STEPS) if name == "reuse" else (_budget, STEPS[: 2 - run.quick])
    panels = [
        [curve | size for curve in curves_of(step_settings, run, draw_options)]
        for step_settings in run.tracked(steps)
    ]
    return dict(plain({"figure": name, **size, "panels": panels}))


def _reuse(step_settings: dict[str, Any], run: Run, draws: dict[str, Any]) -> list[Values]:
    """Errors of one step over alpha = alpha0, on both kinds of samples."""
    alphas = np.geomspace(0.5, 8, 3 if run.quick else 13)
    simulated_at, curves = alphas[:: 2 if run.quick else 3], []
    for reuse in READOUTS.values():
        reuse_step = GradientStep(**step_settings, alpha0="alpha")
        model = reuse_step.network(beta=1.0, reuse=reuse)  # in the limit, both alike
        reuse_options: dict[str, Any] = {"quadrature_tol": 1e-3} if reuse else {}  # a line is wider
        theory = learning_curve(model, alpha=alphas, lam=LAM, time_limit=60, **reuse_options)
        drawn = run.simulated(model, BOTH_ERRORS, alpha=simulated_at, lam=LAM, **draws)
        reuse_curve: Values = {"x": alphas, "simulated_at": simulated_at}
        for error, points in zip(BOTH_ERRORS, drawn, strict=True):
            reuse_curve[error] = {"theory": theory[error].values, "simulated": points}
        curves.append(reuse_curve)
    return curves


def _budget(step_settings: dict[str, Any], run: Run, draws: dict[str, Any]) -> list[Values]:
    """Test errors of the best of every use of N samples."""
    budgets, every = (np.array([1.0, 4.0]), 1) if run.quick else (np.geomspace(0.5, 8, 7), 2)
    step, curves = GradientStep(**step_settings, alpha0=1.0), []
    plans_of_budgets = [sample_allocation(step, budget=budget).plans for budget in budgets]
    for use in USES:
        plans = [next(plan for plan in plans if plan.use == use) for plans in plans_of_budgets]
        drawn = [
            run.simulated(
                replace(step, alpha0=plan.alpha0).network(beta=1.0, reuse=plan.reuse),
                alpha=plan.alpha, lam=plan.lam, **draws,
            )[0, 0]
            for plan in plans[::every]
        ]  # fmt: skip
        plan_errors = {"theory": [plan.test_error for plan in plans], "simulated": drawn}
        curve: Values = {"x": budgets, "simulated_at": budgets[::every], "test_error": plan_errors}
        curves.append(curve | {"plans": [[plan.alpha0, plan.alpha, plan.lam] for plan in plans]})
    return curves


def draw(data: Values) -> Figure:
    """A column for each error of each step."""
    reuse = data["figure"] == "reuse"
    labels, errors = (READOUTS, BOTH_ERRORS) if reuse else (USES.values(), BOTH_ERRORS[:1])
    curves = [Curve(None, {}, *labelled) for labelled in zip(labels, COLOURS, strict=False)]
    panels = [
        Panel(
            curves, np.array(drawn[0]["x"]), (), (0, 0),
            ", ".join(plotting.settings(step)).replace("target, ", "target\n"),
            r"$\alpha = \alpha_0 = n/d$" if reuse else r"samples per dimension $N/d$", errors,
            scales={"xscale": "log"},
        )
        for step, drawn in zip(STEPS, data["panels"], strict=False)
    ]  # fmt: skip
    picture = Figure(figsize=(12 if reuse else 10, 5.4), layout="constrained")
    panel_axes = draw_panels(picture, data, panels)
    for axis in panel_axes:
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
    fixed = plotting.settings({"beta": 1.0} | ({"lam": LAM} if reuse else {}))
    best_penalty = [] if reuse else [r"$\lambda$ the best of each"]
    picture.suptitle(", ".join(fixed + best_penalty), fontsize="small")
    plotting.letter_panels(panel_axes)
    return picture

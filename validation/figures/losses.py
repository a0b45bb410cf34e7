"""Losses on spiked random features of a tanh student, all at one small penalty.

classification: the classification error of square, logistic and hinge loss; labels are the sign of
w*.x, a tenth of them flipped.  Left: against the number of samples at a penalty where losses
differ: at the best of each they are within half a percent.  Middle: against the penalty.  Last: the
calibration of the logistic output given the projection on the spike.

robust-losses: what a robust loss buys; sine target, labels carry Gaussian noise and, one in ten, an
outlier of standard deviation 3.  Left: against the number of samples.  Right: against the fraction
of outliers.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from replica import SpikedRandomFeatures, calibration, solve
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import (
    COLOURS,
    ERROR_LABELS,
    LABELS,
    add_legend,
    colours,
    letter_panels,
    setting,
    settings,
)
from replica.problem import describe
from solvers.results import Array

from ..run import simulate
from .computing import Progress, tracked
from .drawing import add_legend_entry, draw_simulated, panels_with_differences

FIXED_ALPHA = 2.0  # where the penalty or the fraction of outliers varies
CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)


class Plan(NamedTuple):
    """What is fitted, by losses with their labels; the error that is shown, and
    the size of the simulation."""

    model: SpikedRandomFeatures
    lam: float
    losses: dict[str, str]
    error: str
    size: dict[str, int]


PLANS = {
    "classification": Plan(
        SpikedRandomFeatures(
            student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
        ),
        0.01,
        {"square": "square", "logistic": "logistic", "hinge": "hinge"},
        "classification_error",
        {"dimension": 500, "seeds": 6},
    ),
    "robust-losses": Plan(
        SpikedRandomFeatures(
            student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, noise=0.05,
            label_noise="outliers:0.1:9",
        ),
        0.1,
        {"square": "square", "huber:0.3": r"Huber, $\delta = 0.3$", "absolute": "absolute"},
        "test_error",
        {"dimension": 400, "seeds": 8},
    ),
}  # fmt: skip


def abscissas(name: str, quick: bool) -> dict[str, tuple[Array, Array]]:
    """What is varied, where there is theory, and where sRFs are simulated."""
    few = np.array([0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0])
    alpha = {"alpha": (np.linspace(0.2, 4, 8 if quick else 191), few)}
    if name == "classification":
        few = np.array([0.01, 1.0] if quick else [0.01, 0.1, 1.0])
        return alpha | {"lam": (np.geomspace(1e-3, 2, 6 if quick else 97), few)}
    few = np.array([0.0, 0.3] if quick else [0.0, 0.1, 0.2, 0.3])
    dense = 0.3 * np.linspace(0, 1, 4 if quick else 61) ** 2  # the first outliers cost most
    return alpha | {"fraction": (dense, few)}


def grids(plan: Plan, name: str, values: Array) -> list[tuple[SpikedRandomFeatures, Any, Any]]:
    """Models with the alpha and lam at which what is called ``name`` has these values."""
    if name == "alpha":
        return [(plan.model, values, plan.lam)]
    if name == "lam":
        return [(plan.model, FIXED_ALPHA, values)]
    noises = [f"outliers:{fraction:g}:9" for fraction in values]
    return [(replace(plan.model, label_noise=one), FIXED_ALPHA, plan.lam) for one in noises]


def data(
    name: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Theory for every loss over all that is varied, simulated sRFs, and the calibration."""
    plan, axes = PLANS[name], abscissas(name, quick)
    size = {"dimension": 100, "seeds": 2} if quick else plan.size
    curves = []
    for loss in tracked(list(plan.losses), progress):
        curve: dict[str, Any] = {"loss": loss, "lam": plan.lam}
        for x, (dense, few) in axes.items():
            lines = [
                sweep(model, alpha=alpha, lam=lam, grids={}, loss=loss).columns[plan.error]
                for model, alpha, lam in grids(plan, x, dense)
            ]
            options: dict[str, Any] = {"loss": loss, "store": store, **size}
            points = [
                simulate(model, alpha=alpha, lam=lam, rng=i, **options).columns
                for i, (model, alpha, lam) in enumerate(grids(plan, x, few))
            ]
            curve[f"theory_{x}"] = np.ravel(lines)
            for part, end in {"simulated": "", "stderr": "_stderr"}.items():
                curve[f"{part}_{x}"] = np.ravel([one[plan.error + end] for one in points])
        curves.append(curve)
    shown: dict[str, Any] = {"figure": name, **size, "curves": curves}
    for x, (dense, few) in axes.items():
        shown |= {x: dense, f"few_{x}": few}
    return dict(plain(shown | (calibration_of(plan) if name == "classification" else {})))


def calibration_of(plan: Plan) -> dict[str, Any]:
    """The logistic output and what is true, given the projection on the spike."""
    kappa = np.linspace(-3, 3, 61)
    each = [
        calibration(solve(plan.model, alpha=FIXED_ALPHA, lam=lam, loss="logistic"), kappa)
        for lam in CALIBRATED_PENALTIES
    ]
    predicted, frequency = [one.predicted for one in each], each[0].frequency
    known = {"kappa": kappa, "penalties": CALIBRATED_PENALTIES}
    return known | {"predicted": predicted, "frequency": frequency}


def draw(data: dict[str, Any]) -> Figure:
    """Theory as lines, simulated spiked random features as points; below, what they are off by.
    Last, the calibration, if there is one."""
    plan, calibrated = PLANS[data["figure"]], "kappa" in data
    picture = Figure(figsize=(11, 4.6) if calibrated else (9, 4.8), layout="constrained")
    curves: Any = picture
    if calibrated:
        curves, last = picture.subfigures(1, 2, squeeze=False, width_ratios=(2, 1))[0]
    axes = panels_with_differences(curves, 2, sharey="row")
    (left, middle), below = axes
    over = ("alpha", "lam" if calibrated else "fraction")
    shades = colours(list(plan.losses))
    for i, (curve, color) in enumerate(zip(data["curves"], shades, strict=True)):
        for column, x in zip(axes.T, over, strict=True):
            label = plan.losses[curve["loss"]]
            label += "" if x == "lam" else f", {setting('lam', curve['lam'])}"
            line = data[x], curve[f"theory_{x}"]
            points = data[f"few_{x}"], curve[f"simulated_{x}"], curve[f"stderr_{x}"]
            column[0].plot(*line, color=color, label=label)
            draw_simulated(column, *line, *points, places=i - 1, color=color)
    left.set_ylabel(ERROR_LABELS[plan.error])
    for ax, x in zip(below, over, strict=True):
        ax.set_xlabel(LABELS.get(x, "fraction of outliers"))
    middle.set_title(setting("alpha", FIXED_ALPHA), fontsize="medium")
    add_legend_entry(left, data["dimension"])
    fixed = describe(plan.model)
    panels = [left, middle]
    if calibrated:
        middle.set_xscale("log")
        panels.append(draw_calibration(last.subplots(), data))
    else:
        left.set_title("10 % outliers", fontsize="medium")
        left.set_yscale("log")
        del fixed["label_noise"]
    picture.suptitle(", ".join(settings(fixed)), fontsize="small")
    for ax in panels if calibrated else [left]:
        add_legend(ax)
    letter_panels(panels)
    return picture


def draw_calibration(ax: Any, data: dict[str, Any]) -> Any:
    """Probabilities that are stated, and the frequency."""
    shown = zip(data["penalties"], data["predicted"], COLOURS[3:], strict=False)
    for lam, predicted, color in shown:
        ax.plot(data["kappa"], predicted, color=color, label=f"stated, {setting('lam', lam)}")
    ax.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    ax.set_title(f"logistic output, {setting('alpha', FIXED_ALPHA)}", fontsize="medium")
    ax.set_xlabel(r"projection on the spike $\kappa$")
    ax.set_ylabel(r"probability of $y = 1$")
    return ax

"""Logistic, hinge and square loss on labels: the classification error of each.

Spiked random features of a tanh student; labels are the sign of w*.x, a tenth of them flipped.
Left: against the number of samples at one small penalty, where losses differ: at the best of each
they are within half a percent.  Middle: against the
penalty.  Last: the calibration of the logistic output given the projection on the spike.
"""

from pathlib import Path
from typing import Any

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
    letter_panels,
    setting,
    settings,
)
from replica.problem import describe

from ..run import simulate
from .computing import Progress, tracked
from .drawing import add_legend_entry, draw_losses, panels_with_differences

FLIPPED_MODEL = SpikedRandomFeatures(
    student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
)
PENALTY_OF_LOSS = dict.fromkeys(("square", "logistic", "hinge"), 0.01)
FIXED_ALPHA = 2.0  # where the penalty varies
CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory for every loss over alpha and over lam, simulated sRFs, and the calibration."""
    alpha = np.linspace(0.2, 4, 8 if quick else 191)
    lam = np.geomspace(1e-3, 2, 6 if quick else 97)
    few_alpha = np.array([0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0])
    few_lam = np.array([0.01, 1.0] if quick else [0.01, 0.1, 1.0])
    size: dict[str, Any] = dict(dimension=100, seeds=2) if quick else dict(dimension=500, seeds=6)
    curves = []
    for loss, penalty in tracked(list(PENALTY_OF_LOSS.items()), progress):
        options: dict[str, Any] = {"loss": loss, "rng": 0, "store": store, **size}
        curve: dict[str, Any] = {"loss": loss, "lam": penalty}
        own, fixed = np.array([penalty]), np.array([FIXED_ALPHA])
        for name, at, few in (
            ("alpha", (alpha, own), (few_alpha, own)),
            ("lam", (fixed, lam), (fixed, few_lam)),
        ):
            grid = sweep(FLIPPED_MODEL, alpha=at[0], lam=at[1], grids={}, loss=loss)
            columns = simulate(FLIPPED_MODEL, alpha=few[0], lam=few[1], **options).columns()
            curve[f"theory_{name}"] = grid.columns["classification_error"]
            curve[f"simulated_{name}"] = columns["simulated_classification_error"].ravel()
            curve[f"stderr_{name}"] = columns["stderr_classification_error"].ravel()
        curves.append(curve)
    kappa = np.linspace(-3, 3, 61)
    calibrations = [
        calibration(solve(FLIPPED_MODEL, alpha=FIXED_ALPHA, lam=each, loss="logistic"), kappa)
        for each in CALIBRATED_PENALTIES
    ]
    axes = {"alpha": alpha, "lam": lam, "few_alpha": few_alpha, "few_lam": few_lam, "kappa": kappa}
    shown = {
        "penalties": CALIBRATED_PENALTIES,
        "predicted": [each.predicted for each in calibrations],
        "frequency": calibrations[0].frequency,
    }
    return dict(plain({**axes, **size, **shown, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """Theory as lines, simulated spiked random features as points; below, what they are off by.
    Last, the calibration."""
    picture = Figure(figsize=(11, 4.6), layout="constrained")
    picture.suptitle(", ".join(settings(describe(FLIPPED_MODEL))), fontsize="small")
    curves, last = picture.subfigures(1, 2, squeeze=False, width_ratios=(2, 1))[0]
    axes = panels_with_differences(curves, 2, sharey="row")
    (left, middle), below = axes
    draw_losses(axes, data, [curve["loss"] for curve in data["curves"]], ("alpha", "lam"))
    left.set_ylabel(ERROR_LABELS["classification_error"])
    for ax, name in zip(below, ("alpha", "lam"), strict=True):
        ax.set_xlabel(LABELS[name])
    middle.set_xscale("log")
    middle.set_title(setting("alpha", FIXED_ALPHA), fontsize="medium")
    add_legend_entry(left, data["dimension"])
    right = last.subplots()
    for i, (lam, predicted) in enumerate(zip(data["penalties"], data["predicted"], strict=True)):
        label = f"stated, {setting('lam', lam)}"
        right.plot(data["kappa"], predicted, color=COLOURS[3 + i], label=label)
    right.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    right.set_title(f"logistic output, {setting('alpha', FIXED_ALPHA)}", fontsize="medium")
    right.set_xlabel(r"projection on the spike $\kappa$")
    right.set_ylabel(r"probability of $y = 1$")
    for ax in (left, middle, right):
        add_legend(ax)
    letter_panels([left, middle, right])
    return picture

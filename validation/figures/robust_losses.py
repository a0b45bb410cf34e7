"""What a robust loss buys: ridge, Huber and absolute loss where a tenth of the labels are wild.

tanh student, sine target, spiked random features; labels carry Gaussian noise and, one in ten,
an outlier of standard deviation 3.  One small penalty for all.  Left: against the number of
samples.  Right: against the fraction of outliers.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import SpikedRandomFeatures
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import (
    ERROR_LABELS,
    LABELS,
    add_legend,
    colours,
    letter_panels,
    setting,
    settings,
)
from replica.problem import describe

from ..run import simulate
from .computing import Progress, tracked
from .drawing import add_legend_entry, draw_curve, panels_with_differences

OUTLIER_MODEL = SpikedRandomFeatures(
    student="tanh",
    target="sin",
    r=1.1,
    c=1.0,
    gamma=0.97,
    noise=0.05,
    label_noise="outliers:0.1:9",
)
PENALTIES_AND_LABELS = {
    "square": (0.1, r"square"),
    "huber:0.3": (0.1, r"Huber, $\delta = 0.3$"),
    "absolute": (0.1, r"absolute"),
}
FIXED_ALPHA = 2.0  # where the fraction of outliers varies


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory over alpha and over the fraction of outliers for every loss, and simulated sRFs."""
    alpha = np.linspace(0.2, 4, 8 if quick else 191)
    fraction = 0.3 * np.linspace(0, 1, 4 if quick else 61) ** 2  # the first outliers cost most
    few_alpha = np.array([0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0])
    few_fraction = np.array([0.0, 0.3] if quick else [0.0, 0.1, 0.2, 0.3])
    size: dict[str, Any] = dict(dimension=100, seeds=2) if quick else dict(dimension=400, seeds=8)
    curves = []
    for loss, (lam, _) in tracked(list(PENALTIES_AND_LABELS.items()), progress):
        grid = sweep(OUTLIER_MODEL, alpha=alpha, lam=lam, grids={}, loss=loss)
        over_alpha = simulate(
            OUTLIER_MODEL, alpha=few_alpha, lam=lam, loss=loss, rng=0, store=store, **size
        )
        over_fraction = [
            sweep(_with(share), alpha=FIXED_ALPHA, lam=lam, grids={}, loss=loss)
            for share in fraction
        ]
        simulated = [
            simulate(
                _with(share), alpha=FIXED_ALPHA, lam=lam, loss=loss, rng=i, store=store, **size
            )
            for i, share in enumerate(few_fraction)
        ]
        curves.append(
            {
                "loss": loss,
                "lam": lam,
                "theory": grid.columns["test_error"],
                "simulated": over_alpha.test_mean[:, 0],
                "stderr": over_alpha.test_stderr[:, 0],
                "theory_fraction": [each.columns["test_error"][0] for each in over_fraction],
                "simulated_fraction": [each.test_mean[0, 0] for each in simulated],
                "stderr_fraction": [each.test_stderr[0, 0] for each in simulated],
            }
        )
    axes = {
        "alpha": alpha,
        "fraction": fraction,
        "simulated_alpha": few_alpha,
        "simulated_fraction": few_fraction,
    }
    return dict(plain({**axes, **size, "curves": curves}))


def _with(fraction: float) -> SpikedRandomFeatures:
    """The model with another fraction of outliers among its labels."""
    return replace(OUTLIER_MODEL, label_noise=f"outliers:{fraction:g}:9")


def draw(data: dict[str, Any]) -> Figure:
    """Theory as lines, simulated spiked random features as points; below, what they are off by."""
    picture = Figure(figsize=(9, 4.8), layout="constrained")
    fixed = {k: v for k, v in describe(OUTLIER_MODEL).items() if k != "label_noise"}
    picture.suptitle(", ".join(settings(fixed)), fontsize="small")
    axes = panels_with_differences(picture, 2, sharey="row")
    (left, right), below = axes
    losses = [curve["loss"] for curve in data["curves"]]
    for i, (curve, color) in enumerate(zip(data["curves"], colours(losses), strict=True)):
        label = f"{PENALTIES_AND_LABELS[curve['loss']][1]}, {setting('lam', curve['lam'])}"
        for column, axis in zip(axes.T, ("alpha", "fraction"), strict=True):
            suffix = "" if axis == "alpha" else "_fraction"
            values = [data[axis], curve[f"theory{suffix}"], data[f"simulated_{axis}"]]
            values += [curve[f"{name}{suffix}"] for name in ("simulated", "stderr")]
            draw_curve(column, *values, color=color, label=label, places=i - 1)
    left.set_title("10 % outliers", fontsize="medium")
    right.set_title(setting("alpha", FIXED_ALPHA), fontsize="medium")
    below[0].set_xlabel(LABELS["alpha"])
    below[1].set_xlabel("fraction of outliers")
    left.set_ylabel(ERROR_LABELS["test_error"])
    left.set_yscale("log")
    add_legend_entry(left, data["dimension"])
    add_legend(left)
    letter_panels([left, right])
    return picture

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
from replica.plotting import ERROR_LABELS, LABELS, add_legend, letter_panels, setting, settings
from replica.problem import describe

from ..run import simulate
from .computing import Progress, tracked
from .drawing import add_legend_entry, draw_losses, panels_with_differences

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
        at: dict[str, Any] = {"lam": lam, "loss": loss}
        of_share = at | {"alpha": FIXED_ALPHA}
        over_alpha = [sweep(OUTLIER_MODEL, alpha=alpha, grids={}, **at)]
        over_fraction = [sweep(_with(share), grids={}, **of_share) for share in fraction]
        at, of_share = (how | size | {"store": store} for how in (at, of_share))
        found_alpha = [simulate(OUTLIER_MODEL, alpha=few_alpha, rng=0, **at)]
        found = [simulate(_with(share), rng=i, **of_share) for i, share in enumerate(few_fraction)]
        curve: dict[str, Any] = {"loss": loss, "lam": lam}
        for name, theory, simulated in (
            ("alpha", over_alpha, found_alpha),
            ("fraction", over_fraction, found),
        ):
            curve[f"theory_{name}"] = np.ravel([one.columns["test_error"] for one in theory])
            curve[f"simulated_{name}"] = np.ravel([one.test_mean for one in simulated])
            curve[f"stderr_{name}"] = np.ravel([one.test_stderr for one in simulated])
        curves.append(curve)
    axes = {"alpha": alpha, "fraction": fraction}
    few = {"few_alpha": few_alpha, "few_fraction": few_fraction}
    return dict(plain({**axes, **few, **size, "curves": curves}))


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
    names = [PENALTIES_AND_LABELS[curve["loss"]][1] for curve in data["curves"]]
    draw_losses(axes, data, names, ("alpha", "fraction"))
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

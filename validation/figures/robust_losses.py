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
    of_shares = [[_with(share) for share in shares] for shares in (fraction, few_fraction)]
    panels: dict[str, Any] = {  # models with their alpha: of the line, and of the points
        "alpha": ([(OUTLIER_MODEL, alpha)], [(OUTLIER_MODEL, few_alpha)]),
        "fraction": of_shares,
    }
    curves = []
    for loss, (lam, _) in tracked(list(PENALTIES_AND_LABELS.items()), progress):
        at: dict[str, Any] = {"loss": loss, "lam": lam}
        curve = dict(at)
        for name, (line, points) in panels.items():
            theory = [sweep(model, alpha=a, grids={}, **at) for model, a in line]
            options = at | size | {"store": store}
            found = [simulate(m, alpha=a, rng=i, **options) for i, (m, a) in enumerate(points)]
            curve[f"theory_{name}"] = np.ravel([one.columns["test_error"] for one in theory])
            curve[f"simulated_{name}"] = np.ravel([one.test_mean for one in found])
            curve[f"stderr_{name}"] = np.ravel([one.test_stderr for one in found])
        curves.append(curve)
    axes = {"alpha": alpha, "fraction": fraction}
    few = {"few_alpha": few_alpha, "few_fraction": few_fraction}
    return dict(plain({**axes, **few, **size, "curves": curves}))


def _with(fraction: float) -> tuple[SpikedRandomFeatures, float]:
    """The model with another fraction of outliers among its labels, and its alpha."""
    return replace(OUTLIER_MODEL, label_noise=f"outliers:{fraction:g}:9"), FIXED_ALPHA


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

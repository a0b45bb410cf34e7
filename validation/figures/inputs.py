"""What structure in the inputs buys: networks after one giant step on mixtures of Gaussians.

Left, two classes, labels +-1, over their separation s: their means are +-s on one coordinate, and
they are isotropic, or have the variance 5 along the means or across them.  Middle, one component
that has a variance of its own along one coordinate, the data spike, over that variance; the target
lies at 45 degrees to it.  Right, the same over that angle, at the variance 5.  docs/theory.md 19.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GaussianMixture, GradientStep, solve
from replica.documents import plain
from replica.plotting import COLOURS, settings
from solvers.results import Array

from .computing import Progress, model_of, simulated, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

STEP: dict[str, Any] = {"student": "relu", "alpha0": 1.0, "eta": 2.0}
FIT: dict[str, Any] = {"alpha": 2.0, "lam": 0.1}
KINDS = ("theory", "srf")
# Of the curves of two classes the variances along the means and across, and the label.
CLASSES: dict[str, tuple[tuple[float, float], str]] = {
    "round": ((1.0, 1.0), "isotropic classes"),
    "along": ((5.0, 1.0), "variance 5 along the means"),
    "across": ((1.0, 5.0), "variance 5 across them"),
}
# Of each panel what is varied, between what, and its curves.
PANELS: dict[str, tuple[str, tuple[float, float], tuple[str, ...]]] = {
    "separation": ("separation of the classes $s$ (with intercept)", (0.0, 3.0), tuple(CLASSES)),
    "variance": ("variance of the data spike", (1.0, 9.0), ("spike",)),
    "angle": ("angle between target and spike (degrees)", (0.0, 90.0), ("spike",)),
}


def step_at(panel: str, curve: str, x: float) -> GradientStep:
    """The step of a curve at one abscissa."""
    if panel == "separation":
        means = np.array([[x, 0.0], [-x, 0.0]])
        law = GaussianMixture(means=means, covariances=np.diag(CLASSES[curve][0]))
        # without an intercept outputs of relu neurons are not centred between the classes
        return GradientStep(**STEP, target="classes:1,-1", inputs=law, intercept=True)
    variance, angle = (x, 45.0) if panel == "variance" else (5.0, x)
    along, beside = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    target = f"tanh({along:.9f}*z1 + {beside:.9f}*z2)"
    law = GaussianMixture(means=np.zeros((1, 2)), covariances=np.diag([variance, 1.0]))
    return GradientStep(**STEP, target=target, inputs=law)


def abscissas(panel: str, quick: bool) -> tuple[Array, Array]:
    """Where there are theories, and where networks are simulated."""
    low, high = PANELS[panel][1]
    return np.linspace(low, high, 7 if quick else 31), np.linspace(low, high, 3 if quick else 7)


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Errors of network and sRF, and of simulated networks, in every panel."""
    size = {"dimension": 100, "seeds": 2} if quick else {"dimension": 1000, "seeds": 12}
    every = [(panel, curve) for panel, (_, _, curves) in PANELS.items() for curve in curves]
    curves = []
    for panel, curve in tracked(every, progress):
        x, few = abscissas(panel, quick)
        found: dict[str, Any] = {"panel": panel, "curve": curve, "x": x, "simulated_at": few}
        for kind in KINDS:
            models = [model_of(kind, step_at(panel, curve, float(at))) for at in x]
            found[kind] = [solve(model, **FIT).test_error for model in models]
        options: dict[str, Any] = {**FIT, **size, "beta": 1.0, "store": store}
        points = [simulated(step_at(panel, curve, float(at)), **options) for at in few]
        found["simulated"] = np.concatenate(points)
        curves.append(found)
    return dict(plain({"figure": "inputs", **size, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """A column for each panel, a colour for each of its curves."""
    picture = Figure(figsize=(11.5, 5.2), layout="constrained")
    axes = panels_with_differences(picture, len(PANELS))
    fixed = settings({**STEP, "beta": 1.0, **FIT})
    picture.suptitle(", ".join(fixed), fontsize="small")
    for column, panel in zip(axes.T, PANELS, strict=True):
        own = [curve for curve in data["curves"] if curve["panel"] == panel]
        for color, curve in zip(COLOURS, own, strict=False):
            label = CLASSES[curve["curve"]][1] if panel == "separation" else ""
            draw_theories(column, curve, curve, color=color, label=label)
        column[0].set_ylim(bottom=0)
        column[1].set_xlabel(PANELS[panel][0])
    theory_legend(axes, data["dimension"], KINDS, draws=data["seeds"])
    return picture

"""What structure in the inputs buys: networks after one giant step on mixtures of Gaussians.

Left, two classes, labels +-1, over their separation s: their means are +-s on one coordinate, and
they are isotropic, or have the variance 5 along the means or across them.  Middle, one component
that has a variance of its own along one coordinate, the data spike, over that variance; the target
lies at 45 degrees to it.  Right, the same over that angle, at the variance 5.  docs/theory.md 19.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GaussianMixture, GradientStep
from replica.plotting import COLOURS, settings

from .computing import Progress
from .panels import Curve, Panel, compute, draw_panels

STEP: dict[str, Any] = {"student": "relu", "alpha0": 1.0, "eta": 2.0}
FIT: dict[str, Any] = {"alpha": 2.0, "lam": 0.1}
# Of the curves of two classes the variances along the means and across, by the label.
CLASSES = {
    "isotropic classes": (1.0, 1.0),
    "variance 5 along the means": (5.0, 1.0),
    "variance 5 across them": (1.0, 5.0),
}


def of_classes(variances: tuple[float, float], separation: float) -> GradientStep:
    """The step on two classes."""
    means = np.array([[separation, 0.0], [-separation, 0.0]])
    law = GaussianMixture(means=means, covariances=np.diag(variances))
    # without an intercept outputs of relu neurons are not centred between the classes
    return GradientStep(**STEP, target="classes:1,-1", inputs=law, intercept=True)


def of_spike(variance: float = 5.0, angle: float = 45.0) -> GradientStep:
    """The step on a data spike, at an angle to the target."""
    along, beside = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    target = f"tanh({along:.9f}*z1 + {beside:.9f}*z2)"
    law = GaussianMixture(means=np.zeros((1, 2)), covariances=np.diag([variance, 1.0]))
    return GradientStep(**STEP, target=target, inputs=law)


def panels_of(quick: bool) -> list[Panel]:
    """The three panels."""
    size = {"dimension": 100, "seeds": 2} if quick else {"dimension": 1000, "seeds": 12}
    classes = [
        Curve(partial(of_classes, variances), FIT, label, color)
        for (label, variances), color in zip(CLASSES.items(), COLOURS, strict=False)
    ]
    panels = (
        ("separation of the classes $s$ (with intercept)", 0.0, 3.0, classes),
        ("variance of the data spike", 1.0, 9.0, [Curve(of_spike, FIT)]),
        (
            "angle between target and spike (degrees)",
            0.0,
            90.0,
            [Curve(partial(of_spike, 5.0), FIT)],
        ),
    )
    dense, few = (7, 3) if quick else (31, 7)
    return [
        Panel(
            curves, np.linspace(low, high, dense), np.linspace(low, high, few), size,
            abscissa=abscissa,
        )
        for abscissa, low, high, curves in panels
    ]  # fmt: skip


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Errors of network and sRF, and of simulated networks, in every panel."""
    return compute(panels_of(quick), progress, store)


def draw(data: dict[str, Any]) -> Figure:
    """A column for each panel, a colour for each of its curves."""
    picture = draw_panels(data, panels_of(True), width=11.5)
    picture.suptitle(", ".join(settings({**STEP, "beta": 1.0, **FIT})), fontsize="small")
    return picture

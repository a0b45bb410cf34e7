"""Figure 6 of [C]: what variability of the first-step readout buys, a learning curve for each law.

A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
with several readout values has several functions mu_0(r kappa) to combine along the spike:
with equal readout it has one.  tanh student, one giant step, an easy and a hard target.
Combinations of nearly dependent functions have large overlaps m, which cost m^2 / p: the
theory, of the sRF, is drawn at the dimension simulated, of the Gaussian law in the limit, too.
That of a network at its own dimension covers one readout value.  What the text leaves open is
chosen here: alpha0, eta~, lam and the hard target.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.plotting import COLOURS, settings

from .computing import Progress
from .panels import Curve, Panel, compute, draw_panels

PROBLEM: dict[str, Any] = {"student": "tanh", "alpha0": 10, "eta": 3.0}
TARGETS = {
    "sin": r"easy: $\sigma_\ast = \mathrm{sin}$",
    "he1+he3/2": r"hard: $\sigma_\ast = \mathrm{He}_1 + \mathrm{He}_3/2$",
}
LAWS: dict[str, tuple[Any, str]] = {
    "1": (1.0, r"equal, $\tilde a = 1$"),
    "+-1": ("rademacher", r"$\tilde a = \pm 1$"),
    "four": ([-1.5, -0.5, 0.5, 1.5], r"$\tilde a = \pm\frac{1}{2}, \pm\frac{3}{2}$"),
    "gaussian": ("gaussian", r"$\tilde a \sim N(0, 1)$"),
}
PENALTY = 0.1
KINDS = "srf", "limit"  # of figures' theories


def panels_of(quick: bool) -> list[Panel]:
    """A panel for each target, with a curve for each law."""
    size = {"dimension": 120, "seeds": 2} if quick else {"dimension": 600, "seeds": 8}
    few = [0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0]
    fixed = ", ".join(settings(PROBLEM | {"beta": 1.0, "lam": PENALTY}))
    panels = []
    for target, title in TARGETS.items():
        curves = []
        for (law, (readout, label)), color in zip(LAWS.items(), COLOURS, strict=False):
            step = GradientStep(target=target, readout=readout, **PROBLEM)
            kinds = KINDS if law == "gaussian" else KINDS[:1]  # of others the limit is like it
            # +-1 is the same problem as equal, for an odd student
            style = {"linestyle": (0, (4, 4)), "zorder": 3} if law == "+-1" else {}
            shown: dict[str, Any] = {"label": label, "color": color, "style": style}
            curves.append(Curve(step, {"lam": PENALTY}, kinds=kinds, **shown))
        alpha = 0.1 + 3.9 * np.linspace(0, 1, 12 if quick else 121) ** 2
        panels.append(Panel(curves, alpha, few, size, f"{title}, {fixed}", at_dimension=True))
    return panels


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theories over alpha for every law and target, at d and in the limit, and simulated
    networks."""
    return compute(panels_of(quick), progress, store)


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each target: theories as lines, simulated networks as points, and below what
    they are off by."""
    return draw_panels(data, panels_of(True), own="the sRF at this $d$")

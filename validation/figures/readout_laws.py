"""What variability of the first-step readout buys: one learning curve for each law.

A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
with several readout values has several functions mu_0(r kappa) to combine along the spike:
with uniform readout it has one.  tanh student, one giant step, an easy and a hard target.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.files import plain
from replica.grids import sweep
from replica.plotting import LABELS

from ..monte_carlo import simulate

STEP: dict[str, Any] = {"student": "tanh", "alpha0": 10, "eta": 3.0}
TARGETS = {
    "sin": r"easy: $\sigma_\star = \sin$",
    "he1+he3/2": r"hard: $\sigma_\star = He_1 + He_3/2$",
}
LAWS = {
    "1": (1.0, r"uniform, $\tilde a = 1$"),
    "+-1": ("rademacher", r"$\tilde a = \pm 1$"),
    "four": ([-1.5, -0.5, 0.5, 1.5], r"$\tilde a = \pm\frac{1}{2}, \pm\frac{3}{2}$"),
    "gaussian": ("gaussian", r"$\tilde a \sim N(0, 1)$"),
}
LAM = 0.1


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory over alpha for every law and target, and simulated sRFs at a few alpha."""
    alpha = np.linspace(0.1, 4, 12 if quick else 60)
    few = np.array([0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0])
    size = {"dimension": 120, "seeds": 2} if quick else {"dimension": 600, "seeds": 6}
    curves = []
    for target in TARGETS:
        for law, (readout, _) in LAWS.items():
            model = GradientStep(target=target, readout=readout, **STEP).srf(beta=1.0)
            theory = sweep(model, alpha=alpha, lam=LAM, grids={}).columns()["test_error"]
            curve = {"target": target, "law": law, "alpha": alpha, "theory": theory}
            if law != "+-1":  # the same problem as uniform, for an odd student
                found = simulate(model, alpha=few, lam=LAM, rng=0, **size)
                curve |= {"simulated_alpha": few, "simulated": found.test_mean[:, 0]}
                curve |= {"stderr": found.test_stderr[:, 0]}
            curves.append(curve)
            if progress is not None:
                progress(len(curves), len(TARGETS) * len(LAWS))
    return plain({"step": STEP, "lam": LAM, **size, "curves": curves})


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each target: theory as lines, simulated spiked random features as points."""
    picture = Figure(figsize=(8, 3.6), layout="constrained")
    axes = dict(zip(TARGETS, picture.subplots(1, len(TARGETS)), strict=True))
    colours = {law: f"C{i}" for i, law in enumerate(LAWS)}
    for curve in data["curves"]:
        ax, law = axes[curve["target"]], curve["law"]
        style = {"color": colours[law], "label": LAWS[law][1]}
        style |= {"linestyle": (0, (4, 4)), "zorder": 3} if law == "+-1" else {}
        ax.plot(curve["alpha"], curve["theory"], **style)
        if "simulated" in curve:
            bars = 2 * np.array(curve["stderr"])
            points = (curve["simulated_alpha"], curve["simulated"], bars)
            ax.errorbar(*points, fmt="o", color=colours[law], markersize=4, capsize=2)
    for target, ax in axes.items():
        ax.set_title(TARGETS[target], fontsize="medium")
        ax.set_xlabel(LABELS["alpha"])
        ax.set_ylim(bottom=0)
    axes["sin"].set_ylabel(r"test error $\epsilon_g$")
    axes["sin"].legend(frameon=False, fontsize="small")
    return picture

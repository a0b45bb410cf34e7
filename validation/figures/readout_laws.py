"""Figure 6 of [C]: what variability of the first-step readout buys, a learning curve for each law.

A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
with several readout values has several functions mu_0(r kappa) to combine along the spike:
with equal readout it has one.  tanh student, one giant step, an easy and a hard target.
Combinations of nearly dependent functions have large overlaps m, which cost m^2 / p: the
theory is drawn at the dimension simulated, of the Gaussian law in the limit, too.  What the text
leaves open is chosen here: alpha0, eta~, lam and the hard target.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import COLOURS, LABELS, settings

from .computing import Progress, model_of, simulated, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

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
KINDS = "theory", "srf", "limit"  # of figures' theories


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theories over alpha for every law and target, at d and in the limit, and simulated
    networks."""
    alpha = 0.1 + 3.9 * np.linspace(0, 1, 12 if quick else 121) ** 2
    few = np.array([0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0])
    dimension, seeds = (120, 2) if quick else (600, 8)
    curves = []
    for target, kind in tracked(list(product(TARGETS, LAWS)), progress):
        step = GradientStep(target=target, readout=LAWS[kind][0], **PROBLEM)
        curve: dict[str, Any] = {"target": target, "law": kind}
        kinds = KINDS if kind == "gaussian" else KINDS[:2]  # of others the limit is hardly another
        for name in kinds:
            model = model_of(name, step, dimension=dimension)
            grid = sweep(model, alpha=alpha, lam=PENALTY, grids={})
            curve[name] = grid.columns["test_error"]
        if kind != "+-1":  # the same problem as equal, for an odd student
            at: dict[str, Any] = {"alpha": few, "lam": PENALTY, "beta": 1.0, "store": store}
            curve["simulated"] = simulated(step, dimension=dimension, seeds=seeds, **at)
        curves.append(curve)
    axes = {"x": alpha, "simulated_at": few}
    shared = {"step": PROBLEM, "lam": PENALTY, "dimension": dimension, "seeds": seeds, **axes}
    return dict(plain({**shared, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each target: theories as lines, simulated networks as points, and below what
    they are off by."""
    picture = Figure(figsize=(10, 5.4), layout="constrained")
    axes = panels_with_differences(picture, len(TARGETS))
    columns = dict(zip(TARGETS, axes.T, strict=True))
    shades = dict(zip(LAWS, COLOURS, strict=False))
    for curve in data["curves"]:
        column, kind = columns[curve["target"]], curve["law"]
        shown: dict[str, Any] = {"color": shades[kind], "label": LAWS[kind][1]}
        if kind == "+-1":
            style = {"linestyle": (0, (4, 4)), "zorder": 3}
            column[0].plot(data["x"], curve["theory"], **shown, **style)
            continue
        draw_theories(column, data, curve, **shown, places=list(LAWS).index(kind) - 1.5)
    for target, (ax, below) in columns.items():
        fixed = ", ".join(settings(PROBLEM | {"beta": 1.0, "lam": PENALTY}))
        ax.set_title(f"{TARGETS[target]}, {fixed}")
        below.set_xlabel(LABELS["alpha"])
    theory_legend(axes, data["dimension"], KINDS, "the network at this $d$", data["seeds"])
    return picture

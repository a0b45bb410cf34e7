"""Figure 6 of [C]: what variability of the first-step readout buys, a learning curve for each law.

A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
with several readout values has several functions mu_0(r kappa) to combine along the spike:
with equal readout it has one.  tanh student, one giant step, an easy and a hard target.
Combinations of nearly dependent functions have large overlaps m, which cost m^2 / p: the
theory is drawn at the dimension simulated, and in the limit.  What the text leaves open is chosen
here: alpha0, eta~, lam and the hard target.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, add_legend, letter_panels, settings

from ..run import simulate
from .computing import Progress, tracked
from .drawing import add_legend_entry, draw_curve, panels_with_differences

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


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory over alpha for every law and target, at d and in the limit, and simulated sRFs."""
    alpha = np.linspace(0.1, 4, 12 if quick else 60)
    few = np.array([0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0])
    dimension, seeds = (120, 2) if quick else (600, 8)
    curves = []
    for target, kind in tracked(list(product(TARGETS, LAWS)), progress):
        limit = GradientStep(target=target, readout=LAWS[kind][0], **PROBLEM).srf(beta=1.0)
        curve: dict[str, Any] = {"target": target, "law": kind, "alpha": alpha}
        for name, model in (("limit", limit), ("theory", replace(limit, dimension=dimension))):
            grid = sweep(model, alpha=alpha, lam=PENALTY, grids={})
            curve[name] = grid.columns["test_error"]
        if kind != "+-1":  # the same problem as equal, for an odd student
            size: dict[str, Any] = {"dimension": dimension, "seeds": seeds, "rng": 0}
            simulation = simulate(limit, alpha=few, lam=PENALTY, store=store, **size)
            curve |= {"simulated_alpha": few, "simulated": simulation.test_mean[:, 0]}
            curve |= {"stderr": simulation.test_stderr[:, 0]}
        curves.append(curve)
    shared = {"step": PROBLEM, "lam": PENALTY, "dimension": dimension, "seeds": seeds}
    return dict(plain({**shared, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each target: theory as lines, simulated spiked random features as points, and
    below what they are off by."""
    picture = Figure(figsize=(10, 5.4), layout="constrained")
    axes = panels_with_differences(picture, len(TARGETS))
    columns = dict(zip(TARGETS, axes.T, strict=True))
    shades = dict(zip(LAWS, COLOURS, strict=False))
    for curve in data["curves"]:
        column, kind = columns[curve["target"]], curve["law"]
        shown: dict[str, Any] = {"color": shades[kind], "label": LAWS[kind][1]}
        if kind == "+-1":
            style = {"linestyle": (0, (4, 4)), "zorder": 3}
            column[0].plot(curve["alpha"], curve["theory"], **shown, **style)
            continue
        keys = ("alpha", "theory", "simulated_alpha", "simulated", "stderr")
        places = list(LAWS).index(kind) - 1.5
        draw_curve(column, *(curve[key] for key in keys), **shown, places=places)
        column[0].plot(curve["alpha"], curve["limit"], ":", color=shades[kind], linewidth=1)
    for target, (ax, below) in columns.items():
        fixed = ", ".join(settings(PROBLEM | {"beta": 1.0, "lam": PENALTY}))
        ax.set_title(f"{TARGETS[target]}, {fixed}")
        below.set_xlabel(LABELS["alpha"])
    easy, hard = axes[0]
    easy.set_ylabel(ERROR_LABELS["test_error"])
    d = data["dimension"]
    kinds = [
        hard.plot([], [], color="0.3", label=rf"theory of the sRF, $d = {d}$")[0],
        hard.plot([], [], ":", color="0.3", linewidth=1, label=r"the same, $d \to \infty$")[0],
        add_legend_entry(hard, d, data["seeds"]),
    ]
    for ax in (easy, hard):
        ax.set_ylim(bottom=0)
    add_legend(easy)
    add_legend(hard, handles=kinds)
    letter_panels([easy, hard])
    return picture

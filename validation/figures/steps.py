"""Several giant steps on fresh batches: test error after each, and the spike they build.

tanh student, sin target, 2 d samples and rate 1 a step.  Left, the learning curves of the readout
after 0, 1, 2 and 3 steps; right, length and direction of the spike and the variance of the bulk
over six steps.  Lines: theory; points: the network itself.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, after_each_step
from replica.documents import plain
from replica.plotting import COLOURS, LABELS, colours, draw_points, letter_panels, settings
from replica.problem import describe
from solvers.results import Array

from ..draws import trajectory
from ..measure import spike
from ..run import standard_error
from .computing import Progress, kept
from .panels import Curve, Panel, compute, draw_panels

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin"}
FIT = {"lam": 0.05}
STEP_COUNTS = (0, 1, 2, 3)  # whose learning curves are shown


def after(count: int) -> GradientStep:
    """The problem with ``count`` steps; a step of rate 0 stands for none."""
    return GradientStep(**PROBLEM, steps=[(2.0, 1.0)] * count or [(1.0, 0.0)])


def panels_of(quick: bool) -> list[Panel]:
    """A panel with a learning curve after each number of steps."""
    size = {"dimension": 100, "seeds": 3} if quick else {"dimension": 1000, "seeds": 8}
    curves = []
    for count, color in zip(STEP_COUNTS, colours(STEP_COUNTS), strict=True):
        label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        curves.append(Curve(after(count), FIT, label, color, kinds=("srf",)))
    return [Panel(curves, np.linspace(0.1, 3, 12 if quick else 60), [0.5, 1.0, 2.0, 3.0], size)]


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory over alpha and simulated networks, after each number of steps."""
    shown = compute(panels_of(quick), progress, store)
    dimension, long = shown["dimension"], after(6)
    predicted = [(now.r, now.c, now.gamma[0]) for now in after_each_step(long)]
    each = []
    for seed in range(shown["seeds"]):
        cell = {"spike of": describe(long), "dimension": dimension, "seed": seed}
        compute_cell = partial(_measured, long, dimension, seed)
        each.append(kept(store, cell, compute_cell, (len(predicted), 3), (-np.inf, np.inf)))
    measured = np.array(each)
    means = {"measured": measured.mean(axis=0), "measured_stderr": standard_error(measured)}
    return shown | dict(plain({"predicted": predicted, **means}))


def _measured(problem: GradientStep, dimension: int, seed: int) -> Array:
    """r, c and gamma of one simulated network after each of its T steps, (T, 3)."""
    layers = list(trajectory(problem, dimension=dimension, beta=1.0, rng=seed))[1:]
    return np.array([(one.r, one.c, float(one.gamma[0])) for one in map(spike, layers)])


def draw(data: dict[str, Any]) -> Figure:
    """Learning curves on the left, and below what points are off by; on the right the spike."""
    picture = Figure(figsize=(9.5, 4.8), layout="constrained")
    fixed = settings(PROBLEM | {"eta": 1.0, "beta": 1.0} | FIT)
    picture.suptitle(", ".join([*fixed, r"$\alpha_t = 2$"]), fontsize="small")
    curves, rows = picture.subfigures(1, 2, squeeze=False)[0]
    draw_panels(data, panels_of(True), curves, own="the sRF")
    steps = np.arange(1, len(data["predicted"]) + 1)
    predicted, measured = np.array(data["predicted"]), np.array(data["measured"])
    stderr = np.array(data["measured_stderr"])
    quantities = rows.subplots(3, 1, sharex=True)
    for i, (name, ax) in enumerate(zip(("r", "c", "gamma"), quantities, strict=True)):
        ax.plot(steps, predicted[:, i], color=COLOURS[0])
        draw_points(ax, steps, measured[:, i], stderr[:, i], color=COLOURS[0])
        ax.set_ylabel(LABELS[name].replace(" $", "\n$"))
    quantities[-1].set_xlabel("giant step")
    quantities[-1].set_xticks(steps)
    letter_panels([curves.axes[0], *quantities])
    return picture

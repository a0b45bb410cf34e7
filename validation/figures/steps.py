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
from replica.observables import sweep
from replica.plotting import (
    COLOURS,
    ERROR_LABELS,
    LABELS,
    add_legend,
    colours,
    draw_points,
    letter_panels,
    settings,
)
from replica.problem import describe
from solvers.results import Array

from ..draws import trajectory
from ..measure import spike
from ..run import standard_error
from .computing import Progress, kept, simulated, tracked
from .drawing import add_legend_entry, draw_simulated, panels_with_differences

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin"}
PENALTY = 0.05
STEP_COUNTS = (0, 1, 2, 3)  # whose learning curves are shown


def after(count: int) -> GradientStep:
    """The problem with ``count`` steps; a step of rate 0 stands for none."""
    return GradientStep(**PROBLEM, steps=[(2.0, 1.0)] * count or [(1.0, 0.0)])


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory over alpha and simulated networks, after each number of steps."""
    dimension, seeds = (100, 3) if quick else (1000, 8)
    alpha, few = np.linspace(0.1, 3, 12 if quick else 60), np.array([0.5, 1.0, 2.0, 3.0])
    curves = []
    for count in tracked(STEP_COUNTS, progress):
        problem = after(count)
        grid = sweep(problem.srf(beta=1.0), alpha=alpha, lam=PENALTY, grids={})
        size: dict[str, Any] = {"dimension": dimension, "seeds": seeds, "store": store}
        mean, stderr = simulated(problem, alpha=few, lam=PENALTY, beta=1.0, **size).T
        theory = grid.columns["test_error"]
        curves.append({"steps": count, "theory": theory, "simulated": mean, "stderr": stderr})
    long = after(6)
    predicted = [(now.r, now.c, now.gamma[0]) for now in after_each_step(long)]
    each = []
    for seed in range(seeds):
        cell = {"spike of": describe(long), "dimension": dimension, "seed": seed}
        compute = partial(_measured, long, dimension, seed)
        each.append(kept(store, cell, compute, (len(predicted), 3), (-np.inf, np.inf)))
    measured = np.array(each)
    shared = {"dimension": dimension, "seeds": seeds, "alpha": alpha, "simulated_alpha": few}
    means = {"measured": measured.mean(axis=0), "measured_stderr": standard_error(measured)}
    return dict(plain({**shared, "curves": curves, "predicted": predicted, **means}))


def _measured(problem: GradientStep, dimension: int, seed: int) -> Array:
    """r, c and gamma of one simulated network after each of its T steps, (T, 3)."""
    layers = list(trajectory(problem, dimension=dimension, beta=1.0, rng=seed))[1:]
    return np.array([(one.r, one.c, float(one.gamma[0])) for one in map(spike, layers)])


def draw(data: dict[str, Any]) -> Figure:
    """Learning curves on the left, and below what points are off by; on the right the spike."""
    picture = Figure(figsize=(9.5, 4.8), layout="constrained")
    fixed = settings(PROBLEM | {"eta": 1.0, "beta": 1.0, "lam": PENALTY})
    picture.suptitle(", ".join([*fixed, r"$\alpha_t = 2$"]), fontsize="small")
    curves, rows = picture.subfigures(1, 2, squeeze=False)[0]
    axes = panels_with_differences(curves, 1, squeeze=False)
    (left,), (below,) = axes
    shades = colours(STEP_COUNTS)
    for curve in data["curves"]:
        count = curve["steps"]
        label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        line = data["alpha"], curve["theory"]
        points = data["simulated_alpha"], curve["simulated"], curve["stderr"]
        left.plot(*line, color=shades[count], label=label)
        draw_simulated(axes[:, 0], *line, *points, places=count - 1.5, color=shades[count])
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
    left.set_ylabel(ERROR_LABELS["test_error"])
    below.set_xlabel(LABELS["alpha"])
    add_legend_entry(left, data["dimension"], data["seeds"])
    left.set_ylim(bottom=0)
    add_legend(left)
    letter_panels([left, *quantities])
    return picture

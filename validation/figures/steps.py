"""Several giant steps on fresh batches: test error after each, and the spike they build.

tanh student, sin target, 2 d samples and rate 1 a step.  Left, the learning curves of the readout
after 0, 1, 2 and 3 steps; right, length and direction of the spike and the variance of the bulk
over six steps.  Lines: theory; points: the network itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, after_each_step
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import LABELS

from ..draws import trajectory
from ..measure import spike
from ..run import simulate, standard_error
from .drawing import add_legend_entry, draw_points

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin"}
STEP_COUNTS = (0, 1, 2, 3)  # whose learning curves are shown


def after(count: int) -> GradientStep:
    """The problem with ``count`` steps; a step of rate 0 stands for none."""
    return GradientStep(**PROBLEM, steps=[(2.0, 1.0)] * count or [(1.0, 0.0)])


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory over alpha and simulated networks, after each number of steps."""
    dimension, seeds = (100, 3) if quick else (1000, 8)
    alpha, few = np.linspace(0.1, 3, 12 if quick else 60), np.array([0.5, 1.0, 2.0, 3.0])
    curves = []
    for count in STEP_COUNTS:
        problem = after(count)
        theory = sweep(problem.srf(beta=1.0), alpha=alpha, lam=0.05, grids={})
        simulation = simulate(
            problem, alpha=few, lam=0.05, dimension=dimension, seeds=seeds, rng=0, beta=1.0
        )
        curves.append(
            {
                "steps": count,
                "theory": theory.columns["test_error"],
                "simulated": simulation.test_mean[:, 0],
                "stderr": simulation.test_stderr[:, 0],
            }
        )
        if progress is not None:
            progress(len(curves), len(STEP_COUNTS) + 1)
    long = after(6)
    predicted = [(now.r, now.c, now.gamma[0]) for now in after_each_step(long)]
    measured = np.array([_measured(long, dimension, seed) for seed in range(seeds)])
    return dict(
        plain(
            {
                "dimension": dimension,
                "seeds": seeds,
                "alpha": alpha,
                "simulated_alpha": few,
                "curves": curves,
                "predicted": predicted,
                "measured": measured.mean(axis=0),
                "measured_stderr": standard_error(measured),
            }
        )
    )


def _measured(problem: GradientStep, dimension: int, seed: int) -> list[tuple[float, float, float]]:
    """r, c and gamma of one simulated network after each of its steps."""
    layers = list(trajectory(problem, dimension=dimension, beta=1.0, rng=seed))[1:]
    return [(one.r, one.c, float(one.gamma[0])) for one in map(spike, layers)]


def draw(data: dict[str, Any]) -> Figure:
    """Learning curves on the left, the spike on the right."""
    picture = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = picture.subplots(1, 2)
    for curve in data["curves"]:
        colour, count = f"C{curve['steps']}", curve["steps"]
        label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        left.plot(data["alpha"], curve["theory"], color=colour, label=label)
        points = (data["simulated_alpha"], curve["simulated"], curve["stderr"])
        draw_points(left, *points, color=colour)
    left.set_ylim(bottom=0)
    left.set_xlabel(LABELS["alpha"])
    left.set_ylabel(r"test error $\epsilon_g$")
    left.legend(frameon=False, fontsize="small")
    steps = np.arange(1, len(data["predicted"]) + 1)
    predicted, measured = np.array(data["predicted"]), np.array(data["measured"])
    stderr = np.array(data["measured_stderr"])
    for i, (name, marker) in enumerate(zip(("r", "c", "gamma"), "os^", strict=True)):
        right.plot(steps, predicted[:, i], color=f"C{4 + i}", label=LABELS[name])
        draw_points(right, steps, measured[:, i], stderr[:, i], fmt=marker, color=f"C{4 + i}")
    right.set_xlabel("giant step")
    right.set_xticks(steps)
    right.set_ylim(0, 1.2)
    right.set_ylabel("rows after the step")
    handles, _ = right.get_legend_handles_labels()
    handles.append(add_legend_entry(right, data["dimension"]))
    right.legend(handles=handles, frameon=False, fontsize="small", loc="lower right")
    return picture

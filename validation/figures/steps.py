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
from replica.plots import LABELS

from ..draws import trajectory
from ..measure import spike
from ..run import simulate

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin"}
STEP = (2.0, 1.0)
LAM = 0.05
COUNTS = (0, 1, 2, 3)
LONGEST = 6
SPIKE = {
    "r": r"spike length $r$",
    "c": r"bulk variance $c$",
    "gamma": r"spike-target cosine $\gamma$",
}


def after(count: int) -> GradientStep:
    """The problem with ``count`` steps; none is a step of rate 0."""
    return GradientStep(**PROBLEM, steps=[STEP] * count or [(1.0, 0.0)])


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory over alpha and simulated networks, after each number of steps."""
    dimension, seeds = (100, 3) if quick else (1000, 8)
    alpha, few = np.linspace(0.1, 3, 12 if quick else 60), np.array([0.5, 1.0, 2.0, 3.0])
    curves = []
    for count in COUNTS:
        problem = after(count)
        theory = sweep(problem.srf(beta=1.0), alpha=alpha, lam=LAM, grids={})
        found = simulate(
            problem, alpha=few, lam=LAM, dimension=dimension, seeds=seeds, rng=0, beta=1.0
        )
        curves.append(
            {
                "steps": count,
                "theory": theory.columns["test_error"],
                "simulated": found.test_mean[:, 0],
                "stderr": found.test_stderr[:, 0],
            }
        )
        if progress is not None:
            progress(len(curves), len(COUNTS) + 1)
    long = after(LONGEST)
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
                "measured_stderr": measured.std(axis=0, ddof=1) / np.sqrt(seeds),
            }
        )
    )


def _measured(problem: GradientStep, dimension: int, seed: int) -> list[tuple[float, float, float]]:
    layers = list(trajectory(problem, dimension=dimension, beta=1.0, rng=seed))[1:]
    return [(found.r, found.c, float(found.gamma[0])) for found in map(spike, layers)]


def draw(data: dict[str, Any]) -> Figure:
    """Learning curves on the left, the spike on the right."""
    picture = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = picture.subplots(1, 2)
    for curve in data["curves"]:
        colour, count = f"C{curve['steps']}", curve["steps"]
        label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        left.plot(data["alpha"], curve["theory"], color=colour, label=label)
        bars = 2 * np.array(curve["stderr"])
        points = (data["simulated_alpha"], curve["simulated"], bars)
        left.errorbar(*points, fmt="o", color=colour, markersize=4, capsize=2)
    left.set_ylim(bottom=0)
    left.set_xlabel(LABELS["alpha"])
    left.set_ylabel(r"test error $\epsilon_g$")
    left.legend(frameon=False, fontsize="small")
    steps = np.arange(1, len(data["predicted"]) + 1)
    predicted, measured = np.array(data["predicted"]), np.array(data["measured"])
    bars = 2 * np.array(data["measured_stderr"])
    for i, (name, marker) in enumerate(zip(SPIKE, "os^", strict=True)):
        right.plot(steps, predicted[:, i], color=f"C{4 + i}", label=SPIKE[name])
        points = (steps, measured[:, i], bars[:, i])
        right.errorbar(*points, fmt=marker, color=f"C{4 + i}", markersize=4, capsize=2)
    right.set_xlabel("giant step")
    right.set_xticks(steps)
    right.set_ylim(0, 1.2)
    right.set_ylabel("rows after the step")
    handles, _ = right.get_legend_handles_labels()
    handles.append(
        right.errorbar(
            [],
            [],
            [],
            fmt="o",
            color="0.3",
            markersize=4,
            capsize=2,
            label=rf"simulated, $d = {data['dimension']}$ (±2 s.e.)",
        )
    )
    right.legend(handles=handles, frameon=False, fontsize="small", loc="lower right")
    return picture

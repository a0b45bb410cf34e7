"""Several giant steps of the network itself: test error against the number of steps.

Upper row: the network's own theory, the same with rows of equal norm, the sRF, and simulated
networks.  Lower row: the same, less the network's theory and relative to it.  docs/theory.md 18
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import COLOURS

from ..run import simulate
from .computing import Progress, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

# Student, target and label noise; alpha_t and eta of every step; alpha and lam of the readout.
CASES = (
    (("tanh", "sin", 0.0), (2.0, 1.0), (1.0, 0.05)),
    (("tanh", "sin", 0.0), (0.5, 2.0), (2.0, 0.01)),
    (("relu", "relu", 0.3), (2.0, 1.0), (2.0, 0.1)),
)
MOST_STEPS = 4
KINDS = ("theory", "equal", "srf")  # of THEORIES


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Test errors of all theories and of simulated networks, after each number of steps."""
    dimension, seeds = (100, 2) if quick else (600, 12)
    counts = np.arange(1, 3 if quick else MOST_STEPS + 1)
    curves: list[dict[str, Any]] = [{kind: [] for kind in ("simulated", *KINDS)} for _ in CASES]
    every = [(*one, int(n)) for one in zip(curves, CASES, strict=True) for n in counts]
    for curve, ((student, target, noise), pair, (alpha, lam)), count in tracked(every, progress):
        problem = GradientStep(student=student, target=target, noise=noise, steps=[pair] * count)
        models = {
            "theory": problem.network(beta=1.0),
            "equal": problem.network(beta=1.0, row_norms=False),
            "srf": problem.srf(beta=1.0),
        }
        for kind, model in models.items():
            curve[kind].append(solve(model, alpha=alpha, lam=lam).test_error)
        found = simulate(
            problem,
            alpha=alpha,
            lam=lam,
            dimension=dimension,
            seeds=seeds,
            rng=0,
            beta=1.0,
            store=store,
        )
        curve["simulated"].append((found.test_mean.item(), found.test_stderr.item()))
    document = {"x": counts, "simulated_at": counts, "curves": curves}
    return dict(plain(document | {"dimension": dimension, "seeds": seeds}))


def draw(data: dict[str, Any]) -> Figure:
    """A column for each case."""
    picture = Figure(figsize=(10.5, 5.2), layout="constrained")
    axes = panels_with_differences(picture, len(CASES))
    for column, case, curve in zip(axes.T, CASES, data["curves"], strict=True):
        (student, target, noise), (alpha_t, eta), (alpha, lam) = case
        draw_theories(column, data, curve, color=COLOURS[0])
        column[0].set_title(
            rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
            rf"$\alpha_t = {alpha_t:g}$, $\tilde\eta = {eta:g}$, $\alpha = {alpha:g}$, "
            rf"$\lambda = {lam:g}$, $\beta = 1$",
            fontsize="small",
        )
        column[1].set_xlabel("giant steps")
        column[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    theory_legend(axes, data["dimension"], KINDS)
    return picture

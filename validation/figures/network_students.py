"""relu networks after one step beside their sRF: test error against the learning rate.

Upper row: the network's own theory, its sRF, and simulated networks, at three sizes of the batch.
Lower row: the same, less the network's theory and relative to it.  docs/theory.md 16
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import LABELS, colours, setting

from ..run import simulate
from .computing import Progress
from .drawing import draw_theories, panels_with_differences, theory_legend

TARGETS = ("relu", "sin")
BATCHES = (0.3, 1.0, 3.0)  # alpha0
FIT: dict[str, dict[str, float]] = {
    "relu": {"alpha": 2.0, "lam": 0.05},
    "sin": {"alpha": 2.0, "lam": 0.1},
}
SIMULATED_ETAS = (0.5, 1.0, 2.0, 3.0, 4.0)


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Test errors of both theories over eta, and of simulated networks at a few."""
    dimension, seeds = (100, 2) if quick else (600, 8)
    few = SIMULATED_ETAS[1::2] if quick else SIMULATED_ETAS
    eta = np.union1d(np.linspace(0, SIMULATED_ETAS[-1], 9 if quick else 33), few)
    curves: list[dict[str, Any]] = []
    for target in TARGETS:
        fit = FIT[target]
        for alpha0 in BATCHES:
            rates = [GradientStep(student="relu", target=target, alpha0=alpha0, eta=e) for e in eta]
            network, srf = zip(*map(theories, rates), strict=True)
            points = []
            for step in (rates[i] for i in np.searchsorted(eta, few)):
                found = simulate(
                    step,
                    alpha=fit["alpha"],
                    lam=fit["lam"],
                    dimension=dimension,
                    seeds=seeds,
                    rng=0,
                    beta=1.0,
                    store=store,
                )
                points.append((found.test_mean.item(), found.test_stderr.item()))
                if progress is not None:
                    done = len(curves) * len(few) + len(points)
                    progress(done, len(TARGETS) * len(BATCHES) * len(few))
            own = {"theory": network, "srf": srf, "simulated": points}
            curves.append({"target": target, "alpha0": alpha0, **own})
    document = {"x": eta, "simulated_at": few, "curves": curves}
    return dict(plain(document | {"dimension": dimension, "seeds": seeds}))


def theories(step: GradientStep) -> tuple[float, float]:
    """Test errors of the network's theory and of its sRF, of width beta = 1."""
    fit = FIT[step.target.name]
    return (
        solve(step.network(beta=1.0), alpha=fit["alpha"], lam=fit["lam"]).test_error,
        solve(step.srf(beta=1.0), alpha=fit["alpha"], lam=fit["lam"]).test_error,
    )


def draw(data: dict[str, Any]) -> Figure:
    """A column for each target, a colour for each batch."""
    picture = Figure(figsize=(8.5, 5.4), layout="constrained")
    axes = panels_with_differences(picture, len(TARGETS))
    for column, target in zip(axes.T, TARGETS, strict=True):
        curves = [curve for curve in data["curves"] if curve["target"] == target]
        for curve, color in zip(curves, colours(BATCHES), strict=True):
            label = setting("alpha0", curve["alpha0"])
            draw_theories(column, data, curve, color=color, label=label)
        fit = FIT[target]
        column[0].set_title(
            rf"relu student, {target} target, $\alpha = {fit['alpha']:g}$, "
            rf"$\lambda = {fit['lam']:g}$, $\beta = 1$",
            fontsize="medium",
        )
        column[1].set_xlabel(LABELS["eta"])
    theory_legend(axes, data["dimension"], ("theory", "srf"))
    return picture

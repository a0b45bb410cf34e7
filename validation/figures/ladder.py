"""Approach of simulations to the theory as they grow: test errors against 1/d.

The published setting at two sizes of the training set.  Spiked random features and the
conditional Gaussian model meet the theory in the limit; the network has a theory of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, plotting
from replica.documents import plain

from ..comparisons import ladder
from .computing import Progress
from .drawing import legend_below

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3.0}
PENALTY = 0.1
DRAWN_MODELS = {  # label, marker, and the side to which points are nudged
    "srf": ("spiked random features", "o", -1),
    "gaussian": ("conditional Gaussian model", "s", 0),
    "network": ("the network itself", "^", 1),
}


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Means and standard errors at every size, and the extrapolation, of each model."""
    alpha = np.array([0.9, 2.3])
    sizes, seeds = ([40, 80], 4) if quick else ([100, 200, 400, 800], 12)
    models: dict[str, Any] = {}
    for i, model in enumerate(DRAWN_MODELS):

        def advance(done: int, total: int, i: int = i) -> None:
            """Report the progress of one model as progress of all."""
            if progress is not None:
                progress(i * total + done, len(DRAWN_MODELS) * total)

        at: dict[str, Any] = {"alpha": alpha, "lam": PENALTY, "beta": 1.0, "simulated": model}
        size: dict[str, Any] = {"dimensions": sizes, "seeds": seeds, "rng": 0, "store": store}
        result = ladder(GradientStep(**PROBLEM), progress=advance, **at, **size)
        models[model] = {
            "mean": [one.test_error[:, 0] for one in result.simulations],
            "stderr": [one.test_error_stderr[:, 0] for one in result.simulations],
            "limit": result.lines["test_error"].limit[:, 0],
            "limit_stderr": result.lines["test_error"].stderr[:, 0],
            "slope": result.lines["test_error"].slope[:, 0],
            "theory": result.checks["test_error"].theory[:, 0],
        }
    shared = {"step": PROBLEM, "lam": PENALTY, "alpha": alpha, "sizes": sizes, "seeds": seeds}
    return dict(plain({**shared, "models": models}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each alpha: points with two standard errors, their lines, the theory."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, len(data["alpha"]), squeeze=False)[0]
    x = 1 / np.array(data["sizes"])
    shades = plotting.colours(list(DRAWN_MODELS))
    nudge = 0.012 * x.max()  # keeps error bars of different models apart
    for j, (alpha, ax) in enumerate(zip(data["alpha"], panels, strict=True)):
        for i, (model, (label, marker, side)) in enumerate(DRAWN_MODELS.items()):
            one, colour = data["models"][model], shades[i]
            mean, stderr = (np.array(one[name])[:, j] for name in ("mean", "stderr"))
            limit, slope = one["limit"][j], one["slope"][j]
            ends = np.array([0, 1.05 * x.max()])
            ax.plot(ends, limit + slope * ends, color=colour, linewidth=1)
            points = (np.append(limit, mean), np.append(one["limit_stderr"][j], stderr))
            style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 5}
            plotting.draw_points(ax, np.append(0, x) + side * nudge, *points, label=label, **style)
        for model, colour in zip(
            ("srf", "network"), plotting.colours(["srf", "network"]), strict=True
        ):
            value = data["models"][model]["theory"][j]
            label = "theory of the sRF" if model == "srf" else "theory of the network"
            ax.axhline(value, color=colour, linestyle=":", label=rf"{label}, $d\to\infty$")
        ax.plot([], [], color="0.3", linewidth=1, label="fit, linear in $1/d$")
        ax.set_xticks([0, *x], ["0", *(f"1/{d}" for d in data["sizes"])])
        ax.tick_params(axis="x", labelrotation=45)
        ax.set_xlabel(r"$1/d$")
        ax.set_title(plotting.setting("alpha", alpha), fontsize="medium")
    shared = data["step"] | {"beta": 1.0, "lam": data["lam"], "seeds": data["seeds"]}
    stated = ", ".join(plotting.settings(shared))
    figure.suptitle(f"{stated} at the largest size, bars: ±{plotting.BARS} s.e.", fontsize="small")
    plotting.letter_panels(panels)
    panels[0].set_ylabel(plotting.ERROR_LABELS["test_error"])
    legend_below(figure, panels[-1].get_legend_handles_labels()[0], ncols=3)
    return figure

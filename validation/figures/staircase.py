"""The stairway: which directions the neurons of a network learn, giant step after giant step.

The published setting of [D]: relu student, n = d fresh samples a step, readout +-1, rate eta~ = 2.
Each point is the cosine of one neuron's gradient with the two directions of the target.  After
the first step all of them lie along C_1, where the theory says.  Of (4 z1 + z1^2 + z2)/2 the rest
of the plane is but weakly connected to it, and the neurons stay; of (z1 + z1^2 + z2 - z2^2)/2
it is learned at the second step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, staircase
from replica.files import plain
from replica.several_steps import first_step

from ..alignment import alignment

TARGETS = {
    "(4*z1 + z1**2 + z2)/2": r"$\frac{1}{2}(4z_1 + z_1^2 + z_2)$",
    "(z1 + z1**2 + z2 - z2**2)/2": r"$\frac{1}{2}(z_1 + z_1^2 + z_2 - z_2^2)$",
}
STEPS, ETA, SHOWN = 6, 2.0, 20  # neurons shown of either sign


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Cosines of the gradients of some neurons at every step, and the theory's of the first."""
    dimension, width = (256, 128) if quick else (4096, 1024)
    panels = []
    for target in TARGETS:
        step = GradientStep(
            student="relu", target=target, readout="rademacher", steps=[(1.0, ETA)] * STEPS
        )
        found = alignment(step, dimension=dimension, beta=width / dimension, rng=0)
        shown = np.concatenate(
            [np.flatnonzero(found.readout == sign)[:SHOWN] for sign in (-1.0, 1.0)]
        )
        stages = staircase(target).stages
        panels.append(
            {
                "target": target,
                "readout": found.readout[shown],
                "gradients": found.gradients[:, shown],
                "in_subspace": found.gradients_in_subspace.mean(axis=1),
                "predicted": first_step(step).gradients,
                "strengths": [stage.strengths[0] for stage in stages],
                "directions": [stage.directions[0] for stage in stages],
            }
        )
        if progress is not None:
            progress(len(panels), len(TARGETS))
    return dict(plain({"dimension": dimension, "width": width, "panels": panels}))


def draw(data: dict[str, Any]) -> Figure:
    """A row for each target, a panel for each step."""
    picture = Figure(figsize=(11, 4.4), layout="constrained")
    grid = picture.subplots(len(TARGETS), STEPS, sharex=True, sharey=True)
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    for row, panel in zip(grid, data["panels"], strict=True):
        signs = np.array(panel["readout"])
        (x, y), *_ = panel["directions"]
        for step, ax in enumerate(row):
            ax.plot(circle.real, circle.imag, color="0.8", linewidth=0.8)
            ax.plot([-x, x], [-y, y], color="0.6", linewidth=0.8)
            points = np.array(panel["gradients"][step])
            for sign, colour in ((1, "C0"), (-1, "C1")):
                own = points[signs == sign]
                ax.plot(own[:, 0], own[:, 1], ".", color=colour, markersize=4)
            if not step:
                predicted = np.array(panel["predicted"])
                ax.plot(predicted[:, 0], predicted[:, 1], "k+", markersize=9)
            ax.set_aspect("equal")
            ax.set_xticks([-1, 0, 1])
            ax.set_yticks([-1, 0, 1])
            if row is grid[0]:
                ax.set_title(f"step {step + 1}", fontsize="medium")
            else:
                ax.set_xlabel("cosine with $w_1$")
        row[0].set_ylabel(f"{TARGETS[panel['target']]}\ncosine with $w_2$")
    handles = [
        row[0].plot([], [], ".", color="C0", label=r"gradients of neurons, $\tilde a = 1$")[0],
        row[0].plot([], [], ".", color="C1", label=r"$\tilde a = -1$")[0],
        row[0].plot([], [], "k+", markersize=9, label="theory, first step")[0],
        row[0].plot([], [], color="0.6", linewidth=0.8, label="direction of $C_1$")[0],
    ]
    picture.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return picture

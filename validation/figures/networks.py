"""Networks beside their theory and their sRF, after one giant step and after several.

Upper row: the network's own theory, its sRF, the theory with rows of equal norm, too, and simulated
networks.  Lower row: the same, less the network's theory and relative to it.

network: against the learning rate.  Left and middle, few samples in the step, so much noise in the
gradient: it has a row covariance, which the sRF replaces by isotropic rows of the same variance.
Right, little noise, but a linear target, which a student that saturates fits worse the more it
does: there the fluctuation of the row norms is what counts.  docs/theory.md 15.  The theory is
drawn at the dimension simulated, which matters for the shortest spikes alone: they need a large
overlap m, which costs m^2 / p.  In the limit any spike is better than none.

network-steps: against the number of steps, docs/theory.md 18.

network-students: relu students against the learning rate of one step, at three sizes of its batch,
docs/theory.md 16.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.plotting import LABELS, colours, setting, settings
from solvers.results import Array

from .computing import Progress
from .panels import Curve, Panel, compute, draw_panels

SEEDS = {"network": 10, "network-steps": 12, "network-students": 8}
KINDS = {
    "network": ("theory", "equal", "srf"),
    "network-steps": ("theory", "equal", "srf"),
    "network-students": ("theory", "srf"),
}
MOST_STEPS = 4
SIMULATED_ETAS = {
    "network": (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0),
    "network-students": (0.5, 1.0, 2.0, 3.0, 4.0),
}
BATCHES = (0.3, 1.0, 3.0)  # of relu students
NOISY: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 0.3}
SATURATING: dict[str, Any] = {"student": "erf", "target": "he1", "alpha0": 20.0}
# Student, target, noise; samples and rate of each step; alpha and lam of the readout.
SEVERAL_STEPS: tuple[tuple[str, str, float, tuple[float, float], float, float], ...] = (
    ("tanh", "sin", 0.0, (2.0, 1.0), 1.0, 0.05),
    ("tanh", "sin", 0.0, (0.5, 2.0), 2.0, 0.01),
    ("relu", "relu", 0.3, (2.0, 1.0), 2.0, 0.1),
)


def panels_of(name: str, quick: bool) -> list[Panel]:
    """The panels of the figure ``name``."""
    panels = []

    def add(title: str, curves: list[Curve], dimension: int = 600, **how: Any) -> None:
        """A panel of curves, which share their readout's fit, simulated at a dimension."""
        size = {"dimension": dimension, "seeds": SEEDS[name]}
        size = {"dimension": 100, "seeds": 2} if quick else size
        title += ", ".join(settings(curves[0].fit | {"beta": curves[0].beta}))
        panels.append(Panel(curves, *abscissas(name, quick), size, title, **how))

    def curve(step: Callable[[float], GradientStep], alpha: float, lam: float, **how: Any) -> Curve:
        return Curve(step, {"alpha": alpha, "lam": lam}, kinds=KINDS[name], **how)

    of_rate: dict[str, Any] = {"abscissa": LABELS["eta"], "at_dimension": name == "network"}
    if name == "network":
        noisy = [curve(partial(at_rate, **NOISY), 2.0, 0.01)]
        add(_stated(NOISY), noisy, 1000, errors=("test_error", "train_error"), **of_rate)
        saturating = [curve(partial(at_rate, **SATURATING), 3.0, 0.03, beta=2.0)]
        add(_stated(SATURATING), saturating, **of_rate)
    elif name == "network-steps":
        for student, target, noise, pair, alpha, lam in SEVERAL_STEPS:
            fields: dict[str, Any] = {"student": student, "target": target, "noise": noise}
            title = (
                rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
                rf"$\alpha_t = {pair[0]:g}$, $\tilde\eta = {pair[1]:g}$, "
            )
            steps = [curve(partial(after_steps, pair, **fields), alpha, lam)]
            add(title, steps, abscissa="giant steps")
    else:
        for target, lam in (("relu", 0.05), ("sin", 0.1)):
            of: dict[str, Any] = {"student": "relu", "target": target}
            batches = [
                curve(
                    partial(at_rate, alpha0=alpha0, **of), 2.0, lam,
                    color=color, label=setting("alpha0", alpha0),
                )
                for alpha0, color in zip(BATCHES, colours(BATCHES), strict=True)
            ]  # fmt: skip
            add(f"relu student, {target} target\n", batches, **of_rate)
    return panels


def _stated(step: dict[str, Any]) -> str:
    """The fields of a step, a line of a title."""
    return ", ".join(settings(step)) + "\n"


def at_rate(eta: float, **fields: Any) -> GradientStep:
    """A step of a rate."""
    return GradientStep(eta=eta, **fields)


def after_steps(pair: tuple[float, float], count: float, **fields: Any) -> GradientStep:
    """So many steps of a ``pair`` of samples and rate."""
    return GradientStep(steps=[pair] * int(count), **fields)


def abscissas(name: str, quick: bool) -> tuple[Array, Array]:
    """Where there are theories, and where networks are simulated."""
    if name == "network-steps":
        counts = np.arange(1, 3 if quick else MOST_STEPS + 1)
        return counts, counts
    few = np.array(SIMULATED_ETAS[name])
    dense = few[-1] * np.linspace(0, 1, 9 if quick else 81) ** 2  # close where the spike begins
    return np.union1d(dense, few), few[1::3] if quick else few


def data(
    name: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Errors of all theories, and of simulated networks."""
    return compute(panels_of(name, quick), progress, store, figure=name)


def draw(data: dict[str, Any]) -> Figure:
    """A column for each error of each panel, a colour for each of its curves."""
    name = data["figure"]
    own = "the network at this $d$" if name == "network" else "the network"
    width = 8.5 if name == "network-students" else 10.5
    return draw_panels(data, panels_of(name, True), width=width, own=own, fontsize="small")

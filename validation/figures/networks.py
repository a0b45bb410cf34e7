"""Networks beside their theory and their sRF: after several giant steps, and with relu students.

Upper row: the network's own theory, its sRF, for several steps the theory with rows of equal norm,
too, and simulated networks.  Lower row: the same, less the network's theory and relative to it.
Several steps are against their number, docs/theory.md 18; relu students against the learning rate
of one step, at three sizes of its batch, docs/theory.md 16.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import COLOURS, LABELS, colours, setting
from solvers.results import Array

from .computing import Progress, model_of, simulated_point, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

SEEDS = {"network-steps": 12, "network-students": 8}
KINDS = {"network-steps": ("theory", "equal", "srf"), "network-students": ("theory", "srf")}
MOST_STEPS = 4
SIMULATED_ETAS = (0.5, 1.0, 2.0, 3.0, 4.0)


class Panel(NamedTuple):
    """Curves of steps at one fit of the readout, each by the fields of its step."""

    title: str
    alpha: float
    lam: float
    curves: list[dict[str, Any]]


def of_steps(names: tuple[str, str], noise: float, pair: Any, alpha: float, lam: float) -> Panel:
    """A curve over the number of steps of samples alpha_t and rate eta, a ``pair``."""
    student, target = names
    title = (
        rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
        rf"$\alpha_t = {pair[0]:g}$, $\tilde\eta = {pair[1]:g}$, "
    )
    fields = {"student": student, "target": target, "noise": noise, "pair": pair}
    return Panel(title, alpha, lam, [fields])


def of_rates(target: str, alpha: float, lam: float) -> Panel:
    """Curves of relu students over the learning rate, at several sizes of the batch."""
    shared = {"student": "relu", "target": target}
    curves = [shared | {"alpha0": alpha0} for alpha0 in (0.3, 1.0, 3.0)]
    return Panel(f"relu student, {target} target\n", alpha, lam, curves)


PANELS = {
    "network-steps": [
        of_steps(("tanh", "sin"), 0.0, (2.0, 1.0), 1.0, 0.05),
        of_steps(("tanh", "sin"), 0.0, (0.5, 2.0), 2.0, 0.01),
        of_steps(("relu", "relu"), 0.3, (2.0, 1.0), 2.0, 0.1),
    ],
    "network-students": [of_rates("relu", 2.0, 0.05), of_rates("sin", 2.0, 0.1)],
}


def step_at(value: Any, *, pair: Any = None, **fields: Any) -> GradientStep:
    """The step of a curve at so many ``pair``s of samples and rate, or else at a rate."""
    varied = {"eta": value} if pair is None else {"steps": [pair] * int(value)}
    return GradientStep(**fields, **varied)


def abscissas(name: str, quick: bool) -> tuple[Array, Array]:
    """Where there are theories, and where networks are simulated."""
    if name == "network-steps":
        counts = np.arange(1, 3 if quick else MOST_STEPS + 1)
        return counts, counts
    few = np.array(SIMULATED_ETAS[1::2] if quick else SIMULATED_ETAS)
    return np.union1d(np.linspace(0, SIMULATED_ETAS[-1], 9 if quick else 33), few), few


def data(
    name: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Test errors of all theories, and of simulated networks."""
    size: dict[str, Any] = {"dimension": 100, "seeds": 2}
    size = size if quick else {"dimension": 600, "seeds": SEEDS[name]}
    x, few = abscissas(name, quick)
    curves = []
    every = [(panel, fields) for panel in PANELS[name] for fields in panel.curves]
    for panel, fields in tracked(every, progress):
        at: dict[str, Any] = {"alpha": panel.alpha, "lam": panel.lam}
        curve: dict[str, Any] = dict(fields)
        for kind in KINDS[name]:
            models = [model_of(kind, step_at(value, **fields)) for value in x]
            curve[kind] = [solve(model, **at).test_error for model in models]
        curve["simulated"] = [
            simulated_point(step_at(value, **fields), **at, **size, beta=1.0, store=store)
            for value in few
        ]
        curves.append(curve)
    return dict(plain({"figure": name, "x": x, "simulated_at": few, "curves": curves} | size))


def draw(data: dict[str, Any]) -> Figure:
    """A column for each panel, a colour for each of its curves."""
    panels, curves = PANELS[data["figure"]], iter(data["curves"])
    picture = Figure(figsize=(4.5 + 2 * len(panels), 5.2), layout="constrained")
    axes = panels_with_differences(picture, len(panels))
    for column, panel in zip(axes.T, panels, strict=True):
        batches = [fields["alpha0"] for fields in panel.curves if "alpha0" in fields]
        for color in colours(batches) or COLOURS[:1]:
            curve = next(curves)
            label = setting("alpha0", curve["alpha0"]) if batches else ""
            draw_theories(column, data, curve, color=color, label=label)
        fit = rf"$\alpha = {panel.alpha:g}$, $\lambda = {panel.lam:g}$, $\beta = 1$"
        column[0].set_title(panel.title + fit, fontsize="small")
        column[1].set_xlabel(LABELS["eta"] if batches else "giant steps")
        if not batches:
            column[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    theory_legend(axes, data["dimension"], KINDS[data["figure"]])
    return picture

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

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, colours, setting, settings
from solvers.results import Array

from ..run import simulate
from .computing import Progress, model_of, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

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


class Panel(NamedTuple):
    """Curves of steps at one fit of the readout, each by the fields of its step; a column for each
    of the ``errors``.  The theory is that at a ``dimension``, or of the limit."""

    title: str
    fit: dict[str, Any]
    curves: list[dict[str, Any]]
    beta: float = 1.0
    errors: tuple[str, ...] = ("test_error",)
    dimension: int | None = None


def of_step(step: dict[str, Any], fit: dict[str, Any], beta: float, **more: Any) -> Panel:
    """A curve over the learning rate, at a dimension."""
    return Panel(", ".join(settings(step)) + "\n", fit, [step], beta, **more)


def of_steps(names: tuple[str, str], noise: float, pair: Any, alpha: float, lam: float) -> Panel:
    """A curve over the number of steps of samples alpha_t and rate eta, a ``pair``."""
    student, target = names
    title = (
        rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
        rf"$\alpha_t = {pair[0]:g}$, $\tilde\eta = {pair[1]:g}$, "
    )
    fields = {"student": student, "target": target, "noise": noise, "pair": pair}
    return Panel(title, {"alpha": alpha, "lam": lam}, [fields])


def of_rates(target: str, alpha: float, lam: float) -> Panel:
    """Curves of relu students over the learning rate, at several sizes of the batch."""
    shared = {"student": "relu", "target": target}
    curves = [shared | {"alpha0": alpha0} for alpha0 in (0.3, 1.0, 3.0)]
    return Panel(f"relu student, {target} target\n", {"alpha": alpha, "lam": lam}, curves)


NOISY = {"student": "tanh", "target": "sin", "alpha0": 0.3}
SATURATING = {"student": "erf", "target": "he1", "alpha0": 20.0}
BOTH = ("test_error", "train_error")
PANELS = {
    "network": [
        of_step(NOISY, {"alpha": 2.0, "lam": 0.01}, 1.0, errors=BOTH, dimension=1000),
        of_step(SATURATING, {"alpha": 3.0, "lam": 0.03}, 2.0, dimension=600),
    ],
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
    few = np.array(SIMULATED_ETAS[name])
    dense = few[-1] * np.linspace(0, 1, 9 if quick else 81) ** 2  # close where the spike begins
    return np.union1d(dense, few), few[1::3] if quick else few


def data(
    name: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Errors of all theories, and of simulated networks."""
    x, few = abscissas(name, quick)
    curves = []
    every = [(panel, fields) for panel in PANELS[name] for fields in panel.curves]
    for i, (panel, fields) in enumerate(every):
        size = {"dimension": panel.dimension or 600, "seeds": SEEDS[name]}
        size = {"dimension": 100, "seeds": 2} if quick else size
        d = size["dimension"] if panel.dimension else np.inf
        curve: dict[str, Any] = fields | size | {error: {} for error in panel.errors}
        for kind in KINDS[name]:
            models = [model_of(kind, step_at(value, **fields), panel.beta, d) for value in x]
            points = [solve(model, **panel.fit) for model in models]
            for error in panel.errors:
                curve[error][kind] = [getattr(point, error) for point in points]
        options: dict[str, Any] = panel.fit | size | {"beta": panel.beta, "store": store}
        found = [
            simulate(step_at(value, **fields), rng=0, **options).columns
            for value in tracked(few.tolist(), progress, i * len(few), len(every) * len(few))
        ]
        for error in panel.errors:
            keys = error, f"{error}_stderr"
            curve[error]["simulated"] = [[one[key].item() for key in keys] for one in found]
        curves.append(curve)
    return dict(plain({"figure": name, "x": x, "simulated_at": few, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """A column for each error of each panel, a colour for each of its curves."""
    panels, remaining = PANELS[data["figure"]], iter(data["curves"])
    drawn = [
        (panel, error, curves)
        for panel in panels
        for curves in [[next(remaining) for _ in panel.curves]]
        for error in panel.errors
    ]
    picture = Figure(figsize=(4.5 + 2 * len(drawn), 5.2), layout="constrained")
    axes = panels_with_differences(picture, len(drawn))
    sizes = {panel.dimension for panel in panels}
    for column, (panel, error, curves) in zip(axes.T, drawn, strict=True):
        batches = [curve["alpha0"] for curve in curves if len(curves) > 1]
        for color, curve in zip(colours(batches) or COLOURS[:1], curves, strict=True):
            label = setting("alpha0", curve["alpha0"]) if batches else ""
            draw_theories(column, data, curve[error], color=color, label=label)
        fit: dict[str, Any] = panel.fit | {"beta": panel.beta}
        fit |= {"dimension": curves[0]["dimension"]} if len(sizes) > 1 else {}
        column[0].set_title(panel.title + ", ".join(settings(fit)), fontsize="small")
        column[0].set_ylabel(ERROR_LABELS[error])
        column[1].set_xlabel("giant steps" if "pair" in curves[0] else LABELS["eta"])
        if "pair" in curves[0]:
            column[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    d = None if len(sizes) > 1 else data["curves"][0]["dimension"]
    own = "the network at this $d$" if panels[0].dimension else "the network"
    theory_legend(axes, d, KINDS[data["figure"]], own)
    return picture

"""Figures 2, 4 and 5 of [C]: test errors of the network after one giant step.

2: against alpha at several alpha0, beside the best linear predictor; two pairs of student and
   target.
4: what the spike does: the network, and its sRF with r = 0; and sRFs of the same c and gamma
   against the length r of the spike, at the simulated d and in the limit.
5: against alpha at several widths, the rate eta = eta~ p the same for all; and eta~ the same.

What the text leaves open is chosen here: lam, the sizes of the batch, the widths and the second
pair of student and target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica import GradientStep
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import COLOURS, LABELS, REFERENCE, colours, setting, settings
from replica.problem import Problem

from .computing import Progress, simulated, tracked
from .drawing import THEORIES, draw_theories, panels_with_differences, theory_legend

SIZES = {True: {"dimension": 200, "seeds": 3}, False: {"dimension": 600, "seeds": 12}}
PENALTY = 0.1
ALPHAS = (0.5, 1.0, 2.0, 3.0)  # simulated
LENGTHS = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Curve:
    """Test errors of a problem over alpha; or, if one is given, over the length r of its spike."""

    label: str
    problem: Problem
    color: str
    beta: float = 1.0
    alpha: float = np.nan


@dataclass(frozen=True)
class Panel:
    """Curves, and the settings that they share."""

    shared: dict[str, Any]
    curves: Sequence[Curve]
    title: str = ""


def over(name: str, values: Sequence[float], title: str = "", **shared: Any) -> Panel:
    """A curve for each value of a field of the step, or of beta at fixed ``rate`` eta~ beta."""
    curves = []
    step = {k: v for k, v in shared.items() if k not in ("rate", "beta")}
    for value, color in zip(values, colours(values), strict=True):
        beta = value if name == "beta" else 1.0
        own = {name: value} if name != "beta" else {}
        if "rate" in shared:
            own["eta"] = shared["rate"] / beta
        problem = GradientStep(**(step | own))
        curves.append(Curve(setting(name, value), problem, color, beta))
    return Panel(shared, curves, title)


SINE: dict[str, Any] = {"student": "tanh", "target": "sin"}
STEP = SINE | {"alpha0": 20, "eta": 3.0}
SPIKED = GradientStep(**STEP)
SRF = SPIKED.srf(beta=1.0)
WIDTHS = (0.5, 1.0, 2.0, 4.0)
SAME_STEP = r"one learning rate $\eta$ for all widths: $\tilde\eta = 3/\beta$"
SAME_RATE = r"one rate per neuron, $\tilde\eta = \eta/p = 3$"
PANELS: dict[str, Sequence[Panel]] = {
    "2": (
        over("alpha0", (1.0, 2.0, 5.0, 20.0), **SINE, eta=3.0, beta=1.0),
        over("alpha0", (0.5, 1.0, 2.0, 5.0), student="tanh", target="tanh", eta=1.0, beta=1.0),
    ),
    "4": (
        Panel(
            STEP | {"beta": 1.0},
            (
                Curve("without its spike: sRF, $r = 0$", replace(SRF, r=0.0), COLOURS[4]),
                Curve(f"network, {setting('r', SRF.r)}", SPIKED, COLOURS[0]),
            ),
        ),
        Panel(
            SINE | {"c": SRF.c, "gamma": SRF.gamma, "beta": 1.0},
            [
                Curve(setting("alpha", alpha), SRF, color, alpha=alpha)
                for alpha, color in zip((0.5, 2.0), colours((0.5, 2.0)), strict=True)
            ],
        ),
    ),
    "5": (
        over("beta", WIDTHS, SAME_STEP, **SINE, alpha0=20, rate=3.0),
        over("beta", WIDTHS, SAME_RATE, **STEP),
    ),
}  # fmt: skip


def data(
    panel: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Plain values of figure ``panel``; what is simulated is kept in ``store``."""
    size = SIZES[quick]
    panels = PANELS[panel]
    found: list[list[dict[str, Any]]] = [[] for _ in panels]
    every = [(own, curve) for own, one in zip(found, panels, strict=True) for curve in one.curves]
    for own, curve in tracked(every, progress):
        compute = over_alpha if np.isnan(curve.alpha) else over_length
        own.append(compute(curve, quick, size | {"store": store}))
    return dict(plain({"panel": panel, **size, "panels": found}))


def over_alpha(curve: Curve, quick: bool, size: dict[str, Any]) -> dict[str, Any]:
    """Theories over alpha, of a step both that of its network and that of its sRF."""
    alpha = np.linspace(0.1, ALPHAS[-1] + 0.2, 12 if quick else 60)
    few = ALPHAS[1::2] if quick else ALPHAS
    models = {"theory": curve.problem}
    if isinstance(curve.problem, GradientStep):
        step, beta = curve.problem, curve.beta
        models = {"theory": step.network(beta=beta), "srf": step.srf(beta=beta)}
        size = size | {"beta": beta}
    lines = {
        kind: sweep(model, alpha=alpha, lam=PENALTY, grids={}).columns["test_error"]
        for kind, model in models.items()
    }
    points = simulated(curve.problem, alpha=few, lam=PENALTY, **size)
    linear = replica.bounds(models[max(models)]).linear
    return {"x": alpha, **lines, "simulated_at": few, "simulated": points, "linear": linear}


def over_length(curve: Curve, quick: bool, size: dict[str, Any]) -> dict[str, Any]:
    """Theory of an sRF over the length of its spike, in the limit and at the simulated d."""
    few = LENGTHS[2::3] if quick else LENGTHS
    # close where the error falls steeply from its value without a spike, with slope 0
    lengths = LENGTHS[-1] * np.linspace(0.0, 1.0, 13 if quick else 121) ** 2
    at: dict[str, Any] = {"alpha": curve.alpha, "lam": PENALTY}
    models = {
        "theory": replace(curve.problem, dimension=size["dimension"]),
        "limit": curve.problem,
    }
    lines = {
        kind: sweep(model, grids={"r": lengths}, **at).columns["test_error"]
        for kind, model in models.items()
    }
    each = [simulated(replace(curve.problem, r=length), **at, **size) for length in few]
    linear = replica.bounds(curve.problem).linear
    points = np.concatenate(each)
    return {"x": lengths, **lines, "simulated_at": few, "simulated": points, "linear": linear}


def draw(data: dict[str, Any]) -> Figure:
    """A column for each panel: theories as lines, what is simulated as points."""
    panels = PANELS[data["panel"]]
    picture = Figure(figsize=(10, 5.4), layout="constrained")
    axes = panels_with_differences(picture, len(panels))
    for column, panel, values in zip(axes.T, panels, data["panels"], strict=True):
        for i, (curve, own) in enumerate(zip(panel.curves, values, strict=True)):
            shown = {"color": curve.color, "label": curve.label}
            draw_theories(column, own, own, places=i - (len(values) - 1) / 2, **shown)
        column[0].axhline(values[0]["linear"], **REFERENCE, label="best linear predictor")
        stated = ", ".join(settings(panel.shared | {"lam": PENALTY}))
        column[0].set_title("\n".join(filter(None, [panel.title, stated])))
        column[1].set_xlabel(LABELS["alpha" if np.isnan(panel.curves[0].alpha) else "r"])
    kinds = [kind for kind in THEORIES if any(kind in own for one in data["panels"] for own in one)]
    own = "the network" if data["panel"] != "4" else "what is simulated"
    theory_legend(axes, data["dimension"], kinds, own, data["seeds"])
    return picture

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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep
from replica.plotting import COLOURS, LABELS, colours, setting, settings

from .computing import Progress
from .panels import Curve, Panel, compute, draw_panels

FIT = {"lam": 0.1}
ALPHAS = (0.5, 1.0, 2.0, 3.0)  # simulated
LENGTHS = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
WIDTHS = (0.5, 1.0, 2.0, 4.0)
SINE: dict[str, Any] = {"student": "tanh", "target": "sin"}
STEP = SINE | {"alpha0": 20, "eta": 3.0}
SAME_STEP = r"one learning rate $\eta$ for all widths: $\tilde\eta = 3/\beta$"
SAME_RATE = r"one rate per neuron, $\tilde\eta = \eta/p = 3$"


def over(name: str, values: Sequence[float], **shared: Any) -> list[Curve]:
    """A curve over alpha for each value of a field of the step, or of beta at fixed ``rate`` eta~
    beta."""
    curves = []
    step = {k: v for k, v in shared.items() if k not in ("rate", "beta")}
    for value, color in zip(values, colours(values), strict=True):
        beta = value if name == "beta" else 1.0
        own = {name: value} if name != "beta" else {}
        if "rate" in shared:
            own["eta"] = shared["rate"] / beta
        problem = GradientStep(**(step | own))
        curves.append(Curve(problem, FIT, setting(name, value), color, beta))
    return curves


def panels_of(panel: str, quick: bool) -> list[Panel]:
    """The panels of figure ``panel``."""
    size = {"dimension": 200, "seeds": 3} if quick else {"dimension": 600, "seeds": 12}
    alpha = np.linspace(0.1, ALPHAS[-1] + 0.2, 12 if quick else 60)
    few = ALPHAS[1::2] if quick else ALPHAS

    def of(curves: Sequence[Curve], shared: dict[str, Any], title: str = "", **how: Any) -> Panel:
        stated = ", ".join(settings(shared | FIT))
        return Panel(
            curves, **({"x": alpha, "few": few} | how), size=size, linear=True,
            title="\n".join(filter(None, [title, stated])),
        )  # fmt: skip

    if panel == "2":
        pairs = (
            ((1.0, 2.0, 5.0, 20.0), SINE | {"eta": 3.0, "beta": 1.0}),
            ((0.5, 1.0, 2.0, 5.0), {"student": "tanh", "target": "tanh", "eta": 1.0, "beta": 1.0}),
        )
        return [of(over("alpha0", values, **shared), shared) for values, shared in pairs]
    if panel == "5":
        rates = ((SAME_STEP, SINE | {"alpha0": 20, "rate": 3.0}), (SAME_RATE, STEP))
        return [of(over("beta", WIDTHS, **shared), shared, title) for title, shared in rates]
    step = GradientStep(**STEP)
    srf, theory = step.srf(beta=1.0), ("theory",)
    alone = replace(srf, r=0.0)
    spiked = [
        Curve(alone, FIT, "without its spike: sRF, $r = 0$", COLOURS[4], kinds=theory),
        Curve(step, FIT, f"network, {setting('r', srf.r)}"),
    ]
    lengths = [
        Curve(
            lambda r: replace(srf, r=r), FIT | {"alpha": alpha}, setting("alpha", alpha), color,
            kinds=("theory", "limit"),
        )
        for alpha, color in zip((0.5, 2.0), colours((0.5, 2.0)), strict=True)
    ]  # fmt: skip
    # close where the error falls steeply from its value without a spike, with slope 0
    dense = LENGTHS[-1] * np.linspace(0.0, 1.0, 13 if quick else 121) ** 2
    how: dict[str, Any] = {"x": dense, "few": LENGTHS[2::3] if quick else LENGTHS}
    how |= {"abscissa": LABELS["r"], "at_dimension": True}
    shared = SINE | {"c": srf.c, "gamma": srf.gamma, "beta": 1.0}
    return [of(spiked, STEP | {"beta": 1.0}), of(lengths, shared, **how)]


def data(
    panel: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Plain values of figure ``panel``; what is simulated is kept in ``store``."""
    return compute(panels_of(panel, quick), progress, store, panel=panel)


def draw(data: dict[str, Any]) -> Figure:
    """A column for each panel: theories as lines, what is simulated as points."""
    own = "the network" if data["panel"] != "4" else "what is simulated"
    return draw_panels(data, panels_of(data["panel"], True), own=own)

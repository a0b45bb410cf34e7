"""Losses on spiked random features of a tanh student, all at one small penalty.

classification: the classification error of square, logistic and hinge loss; labels are the sign of
w*.x, a tenth of them flipped.  Left: against the number of samples at a penalty where losses
differ: at the best of each they are within half a percent.  Middle: against the penalty.  Last: the
calibration of the logistic output given the projection on the spike.

robust-losses: what a robust loss buys; sine target, labels carry Gaussian noise and, one in ten, an
outlier of standard deviation 3.  Left: against the number of samples.  Right: against the fraction
of outliers.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import SpikedRandomFeatures, calibration, solve
from replica.documents import plain
from replica.plotting import COLOURS, LABELS, add_legend, colours, setting, settings
from replica.problem import describe

from .computing import Progress
from .panels import Curve, Panel, compute, draw_panels

FIXED_ALPHA = 2.0  # where the penalty or the fraction of outliers varies
CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)
CLASSIFIED = SpikedRandomFeatures(
    student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
)
CORRUPTED = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, noise=0.05,
    label_noise="outliers:0.1:9",
)  # fmt: skip
LOSSES = {
    "classification": {"square": "square", "logistic": "logistic", "hinge": "hinge"},
    "robust-losses": {
        "square": "square", "huber:0.3": r"Huber, $\delta = 0.3$", "absolute": "absolute",
    },
}  # fmt: skip


def with_outliers(fraction: float) -> SpikedRandomFeatures:
    """The model of robust losses at a fraction of outliers."""
    return replace(CORRUPTED, label_noise=f"outliers:{fraction:g}:9")


def panels_of(name: str, quick: bool) -> list[Panel]:
    """A panel over alpha and one over the penalty, or over the fraction of outliers."""
    classified = name == "classification"
    model, lam = (CLASSIFIED, 0.01) if classified else (CORRUPTED, 0.1)
    size = {"dimension": 500, "seeds": 6} if classified else {"dimension": 400, "seeds": 8}
    alpha = np.linspace(0.2, 4, 8 if quick else 191)
    few = [0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0]
    fixed, title = {"alpha": FIXED_ALPHA}, setting("alpha", FIXED_ALPHA)
    of_data = "" if classified else "10 % outliers"
    # of each panel the problem, the fit, where there is theory and where sRFs are simulated
    panels: list[Any] = [(model, {"lam": lam}, alpha, few, LABELS["alpha"], of_data)]
    if classified:
        few = [0.01, 1.0] if quick else [0.01, 0.1, 1.0]
        dense = np.geomspace(1e-3, 2, 6 if quick else 97)
        panels.append((model, fixed, dense, few, LABELS["lam"], title))
    else:
        few = [0.0, 0.3] if quick else [0.0, 0.1, 0.2, 0.3]
        dense = 0.3 * np.linspace(0, 1, 4 if quick else 61) ** 2  # the first outliers cost most
        at, of = fixed | {"lam": lam}, "fraction of outliers"
        panels.append((with_outliers, at, dense, few, of, title))
    size = {"dimension": 100, "seeds": 2} if quick else size
    error = "classification_error" if classified else "test_error"
    shades = colours(list(LOSSES[name]))
    found = []
    for problem, fit, x, few, abscissa, title in panels:
        curves = []
        for (loss, label), color in zip(LOSSES[name].items(), shades, strict=True):
            shown = ", ".join([label, *settings({k: v for k, v in fit.items() if k == "lam"})])
            how: dict[str, Any] = {"kinds": ("theory",), "fresh": problem is with_outliers}
            curves.append(Curve(problem, fit | {"loss": loss}, shown, color, **how))
        scales = {"xscale": "log"} if abscissa == LABELS["lam"] else {}
        scales |= {} if classified else {"yscale": "log"}
        found.append(Panel(curves, x, few, size, title, abscissa, (error,), scales=scales))
    return found


def data(
    name: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Theory for every loss over all that is varied, simulated sRFs, and the calibration."""
    also = calibrated() if name == "classification" else {}
    return compute(panels_of(name, quick), progress, store, figure=name, **also)


def calibrated() -> dict[str, Any]:
    """The logistic output and what is true, given the projection on the spike."""
    kappa = np.linspace(-3, 3, 61)
    each = [
        calibration(solve(CLASSIFIED, alpha=FIXED_ALPHA, lam=lam, loss="logistic"), kappa)
        for lam in CALIBRATED_PENALTIES
    ]
    predicted, frequency = [one.predicted for one in each], each[0].frequency
    return dict(plain({"kappa": kappa, "predicted": predicted, "frequency": frequency}))


def draw(data: dict[str, Any]) -> Figure:
    """Theory as lines, simulated spiked random features as points; below, what they are off by.
    Last, the calibration, if there is one."""
    panels = panels_of(data["figure"], True)
    if "kappa" not in data:
        picture = draw_panels(data, panels, width=9, own="the sRF")
        fixed = describe(CORRUPTED) | {"label_noise": None}
    else:
        picture = Figure(figsize=(12, 5.4), layout="constrained")
        curves, last = picture.subfigures(1, 2, squeeze=False, width_ratios=(2, 1))[0]
        draw_panels(data, panels, curves, own="the sRF")
        draw_calibration(last.subplots(), data)
        fixed = describe(CLASSIFIED)
    picture.suptitle(", ".join(settings(fixed)), fontsize="small")
    return picture


def draw_calibration(ax: Any, data: dict[str, Any]) -> None:
    """Probabilities that are stated, and the frequency."""
    shown = zip(CALIBRATED_PENALTIES, data["predicted"], COLOURS[3:], strict=False)
    for lam, predicted, color in shown:
        ax.plot(data["kappa"], predicted, color=color, label=f"stated, {setting('lam', lam)}")
    ax.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    # the last of three panels
    title = rf"$\mathbf{{(c)}}$ logistic output, {setting('alpha', FIXED_ALPHA)}"
    ax.set_title(title, loc="left", fontsize="small")
    ax.set_xlabel(r"projection on the spike $\kappa$")
    ax.set_ylabel(r"probability of $y = 1$")
    add_legend(ax)

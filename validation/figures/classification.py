"""Logistic, hinge and square loss on labels: the classification error of each.

Spiked random features of a tanh student; labels are the sign of w*.x, a tenth of them flipped.
Left: against the number of samples at a penalty near the best of each loss.  Right: against the
penalty.  Last: the calibration of the logistic output given the projection on the spike.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import SpikedRandomFeatures, calibration, solve
from replica.documents import plain
from replica.observables import sweep
from replica.plots import LABELS

from ..run import simulate

MODEL = SpikedRandomFeatures(
    student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
)
LOSSES = {"square": 1.0, "logistic": 0.3, "hinge": 0.5}
ALPHA = 2.0
PENALTIES = (0.003, 0.03, 1.0)  # whose calibration is shown


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory for every loss over alpha and over lam, simulated sRFs, and the calibration."""
    alpha = np.linspace(0.2, 4, 8 if quick else 191)
    lam = np.geomspace(1e-3, 2, 6 if quick else 97)
    few_alpha = np.array([0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0])
    few_lam = np.array([0.01, 1.0] if quick else [0.01, 0.1, 1.0])
    size: dict[str, Any] = dict(dimension=100, seeds=2) if quick else dict(dimension=500, seeds=6)
    curves = []
    for loss, penalty in LOSSES.items():
        options: dict[str, Any] = {"loss": loss, "rng": 0, **size}
        curve: dict[str, Any] = {"loss": loss, "lam": penalty}
        own, fixed = np.array([penalty]), np.array([ALPHA])
        for name, at, few in (
            ("alpha", (alpha, own), (few_alpha, own)),
            ("lam", (fixed, lam), (fixed, few_lam)),
        ):
            grid = sweep(MODEL, alpha=at[0], lam=at[1], grids={}, loss=loss)
            columns = simulate(MODEL, alpha=few[0], lam=few[1], **options).columns()
            curve[f"theory_{name}"] = grid.columns["classification_error"]
            curve[f"simulated_{name}"] = columns["simulated_classification_error"].ravel()
            curve[f"stderr_{name}"] = columns["stderr_classification_error"].ravel()
        curves.append(curve)
        if progress is not None:
            progress(len(curves), len(LOSSES))
    kappa = np.linspace(-3, 3, 61)
    found = [
        calibration(solve(MODEL, alpha=ALPHA, lam=each, loss="logistic"), kappa)
        for each in PENALTIES
    ]
    axes = {"alpha": alpha, "lam": lam, "few_alpha": few_alpha, "few_lam": few_lam, "kappa": kappa}
    shown = {
        "penalties": PENALTIES,
        "predicted": [each.predicted for each in found],
        "frequency": found[0].frequency,
    }
    return dict(plain({**axes, **size, **shown, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """Theory as lines, simulated spiked random features as points; the calibration."""
    picture = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = picture.subplots(1, 3)
    for i, curve in enumerate(data["curves"]):
        for ax, axis in ((left, "alpha"), (middle, "lam")):
            label = curve["loss"]
            if axis == "alpha":
                label = rf"{label}, $\lambda = {curve['lam']:g}$"
            ax.plot(data[axis], curve[f"theory_{axis}"], color=f"C{i}", label=label)
            few = np.array(data[f"few_{axis}"])  # side by side: the losses share their draws
            ax.errorbar(
                few + 0.05 * (i - 1) if axis == "alpha" else few * 1.1 ** (i - 1),
                curve[f"simulated_{axis}"],
                2 * np.array(curve[f"stderr_{axis}"]),
                fmt="o",
                color=f"C{i}",
                markersize=4,
                capsize=2,
            )
    left.errorbar(
        [], [], [], fmt="o", color="0.3", markersize=4, capsize=2,
        label=rf"simulated, $d = {data['dimension']}$ (±2 s.e.)",
    )  # fmt: skip
    middle.sharey(left)
    left.set_xlabel(LABELS["alpha"])
    for ax in (left, middle):
        ax.set_ylabel("classification error")
    left.legend(frameon=False, fontsize="small")
    middle.set_xscale("log")
    middle.set_xlabel(LABELS["lam"])
    middle.set_title(rf"$\alpha = {ALPHA:g}$", fontsize="medium")
    middle.legend(frameon=False, fontsize="small")
    for i, (lam, predicted) in enumerate(zip(data["penalties"], data["predicted"], strict=True)):
        label = rf"stated, $\lambda = {lam:g}$"
        right.plot(data["kappa"], predicted, color=f"C{3 + i}", label=label)
    right.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    right.set_title(rf"logistic output, $\alpha = {ALPHA:g}$", fontsize="medium")
    right.set_xlabel(r"projection on the spike $\kappa$")
    right.set_ylabel(r"probability of $y = 1$")
    right.legend(frameon=False, fontsize="small")
    return picture

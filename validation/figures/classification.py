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
from replica.plotting import LABELS

from ..run import simulate
from .drawing import add_legend_entry, draw_points

FLIPPED_MODEL = SpikedRandomFeatures(
    student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
)
PENALTY_OF_LOSS = {"square": 1.0, "logistic": 0.3, "hinge": 0.5}
FIXED_ALPHA = 2.0  # where the penalty varies
CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory for every loss over alpha and over lam, simulated sRFs, and the calibration."""
    alpha = np.linspace(0.2, 4, 8 if quick else 191)
    lam = np.geomspace(1e-3, 2, 6 if quick else 97)
    few_alpha = np.array([0.5, 2.0] if quick else [0.5, 1.0, 2.0, 3.0])
    few_lam = np.array([0.01, 1.0] if quick else [0.01, 0.1, 1.0])
    size: dict[str, Any] = dict(dimension=100, seeds=2) if quick else dict(dimension=500, seeds=6)
    curves = []
    for loss, penalty in PENALTY_OF_LOSS.items():
        options: dict[str, Any] = {"loss": loss, "rng": 0, **size}
        curve: dict[str, Any] = {"loss": loss, "lam": penalty}
        own, fixed = np.array([penalty]), np.array([FIXED_ALPHA])
        for name, at, few in (
            ("alpha", (alpha, own), (few_alpha, own)),
            ("lam", (fixed, lam), (fixed, few_lam)),
        ):
            grid = sweep(FLIPPED_MODEL, alpha=at[0], lam=at[1], grids={}, loss=loss)
            columns = simulate(FLIPPED_MODEL, alpha=few[0], lam=few[1], **options).columns()
            curve[f"theory_{name}"] = grid.columns["classification_error"]
            curve[f"simulated_{name}"] = columns["simulated_classification_error"].ravel()
            curve[f"stderr_{name}"] = columns["stderr_classification_error"].ravel()
        curves.append(curve)
        if progress is not None:
            progress(len(curves), len(PENALTY_OF_LOSS))
    kappa = np.linspace(-3, 3, 61)
    calibrations = [
        calibration(solve(FLIPPED_MODEL, alpha=FIXED_ALPHA, lam=each, loss="logistic"), kappa)
        for each in CALIBRATED_PENALTIES
    ]
    axes = {"alpha": alpha, "lam": lam, "few_alpha": few_alpha, "few_lam": few_lam, "kappa": kappa}
    shown = {
        "penalties": CALIBRATED_PENALTIES,
        "predicted": [each.predicted for each in calibrations],
        "frequency": calibrations[0].frequency,
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
            x = few + 0.05 * (i - 1) if axis == "alpha" else few * 1.1 ** (i - 1)
            mean, stderr = curve[f"simulated_{axis}"], curve[f"stderr_{axis}"]
            draw_points(ax, x, mean, stderr, color=f"C{i}")
    add_legend_entry(left, data["dimension"])
    middle.sharey(left)
    left.set_xlabel(LABELS["alpha"])
    for ax in (left, middle):
        ax.set_ylabel("classification error")
    left.legend(frameon=False, fontsize="small")
    middle.set_xscale("log")
    middle.set_xlabel(LABELS["lam"])
    middle.set_title(rf"$\alpha = {FIXED_ALPHA:g}$", fontsize="medium")
    middle.legend(frameon=False, fontsize="small")
    for i, (lam, predicted) in enumerate(zip(data["penalties"], data["predicted"], strict=True)):
        label = rf"stated, $\lambda = {lam:g}$"
        right.plot(data["kappa"], predicted, color=f"C{3 + i}", label=label)
    right.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    right.set_title(rf"logistic output, $\alpha = {FIXED_ALPHA:g}$", fontsize="medium")
    right.set_xlabel(r"projection on the spike $\kappa$")
    right.set_ylabel(r"probability of $y = 1$")
    right.legend(frameon=False, fontsize="small")
    return picture

"""Figure 8 of [C]: eigenvalues of the features' covariance, theory over simulated histograms.

More neurons than samples and fewer, one group of neurons and three; and a network whose first
batch was small, with its own theory and that of its spiked random features.  The largest
eigenvalue lies far from the bulk, near p E mu_0^2 where there is one group (9.2).
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica.documents import plain
from replica.plotting import COLOURS, add_legend, letter_panels, plot_spectrum, settings
from replica.problem import describe

from ..measure import eigenvalues
from .computing import Progress, stored, tracked

ONE_GROUP = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
THREE_GROUPS = replica.GradientStep(
    student="tanh", target="sin", alpha0=20, eta=2.0, readout=[-1, 0.5, 1.5]
)
NOISY_STEP = replica.GradientStep(student="tanh", target="tanh", alpha0=0.3, eta=6.0)
SPECTRUM_SECONDS = 600.0  # seconds that a spectrum may take
# model drawn, beta, alpha, title
SPECTRA: tuple[tuple[replica.GradientStep, float, float, str], ...] = (
    (ONE_GROUP, 2.0, 3.0, r"sRF, $n > p > d$"),
    (THREE_GROUPS, 1.5, 0.7, r"sRF, $\tilde a\in\{-1, \frac{1}{2}, \frac{3}{2}\}$, $n < p$"),
    (NOISY_STEP, 1.0, 2.0, "network"),
)


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Simulated eigenvalues of every panel."""
    dimension, seeds = (100, 2) if quick else (600, 4)
    histograms = []
    for step, beta, alpha, _ in tracked(SPECTRA, progress):
        drawn = step if step is NOISY_STEP else step.srf(beta=beta)
        size: dict[str, Any] = {"alpha": alpha, "dimension": dimension, "seeds": seeds}
        width = beta if step is NOISY_STEP else None
        cell = {"eigenvalues of": describe(drawn), "beta": beta, **size}
        compute = partial(eigenvalues, drawn, beta=width, rng=0, **size)
        histograms.append(stored(store, cell, compute, (seeds, round(beta * dimension))))
    return dict(plain({"eigenvalues": histograms, "dimension": dimension, "seeds": seeds}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each spectrum."""
    picture = Figure(figsize=(12, 4.4), layout="constrained")
    panels = picture.subplots(1, len(SPECTRA))
    for ax, (step, beta, alpha, title), values in zip(
        panels, SPECTRA, data["eigenvalues"], strict=True
    ):
        srf = replica.spectrum(step.srf(beta=beta), alpha, time_limit=SPECTRUM_SECONDS)
        shown = srf
        if step is NOISY_STEP:
            shown = replica.spectrum(step.network(beta=beta), alpha, time_limit=SPECTRUM_SECONDS)
        drawn = np.array(values)
        plot_spectrum(shown, ax, eigenvalues=drawn)
        if shown is not srf:
            ax.lines[0].set_label("theory of the network")
            x = srf.grid(0, 600)
            ax.plot(x, x * srf.density(x), "--", color=COLOURS[1], label="theory of the sRF")
        place = settings(describe(step) | {"beta": beta, "alpha": alpha})
        half = (len(place) + 1) // 2
        lines = [title, ", ".join(place[:half]), ", ".join(place[half:]), *shown.notes[:2]]
        ax.set_title("\n".join(lines))
        add_legend(ax)
    letter_panels(panels)
    picture.suptitle(rf"$d = {data['dimension']}$, {data['seeds']} draws", fontsize="small")
    for ax in panels[1:]:
        ax.set_ylabel("")
    return picture

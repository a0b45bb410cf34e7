"""Eigenvalues of the features' covariance: the theory's density over simulated histograms.

More neurons than samples and fewer, one group of neurons and three; and a network whose first
batch was small, with its own theory and that of its spiked random features.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica.documents import plain
from replica.plotting import COLOURS, add_legend, letter_panels, plot_spectrum, setting

from ..measure import eigenvalues

ONE_GROUP = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
THREE_GROUPS = replica.GradientStep(
    student="tanh", target="sin", alpha0=20, eta=2.0, readout=[-1, 0.5, 1.5]
)
NOISY_STEP = replica.GradientStep(student="tanh", target="tanh", alpha0=0.3, eta=6.0)
LONGEST = 600.0  # seconds that a spectrum may take
# model drawn, beta, alpha, title
SPECTRA: tuple[tuple[replica.GradientStep, float, float, str], ...] = (
    (ONE_GROUP, 2.0, 3.0, r"sRF, $n > p > d$"),
    (THREE_GROUPS, 1.5, 0.7, r"sRF of three groups, $n < p$"),
    (NOISY_STEP, 1.0, 2.0, r"network, $\alpha_0 = 0.3$, $\tilde\eta = 6$"),
)


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Simulated eigenvalues of every panel."""
    dimension, seeds = (100, 2) if quick else (600, 4)
    histograms = []
    for step, beta, alpha, _ in SPECTRA:
        drawn: dict[str, Any] = {"problem": step, "beta": beta}
        if step is not NOISY_STEP:
            drawn = {"problem": step.srf(beta=beta), "beta": None}
        values = eigenvalues(alpha=alpha, dimension=dimension, seeds=seeds, rng=0, **drawn)
        histograms.append(values)
        if progress is not None:
            progress(len(histograms), len(SPECTRA))
    return dict(plain({"eigenvalues": histograms, "dimension": dimension, "seeds": seeds}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each spectrum."""
    picture = Figure(figsize=(12, 3.8), layout="constrained")
    panels = picture.subplots(1, len(SPECTRA))
    for ax, (step, beta, alpha, title), values in zip(
        panels, SPECTRA, data["eigenvalues"], strict=True
    ):
        srf = replica.spectrum(step.srf(beta=beta), alpha, time_limit=LONGEST)
        if step is NOISY_STEP:
            own = replica.spectrum(step.network(beta=beta), alpha, time_limit=LONGEST)
            plot_spectrum(own, ax, eigenvalues=np.array(values))
            ax.lines[0].set_label("theory of the network")
            x = srf.grid(0, 600)
            ax.plot(x, x * srf.density(x), "--", color=COLOURS[1], label="theory of the sRF")
        else:
            plot_spectrum(srf, ax, eigenvalues=np.array(values))
        place = f"{setting('beta', beta)}, {setting('alpha', alpha)}"
        ax.set_title(f"{title},\n{place}", fontsize="small")
        add_legend(ax)
    letter_panels(panels)
    for ax in panels[1:]:
        ax.set_ylabel("")
    return picture

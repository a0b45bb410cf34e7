"""What can be learned at each learning rate, and what is.

tanh network, sin target, one step on 20 d samples: the bounds on the test error at the best
penalty, with the error at two sizes of the readout's data between them; the functions of the
projection on the spike that attain them; those within reach of a large penalty as the rate
varies; and the function learned at one point, theory beside simulated networks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica.documents import plain
from replica.plotting import (
    BARS,
    COLOURS,
    add_legend,
    draw_points,
    letter_panels,
    plot_bounds,
    plot_family,
    plot_functions,
    plot_learned,
)

from ..measure import measured_function

PROBLEM: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20}
SHOWN_ETA = 3.0  # of the functions and of what is learned
FAMILY_ETAS = (0.3, 1.0, 3.0, 10.0, 30.0)
ACHIEVED_ALPHAS = (1.0, 4.0)  # where the best error is shown
READOUT: dict[str, Any] = {"alpha": 1.0, "lam": 0.1}


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Bounds and best errors over the rate, and the outputs of simulated networks."""
    rates = np.geomspace(0.1, 30, 8 if quick else 60)
    dimension, seeds = (120, 2) if quick else (700, 8)
    points = []
    for done, rate in enumerate(rates, start=1):
        step = replica.GradientStep(eta=float(rate), **PROBLEM)
        bounds = replica.bounds(step)
        points.append({"eta": float(rate), "lower": bounds.lower, "upper": bounds.upper})
        for alpha in ACHIEVED_ALPHAS:
            best = replica.optimal_lambda(step.srf(beta=1.0), alpha=alpha)
            points[-1][f"achieved_{alpha:g}"] = best.test_error
        if progress is not None:
            progress(done, len(rates))
    kappa = np.linspace(-2.5, 2.5, 11)
    step = replica.GradientStep(eta=SHOWN_ETA, **PROBLEM)
    drawn = measured_function(
        step, kappa=kappa, dimension=dimension, seeds=seeds, rng=0, beta=1.0, **READOUT
    )
    return dict(
        plain(
            {
                "bounds": points,
                "linear": bounds.linear,
                "kappa": kappa,
                "mean": drawn.mean.mean(axis=0),
                "spread": np.sqrt(drawn.variance.mean(axis=0)),
                "dimension": dimension,
                "seeds": seeds,
            }
        )
    )


def draw(data: dict[str, Any]) -> Figure:
    """Four panels: bounds, functions that attain them, those within reach, what is learned."""
    picture = Figure(figsize=(10, 7.6), layout="constrained")
    (first, second), (third, fourth) = picture.subplots(2, 2)
    plot_bounds(data["bounds"], data["linear"], ACHIEVED_ALPHAS, first)
    first.set_title("bounds over the learning rate", fontsize="medium")
    step = replica.GradientStep(eta=SHOWN_ETA, **PROBLEM)
    plot_functions(replica.bounds(step), second)
    second.set_title(
        rf"functions that attain them, $\tilde\eta = {SHOWN_ETA:g}$", fontsize="medium"
    )
    family = replica.bounds(step, eta=FAMILY_ETAS)
    plot_family(family.each, family.eta, third)
    title = r"within reach at $\lambda\to\infty$, as $\tilde\eta$ varies"
    third.set_title(title, fontsize="medium")
    learned = replica.learned_function(step.srf(beta=1.0), **READOUT)
    plot_learned(learned, fourth)
    # bars of one standard deviation, which is what the band is
    spread = np.array(data["spread"]) / BARS
    label = rf"networks at $d = {data['dimension']}$, ± one s.d."
    draw_points(fourth, data["kappa"], data["mean"], spread, color=COLOURS[1], label=label)
    add_legend(fourth)
    title = rf"learned at $\tilde\eta = {SHOWN_ETA:g}$, $\alpha = 1$, $\lambda = 0.1$, $\beta = 1$"
    fourth.set_title(title, fontsize="medium")
    letter_panels([first, second, third, fourth])
    return picture

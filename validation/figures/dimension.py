"""Test errors against 1/d: networks on the way to their limit, and simulations to the theory.

Networks: four settings that are far from the limit at ordinary sizes, and not all to one side of
it, in theory and simulated.  docs/theory.md 23

Simulations, the ladder: the published setting at two sizes of the training set.  Spiked random
features and the conditional Gaussian model meet the theory in the limit; the network has a theory
of its own.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GaussianMixture, GradientStep, learning_curve, plotting
from replica.documents import plain

from ..comparisons import ladder
from . import Run, Values
from .panels import legend_below

MIXTURE = GaussianMixture(
    means=[[1, 0.5], [-1.5, 0.5]],
    covariances=[[[2, 0.7], [0.7, 1]], [[0.5, 0], [0, 3]]],
    fractions=[0.3, 0.7],
)
CORRELATED = GaussianMixture(means=np.zeros((1, 2)), covariances=[[[1, 0.8], [0.8, 1]]])
# Of each panel: the title, the step, and where it is solved.
SETTINGS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "steps": (
        "gelu, $z_1z_2$, two steps",
        dict(student="gelu", target="z1*z2", inputs=CORRELATED, steps=[(2, 1), (2, 1)]),
        dict(beta=1, alpha=2, lam=0.1),
    ),
    "mixture": (
        "cos, $z_1+z_2^2/2$ on a mixture",
        dict(student="cos", target="z1 + z2**2/2", inputs=MIXTURE, alpha0=2, eta=2, noise=0.2),
        dict(beta=1.5, alpha=2, lam=0.05),
    ),
    "even": (
        "abs, $He_2$",
        dict(student="abs", target="he2", alpha0=2, eta=1),
        dict(beta=1, alpha=2, lam=0.1),
    ),
    "few": (
        r"relu, sin, $\alpha_0=0.1$, $\tilde\eta=10$",
        dict(student="relu", target="sin", alpha0=0.1, eta=10),
        dict(beta=1, alpha=2, lam=1.0),
    ),
}


def approach_values(run: Run) -> Values:
    """Theory at every dimension and in the limit, and simulated means with standard errors."""
    sizes, draws = ((100, 200), (4, 4)) if run.quick else ((200, 350, 600, 1000), (80, 40, 20, 12))
    dimensions = np.geomspace(200, 14_000, 4 if run.quick else 24)
    panels: dict[str, Any] = {}
    for name, (_, options, at) in SETTINGS.items():
        step, curve_settings = GradientStep(**options), {**at}
        network = step.network(beta=curve_settings.pop("beta"))
        theory = learning_curve(network, **curve_settings, dimension=[*dimensions, np.inf])
        panels_done, panels_total = len(panels) * len(sizes), len(SETTINGS) * len(sizes)
        pairs = run.tracked([*zip(sizes, draws, strict=True)], panels_done, panels_total)
        simulated_errors = [run.simulated(step, dimension=d, seeds=n, **at) for d, n in pairs]
        mean, stderr = np.concatenate(simulated_errors).T
        panels[name] = {"theory": theory.test_error.values, "mean": mean, "stderr": stderr, **at}
    figure_settings = {"dimensions": dimensions, "sizes": sizes, "draws": draws}
    return dict(plain({**figure_settings, "panels": panels}))


def draw_approach(data: dict[str, Any]) -> Figure:
    """A panel for each setting: a line of the theory, a star at its limit, and points."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes, x = over_sizes(figure, data["panels"], data["sizes"])
    theory, of_networks = plotting.colours(["network", "simulation"])
    for (name, panel), ax in zip(data["panels"].items(), axes, strict=True):
        errors = np.array(panel["theory"], dtype=float)
        ax.plot(1 / np.array(data["dimensions"]), errors[:-1], color=theory, label="theory at $d$")
        star: dict[str, Any] = {"marker": "*", "markersize": 11, "linestyle": "none"}
        ax.plot(0, errors[-1], color=theory, label=r"limit, $d\to\infty$", clip_on=False, **star)
        label = f"networks, ±{plotting.BARS} s.e."
        plotting.draw_points(ax, x, panel["mean"], panel["stderr"], label=label, color=of_networks)
        setting = ", ".join(plotting.settings({k: panel[k] for k in ("beta", "alpha", "lam")}))
        ax.set_title(f"{SETTINGS[name][0]}\n{setting}", fontsize="small")
    plotting.letter_panels(axes)
    plotting.add_legend(axes[0])
    return figure


def over_sizes(figure: Figure, panels: Any, sizes: list[int]) -> tuple[Any, Any]:
    """A row of axes of test errors over 1/d, one for each of the ``panels``, and the abscissae of
    the ``sizes``."""
    axes, abscissae = figure.subplots(1, len(panels), squeeze=False)[0], 1 / np.array(sizes)
    for ax in axes:
        ax.set_xticks([0, *abscissae], ["0", *(f"1/{d}" for d in sizes)])
        ax.tick_params(axis="x", labelrotation=45)
        ax.set_xlabel("$1/d$")
    axes[0].set_ylabel(plotting.ERROR_LABELS["test_error"])
    return axes, abscissae


LADDER_STEP: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3.0}
DRAWN_MODELS = {  # label, marker, and the side to which points are nudged
    "srf": ("spiked random features", "o", -1),
    "gaussian": ("conditional Gaussian model", "s", 0),
    "network": ("the network itself", "^", 1),
}


def ladder_values(run: Run) -> Values:
    """Means and standard errors at every size, and the extrapolation, of each model."""
    alpha, lam = np.array([0.9, 2.3]), 0.1
    sizes, seeds = ([40, 80], 4) if run.quick else ([100, 200, 400, 800], 12)
    models: dict[str, Any] = {}
    for model in DRAWN_MODELS:

        def advance(done: int, total: int) -> None:
            """Report the progress of one model as progress of all."""
            run.advance(len(models) * total + done, len(DRAWN_MODELS) * total)

        readout: dict[str, Any] = {"alpha": alpha, "lam": lam, "beta": 1.0, "simulated": model}
        size: dict[str, Any] = {"dimensions": sizes, "seeds": seeds, "rng": 0, "store": run.store}
        result = ladder(GradientStep(**LADDER_STEP), progress=advance, **readout, **size)
        fitted_line = result.lines["test_error"]
        models[model] = {
            "mean": [simulation.test_error[:, 0] for simulation in result.simulations],
            "stderr": [simulation.test_error_stderr[:, 0] for simulation in result.simulations],
            "limit": fitted_line.limit[:, 0],
            "limit_stderr": fitted_line.stderr[:, 0],
            "slope": fitted_line.slope[:, 0],
            "theory": result.checks["test_error"].theory[:, 0],
        }
    settings = {"step": LADDER_STEP, "lam": lam, "alpha": alpha, "sizes": sizes, "seeds": seeds}
    return dict(plain({**settings, "models": models}))


def draw_ladder(data: dict[str, Any]) -> Figure:
    """A panel for each alpha: points with two standard errors, their lines, the theory."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels, x = over_sizes(figure, data["alpha"], data["sizes"])
    model_colours = plotting.colours(list(DRAWN_MODELS))
    nudge = 0.012 * x.max()  # keeps error bars of different models apart
    theories = {"srf": "theory of the sRF", "network": "theory of the network"}
    for j, (alpha, ax) in enumerate(zip(data["alpha"], panels, strict=True)):
        for colour, (model, drawn) in zip(model_colours, DRAWN_MODELS.items(), strict=True):
            (label, marker, side), one = drawn, data["models"][model]
            mean, stderr = (np.array(one[name])[:, j] for name in ("mean", "stderr"))
            limit, slope = one["limit"][j], one["slope"][j]
            ends = np.array([0, 1.05 * x.max()])
            ax.plot(ends, limit + slope * ends, color=colour, linewidth=1)
            style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 5}
            at = side * nudge, limit, one["limit_stderr"][j]
            plotting.draw_points(ax, *at, **style, markerfacecolor=colour)
            style |= {"markerfacecolor": "white", "label": label}
            plotting.draw_points(ax, x + side * nudge, mean, stderr, **style)
        for (model, label), colour in zip(
            theories.items(), plotting.colours([*theories]), strict=True
        ):
            theory_error = data["models"][model]["theory"][j]
            ax.axhline(theory_error, color=colour, linestyle=":", label=rf"{label}, $d\to\infty$")
        ax.plot([], [], color="0.3", linewidth=1, label="fit, linear in $1/d$")
        ax.set_title(plotting.setting("alpha", alpha), fontsize="medium")
    shared = data["step"] | {"beta": 1.0, "lam": data["lam"], "seeds": data["seeds"]}
    stated = ", ".join(plotting.settings(shared))
    bars = f"bars: ±{plotting.BARS} s.e., filled: the limit of a fit"
    figure.suptitle(f"{stated} at the largest size, {bars}", fontsize="small")
    plotting.letter_panels(panels)
    legend_below(figure, panels[-1].get_legend_handles_labels()[0], ncols=3)
    return figure

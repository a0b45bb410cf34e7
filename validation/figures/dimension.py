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
    approach: dict[str, Any] = {}
    for name, (_, step_options, fit) in SETTINGS.items():
        step, curve_settings = GradientStep(**step_options), {**fit}
        network = step.network(beta=curve_settings.pop("beta"))
        theory = learning_curve(network, **curve_settings, dimension=[*dimensions, np.inf])
        panels_done, panels_total = len(approach) * len(sizes), len(SETTINGS) * len(sizes)
        size_draws = run.tracked([*zip(sizes, draws, strict=True)], panels_done, panels_total)
        simulated_errors = [run.simulated(step, dimension=d, seeds=n, **fit) for d, n in size_draws]
        mean, stderr = np.concatenate(simulated_errors).T
        approach[name] = {"theory": theory.test_error.values, "mean": mean, "stderr": stderr, **fit}
    figure_settings = {"dimensions": dimensions, "sizes": sizes, "draws": draws}
    return dict(plain({**figure_settings, "panels": approach}))


def draw_approach(data: dict[str, Any]) -> Figure:
    """A panel for each setting: a line of the theory, a star at its limit, and points."""
    approach_figure = Figure(figsize=(11, 3.4), layout="constrained")
    approach_axes, x = over_sizes(approach_figure, data["panels"], data["sizes"])
    theory, networks_hue = plotting.colours(["network", "simulation"])
    for (name, panel), ax in zip(data["panels"].items(), approach_axes, strict=True):
        errors = np.array(panel["theory"], dtype=float)
        ax.plot(1 / np.array(data["dimensions"]), errors[:-1], color=theory, label="theory at $d$")
        star: dict[str, Any] = {"marker": "*", "markersize": 11, "linestyle": "none"}
        ax.plot(0, errors[-1], color=theory, label=r"limit, $d\to\infty$", clip_on=False, **star)
        label = f"networks, ±{plotting.BARS} s.e."
        plotting.draw_points(ax, x, panel["mean"], panel["stderr"], label=label, color=networks_hue)
        setting_text = ", ".join(plotting.settings({k: panel[k] for k in ("beta", "alpha", "lam")}))
        ax.set_title(f"{SETTINGS[name][0]}\n{setting_text}", fontsize="small")
    plotting.letter_panels(approach_axes)
    plotting.add_legend(approach_axes[0])
    return approach_figure


def over_sizes(figure: Figure, panels: Any, sizes: list[int]) -> tuple[Any, Any]:
    """A row of axes of test errors over 1/d, one for each of the ``panels``, and the abscissae of
    the ``sizes``."""
    axes, inverse_sizes = figure.subplots(1, len(panels), squeeze=False)[0], 1 / np.array(sizes)
    for size_axes in axes:
        size_axes.set_xticks([0, *inverse_sizes], ["0", *(f"1/{d}" for d in sizes)])
        size_axes.tick_params(axis="x", labelrotation=45)
        size_axes.set_xlabel("$1/d$")
    axes[0].set_ylabel(plotting.ERROR_LABELS["test_error"])
    return axes, inverse_sizes


LADDER_STEP: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3.0}
DRAWN_MODELS = {  # label, marker, and the side to which points are nudged
    "srf": ("spiked random features", "o", -1),
    "gaussian": ("conditional Gaussian model", "s", 0),
    "network": ("the network itself", "^", 1),
}


def ladder_values(run: Run) -> Values:
    """Means and standard errors at every size, and the extrapolation, of each model."""
    alphas, lam = np.array([0.9, 2.3]), 0.1
    rungs, draws = ([40, 80], 4) if run.quick else ([100, 200, 400, 800], 12)
    ladder_models: dict[str, Any] = {}
    for model in DRAWN_MODELS:

        def advance(done: int, total: int) -> None:
            """Report the progress of one model as progress of all."""
            run.advance(len(ladder_models) * total + done, len(DRAWN_MODELS) * total)

        fit_options: dict[str, Any] = {"alpha": alphas, "lam": lam, "beta": 1.0, "simulated": model}
        size: dict[str, Any] = {"dimensions": rungs, "seeds": draws, "rng": 0, "store": run.store}
        ladder_run = ladder(GradientStep(**LADDER_STEP), progress=advance, **fit_options, **size)
        ladder_line = ladder_run.lines["test_error"]
        ladder_models[model] = {
            "mean": [simulation.test_error[:, 0] for simulation in ladder_run.simulations],
            "stderr": [simulation.test_error_stderr[:, 0] for simulation in ladder_run.simulations],
            "limit": ladder_line.limit[:, 0],
            "limit_stderr": ladder_line.stderr[:, 0],
            "slope": ladder_line.slope[:, 0],
            "theory": ladder_run.checks["test_error"].theory[:, 0],
        }
    ladder_fit = {"step": LADDER_STEP, "lam": lam, "alpha": alphas, "sizes": rungs, "seeds": draws}
    return dict(plain({**ladder_fit, "models": ladder_models}))


def draw_ladder(data: dict[str, Any]) -> Figure:
    """A panel for each alpha: points with two standard errors, their lines, the theory."""
    ladder_figure = Figure(figsize=(9, 3.8), layout="constrained")
    ladder_panels, inverse_d = over_sizes(ladder_figure, data["alpha"], data["sizes"])
    model_colours = plotting.colours(list(DRAWN_MODELS))
    marker_nudge = 0.012 * inverse_d.max()  # keeps error bars of different models apart
    theory_labels = {"srf": "theory of the sRF", "network": "theory of the network"}
    for j, (alpha, ax) in enumerate(zip(data["alpha"], ladder_panels, strict=True)):
        for colour, (model, drawn) in zip(model_colours, DRAWN_MODELS.items(), strict=True):
            (label, marker, side), ladder_model = drawn, data["models"][model]
            mean, stderr = (np.array(ladder_model[name])[:, j] for name in ("mean", "stderr"))
            fit_limit, fit_slope = ladder_model["limit"][j], ladder_model["slope"][j]
            line_ends = np.array([0, 1.05 * inverse_d.max()])
            ax.plot(line_ends, fit_limit + fit_slope * line_ends, color=colour, linewidth=1)
            marker_style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 5}
            limit_point = side * marker_nudge, fit_limit, ladder_model["limit_stderr"][j]
            plotting.draw_points(ax, *limit_point, **marker_style, markerfacecolor=colour)
            marker_style |= {"markerfacecolor": "white", "label": label}
            plotting.draw_points(ax, inverse_d + side * marker_nudge, mean, stderr, **marker_style)
        for (model, label), colour in zip(
            theory_labels.items(), plotting.colours([*theory_labels]), strict=True
        ):
            limit_error = data["models"][model]["theory"][j]
            ax.axhline(limit_error, color=colour, linestyle=":", label=rf"{label}, $d\to\infty$")
        ax.plot([], [], color="0.3", linewidth=1, label="fit, linear in $1/d$")
        ax.set_title(plotting.setting("alpha", alpha), fontsize="medium")
    shared_settings = data["step"] | {"beta": 1.0, "lam": data["lam"], "seeds": data["seeds"]}
    settings_text = ", ".join(plotting.settings(shared_settings))
    bars_text = f"bars: ±{plotting.BARS} s.e., filled: the limit of a fit"
    ladder_figure.suptitle(f"{settings_text} at the largest size, {bars_text}", fontsize="small")
    plotting.letter_panels(ladder_panels)
    legend_below(ladder_figure, ladder_panels[-1].get_legend_handles_labels()[0], ncols=3)
    return ladder_figure

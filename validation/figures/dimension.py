"""Test errors against 1/d: networks approaching their limit, and ladders of simulations.

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
from replica.display import report_part
from replica.files import plain

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
SETTINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "gelu, $z_1z_2$, two steps",
        dict(student="gelu", target="z1*z2", inputs=CORRELATED, steps=[(2, 1), (2, 1)]),
        dict(beta=1, alpha=2, lam=0.1),
    ),
    (
        "cos, $z_1+z_2^2/2$ on a mixture",
        dict(student="cos", target="z1 + z2**2/2", inputs=MIXTURE, alpha0=2, eta=2, noise=0.2),
        dict(beta=1.5, alpha=2, lam=0.05),
    ),
    (
        "abs, $He_2$",
        dict(student="abs", target="he2", alpha0=2, eta=1),
        dict(beta=1, alpha=2, lam=0.1),
    ),
    (
        r"relu, sin, $\alpha_0=0.1$, $\tilde\eta=10$",
        dict(student="relu", target="sin", alpha0=0.1, eta=10),
        dict(beta=1, alpha=2, lam=1.0),
    ),
]


LADDER_STEP: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3.0}
LADDER_MODELS = {
    "srf": "spiked random features",
    "gaussian": "conditional Gaussian model",
    "network": "the network itself",
}


def approach_values(run: Run) -> Values:
    """Theory at every dimension and in the limit, and simulated means with standard errors."""
    sizes, draws = ((100, 200), (4, 4)) if run.quick else ((200, 350, 600, 1000), (80, 40, 20, 12))
    dimensions = np.round(np.geomspace(sizes[0], 14_000, 4 if run.quick else 24))
    panels: list[Values] = []
    for title, step_options, fit in run.tracked(SETTINGS):
        step, curve_settings = GradientStep(**step_options), {**fit}
        network = step.network(beta=curve_settings.pop("beta"))
        theory = learning_curve(network, **curve_settings, dimension=[*dimensions, np.inf])
        *theory_line, limit = theory.test_error.values
        points = [
            run.simulated(step, dimension=d, seeds=n, **fit)[0, 0]
            for d, n in zip(sizes, draws, strict=True)
        ]
        series = {"x": 1 / dimensions, "line": theory_line, "limit": limit, "points": points}
        full_title = f"{title}\n{', '.join(plotting.settings(fit))}"
        panels.append({"title": full_title, "series": {"network": series}})
    shared_values: Values = {"line": "theory at $d$", "title": "", "sizes": sizes}
    return dict(plain({**shared_values, "at": 1 / np.array(sizes), "panels": panels}))


def ladder_values(run: Run) -> Values:
    """Means and standard errors at every size, and the extrapolation, of each model."""
    fit: dict[str, Any] = {"alpha": np.array([0.9, 2.3]), "lam": 0.1, "beta": 1.0}
    sizes, seeds = ([40, 80], 4) if run.quick else ([100, 200, 400, 800], 12)
    fit |= {"dimensions": sizes, "seeds": seeds, "rng": 0, "store": run.store}
    panels: list[Values] = [
        {"title": plotting.setting("alpha", alpha), "series": {}} for alpha in fit["alpha"]
    ]
    for i, model in enumerate(LADDER_MODELS):
        progress = report_part(run.progress, i, len(LADDER_MODELS))
        found = ladder(GradientStep(**LADDER_STEP), simulated=model, progress=progress, **fit)
        fitted_line, theory = found.lines["test_error"], found.checks["test_error"].theory
        means = [*(one.test_error for one in found.simulations), fitted_line.limit]
        errors = [*(one.test_error_stderr for one in found.simulations), fitted_line.stderr]
        points, line_ends = np.stack([means, errors], axis=-1), np.array([0.0, 1.05 / sizes[0]])
        for j, panel in enumerate(panels):
            line = fitted_line.limit[j, 0] + fitted_line.slope[j, 0] * line_ends
            curve = {"x": line_ends, "line": line, "limit": theory[j, 0], "points": points[:, j, 0]}
            panel["series"][model] = curve
    settings = plotting.settings(LADDER_STEP | {"beta": 1.0, "lam": 0.1, "seeds": seeds})
    title = f"{', '.join(settings)} at the largest size; at 0 the limit of a fit"
    shared_values: Values = {"line": "fit, linear in $1/d$", "title": title, "sizes": sizes}
    return dict(plain({**shared_values, "at": [*(1 / np.array(sizes)), 0.0], "panels": panels}))


def draw_approach(data: Values) -> Figure:
    """A panel for each setting: a line of the theory, or of a fit, a star at the limit in theory,
    and points."""
    panels, sizes = data["panels"], data["sizes"]
    size_figure = Figure(figsize=(max(9.0, 2.75 * len(panels)), 3.8), layout="constrained")
    size_axes, abscissae = size_figure.subplots(1, len(panels)), np.array(data["at"])
    star: dict[str, Any] = {"marker": "*", "markersize": 11, "linestyle": "none"}
    for ax, panel in zip(size_axes, panels, strict=True):
        hues, middle = plotting.colours([*panel["series"]]), (len(panel["series"]) - 1) / 2
        for i, ((model, curve), hue) in enumerate(zip(panel["series"].items(), hues, strict=True)):
            ax.plot(curve["x"], np.array(curve["line"], dtype=float), color=hue, linewidth=1)
            ax.plot(0, curve["limit"], color=hue, clip_on=False, **star)
            marker_style = {"color": hue, "marker": "os^"[i], "markerfacecolor": "white"}
            x, (mean, stderr) = (
                plotting.nudged(abscissae, i - middle),
                np.transpose(curve["points"]),
            )
            plotting.draw_points(ax, x, mean, stderr, label=LADDER_MODELS[model], **marker_style)
        ax.set_title(panel["title"])
        ax.set_xticks([0, *(1 / np.array(sizes))], ["0", *(f"1/{d}" for d in sizes)], rotation=45)
        ax.set_xlabel("$1/d$")
    size_axes[0].set_ylabel(plotting.ERROR_LABELS["test_error"])
    size_axes[-1].plot([], [], color="0.3", linewidth=1, label=data["line"])
    size_axes[-1].plot([], [], color="0.3", label=r"limit of the theory, $d\to\infty$", **star)
    size_figure.suptitle(data["title"], fontsize="small")
    plotting.letter_panels(size_axes)
    handles, _ = size_axes[-1].get_legend_handles_labels()
    legend_below(size_figure, handles, ncols=3)
    return size_figure


draw_ladder = draw_approach  # of values in the same form

"""Networks on the way to their limit: test errors against 1/d, in theory and simulated.

Four settings whose networks are far from the limit at ordinary sizes, and not all to one side of
it.  docs/theory.md 23
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GaussianMixture, GradientStep, learning_curve, plotting
from replica.documents import plain

from ..run import simulate
from .computing import Progress

CORRELATED = GaussianMixture(means=np.zeros((1, 2)), covariances=[[[1, 0.8], [0.8, 1]]])
MIXTURE = GaussianMixture(
    means=[[1, 0.5], [-1.5, 0.5]],
    covariances=[[[2, 0.7], [0.7, 1]], [[0.5, 0], [0, 3]]],
    fractions=[0.3, 0.7],
)
# Of each panel: the title, the step, then beta, alpha and lam.
SETTINGS: dict[str, tuple[str, dict[str, Any], tuple[float, float, float]]] = {
    "steps": (
        "gelu, $z_1z_2$, two steps",
        dict(student="gelu", target="z1*z2", inputs=CORRELATED, steps=[(2, 1), (2, 1)]),
        (1, 2, 0.1),
    ),
    "mixture": (
        "cos, $z_1+z_2^2/2$ on a mixture",
        dict(
            student="cos", target="z1 + z2**2/2", inputs=MIXTURE, alpha0=2, eta=2, noise=0.2
        ),
        (1.5, 2, 0.05),
    ),
    "even": ("abs, $He_2$", dict(student="abs", target="he2", alpha0=2, eta=1), (1, 2, 0.1)),
    "few": (
        r"relu, sin, $\alpha_0=0.1$, $\tilde\eta=10$",
        dict(student="relu", target="sin", alpha0=0.1, eta=10),
        (1, 2, 1.0),
    ),
}  # fmt: skip
SIZES, DRAWS = (200, 350, 600, 1000), (80, 40, 20, 12)


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Theory at every dimension and in the limit, and simulated means with standard errors."""
    sizes, draws = ((100, 200), (4, 4)) if quick else (SIZES, DRAWS)
    dimensions = np.geomspace(200, 14_000, 4 if quick else 24)
    panels, done = {}, 0
    for name, (_, options, (beta, alpha, lam)) in SETTINGS.items():
        step = GradientStep(**options)
        at: dict[str, Any] = {"alpha": alpha, "lam": lam}
        theory = learning_curve(step.network(beta=beta), **at, dimension=[*dimensions, np.inf])
        found = []
        for d, seeds in zip(sizes, draws, strict=True):
            how: dict[str, Any] = {"seeds": seeds, "rng": 0, "store": store}
            found.append(simulate(step, **at, beta=beta, dimension=d, **how))
            done += 1
            if progress is not None:
                progress(done, len(SETTINGS) * len(sizes))
        panels[name] = {
            "theory": theory.test_error.values,
            "mean": [one.test_error.item() for one in found],
            "stderr": [one.test_error_stderr.item() for one in found],
            "beta": beta,
            **at,
        }
    shared = {"dimensions": dimensions, "sizes": sizes, "draws": draws}
    return dict(plain({**shared, "panels": panels}))


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each setting: a line of the theory, a star at its limit, and points."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, len(data["panels"]), squeeze=False)[0]
    theory, simulated = plotting.colours(["network", "simulation"])
    x = 1 / np.array(data["sizes"])
    for (name, one), ax in zip(data["panels"].items(), axes, strict=True):
        errors = np.array([np.nan if e is None else e for e in one["theory"]])
        ax.plot(1 / np.array(data["dimensions"]), errors[:-1], color=theory, label="theory at $d$")
        star: dict[str, Any] = {"marker": "*", "markersize": 11, "linestyle": "none"}
        ax.plot(0, errors[-1], color=theory, label=r"limit, $d\to\infty$", clip_on=False, **star)
        bars = np.array(one["mean"]), np.array(one["stderr"])
        label = f"networks, ±{plotting.BARS} s.e."
        plotting.draw_points(ax, x, *bars, label=label, color=simulated)
        ax.set_xticks([0, *x], [r"0", *(f"1/{d}" for d in data["sizes"])])
        ax.tick_params(axis="x", labelrotation=45)
        ax.set_xlabel("$1/d$")
        setting = ", ".join(plotting.settings({k: one[k] for k in ("beta", "alpha", "lam")}))
        ax.set_title(f"{SETTINGS[name][0]}\n{setting}", fontsize="small")
    plotting.letter_panels(axes)
    axes[0].set_ylabel(plotting.ERROR_LABELS["test_error"])
    plotting.add_legend(axes[0])
    return figure

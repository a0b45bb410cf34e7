"""Figures 1, 3 and 7 of [C]: learned functions, and bounds at each learning rate.

tanh network of width p = d, sin target, one step on 20 d samples.

1: the mean output given the projection on the target before the step, and on the spike after it,
   with the standard deviation over the other directions: C and its variance of (4.7).
3: bounds on the test error (8.1)-(8.2) against the rate, in the limit; and the error between
   them at the sRF's best penalty, for two sizes of the readout's data, at the simulated d.
7: the functions of that projection which attain the bounds, beside what networks learn at a large
   penalty; and those of the upper bound as the rate varies.

Settings that are open in the text: alpha and lam of 1, both alpha of 3, the rates of 7.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica import GradientStep, SpikedRandomFeatures, plotting, solve
from replica.documents import plain
from replica.problem import Problem, describe
from solvers.results import Array

from ..measure import measured_function
from ..run import standard_error
from .computing import Progress, model_of, simulated, stored, tracked
from .drawing import draw_theories, panels_with_differences, theory_legend

SETTING: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20}
STEP = GradientStep(eta=3.0, **SETTING)  # of the functions and of what is learned
# Random features and their projection on the target; the network and that on its spike.
LEARNED: dict[str, Problem] = {
    "before the step": SpikedRandomFeatures(student="tanh", target="sin", r=0.0, c=1.0, gamma=1.0),
    "after one step": STEP,
}
READOUT: dict[str, Any] = {"alpha": 1.0, "lam": 0.1}
LARGE_PENALTY: dict[str, Any] = {"alpha": 4.0, "lam": 10.0}  # where the upper bound is near
ACHIEVED_ALPHAS = (1.0, 10.0)  # where the best error is shown
FAMILY_ETAS = (0.3, 1.0, 3.0, 10.0, 30.0)
PLACES = np.linspace(-2.5, 2.5, 11)


def data(
    panel: str, quick: bool, progress: Progress = None, *, store: Path | None = None
) -> dict[str, Any]:
    """Plain values of figure ``panel``, with simulations kept in ``store``."""
    size = {"dimension": 150, "seeds": 3} if quick else {"dimension": 500, "seeds": 6}
    if panel == "3":
        found = bounds_values(quick, size, progress, store)
    else:
        found = learned_values(panel, size, progress, store)
    return dict(plain({"panel": panel, **size, **found}))


def learned_values(
    panel: str, size: dict[str, int], progress: Progress, store: Path | None
) -> dict[str, Any]:
    """Mean outputs of simulated networks at PLACES and their standard deviations over inputs, with
    the theory's."""
    problems, fit = ([STEP], LARGE_PENALTY) if panel == "7" else ([*LEARNED.values()], READOUT)
    learners = []
    for problem in tracked(problems, progress):
        mean, stderr, spread = measured(problem, fit, size, store)
        learned = replica.learned_function(srf_of(problem), **fit)
        theory = {"theory": learned.mean(PLACES), "theory_spread": learned.variance(PLACES) ** 0.5}
        learners.append({"mean": mean, "stderr": stderr, "spread": spread, **theory, **fit})
    return {"kappa": PLACES, "learners": learners}


def measured(
    problem: Problem, fit: dict[str, float], size: dict[str, int], store: Path | None
) -> Array:
    """Mean output of simulated networks at PLACES, its standard error, and the standard deviation
    over inputs: (3, 11)."""
    beta = 1.0 if problem.schedule else None
    options: dict[str, Any] = {**fit, **size}
    cell = {"learned": describe(problem), **options, "kappa": PLACES}

    def compute() -> Array:
        drawn = measured_function(problem, kappa=PLACES, rng=0, beta=beta, **options)
        spread = np.sqrt(drawn.variance.mean(axis=0))
        return np.array([drawn.mean.mean(axis=0), standard_error(drawn.mean), spread])

    return stored(store, cell, compute, (3, PLACES.size))


def srf_of(problem: Any) -> Any:
    """The sRF of a step of width p = d; one that is given, itself."""
    return problem.srf(beta=1.0) if isinstance(problem, GradientStep) else problem


def bounds_values(
    quick: bool, size: dict[str, int], progress: Progress, store: Path | None
) -> dict[str, Any]:
    """Bounds and best errors over the rate, and simulated networks at a few."""
    few = np.array([1.0, 10.0] if quick else [0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    rates = np.union1d(np.geomspace(0.3, 30, 7 if quick else 61), few)
    bounds: list[dict[str, float]] = []
    lists = ("theory", "srf", "limit", "simulated")
    curves: list[dict[str, Any]] = [
        {"alpha": alpha} | {name: [] for name in lists} for alpha in ACHIEVED_ALPHAS
    ]
    for rate in tracked(rates.tolist(), progress):
        step = GradientStep(eta=rate, **SETTING)
        found = replica.bounds(step)
        bounds.append({"eta": rate, "lower": found.lower, "upper": found.upper})
        srf, network, limit = (
            model_of(kind, step, dimension=size["dimension"]) for kind in ("srf", "theory", "limit")
        )
        for curve in curves:
            best, best_in_limit = (
                replica.optimal_lambda(model, alpha=curve["alpha"]) for model in (srf, limit)
            )
            curve["srf"].append(best.test_error)
            curve["limit"].append(best_in_limit.test_error)
            fit: dict[str, Any] = {"alpha": curve["alpha"], "lam": best.lam}
            curve["theory"].append(solve(network, **fit).test_error)
            if rate in few:
                curve["simulated"] += list(simulated(step, beta=1.0, store=store, **fit | size))
    shared = {"x": rates, "simulated_at": few, "bounds": bounds}
    return shared | {"linear": found.linear, "curves": curves}


def draw(data: dict[str, Any]) -> Figure:
    """The picture of one of the three figures."""
    return {"1": draw_learned, "3": draw_bounds, "7": draw_functions}[data["panel"]](data)


def draw_learned(data: dict[str, Any]) -> Figure:
    """A panel before the step and one after it."""
    picture = Figure(figsize=(10, 4), layout="constrained")
    panels = picture.subplots(1, len(LEARNED), sharey=True)
    label = f"networks, $d = {data['dimension']}$, ± one s.d."
    for ax, (name, problem), values in zip(panels, LEARNED.items(), data["learners"], strict=True):
        plotting.plot_learned(replica.learned_function(srf_of(problem), **READOUT), ax)
        # bars of one standard deviation, which is what the band is
        bars = np.array(values["spread"]) / plotting.BARS
        plotting.draw_points(
            ax, data["kappa"], values["mean"], bars, color=plotting.COLOURS[1], label=label
        )
        plotting.add_legend(ax)
        stated = {"student": "tanh", "target": "sin"}
        stated |= SETTING | {"eta": STEP.eta} if problem is STEP else {}
        ax.set_title(", ".join([name, *plotting.settings(stated | READOUT | {"beta": 1.0})]))
    panels[0].set_xlabel(r"projection on the target $\kappa = w_\ast\cdot x$")
    panels[1].set_ylabel("")
    plotting.letter_panels(panels)
    return picture


def draw_bounds(data: dict[str, Any]) -> Figure:
    """Draw bounds and the errors between them; below, relative differences of the errors."""
    picture = Figure(figsize=(7, 5.6), layout="constrained")
    axes = panels_with_differences(picture, 1)
    (ax,), (below,) = axes
    plotting.plot_bounds(data["bounds"], data["linear"], ax=ax)
    for line in ax.get_lines()[:2]:  # U and L; curves are at d, and may lie above U there
        line.set_label(rf"{line.get_label()} ($d\to\infty$)")
    for curve, color in zip(data["curves"], plotting.colours(ACHIEVED_ALPHAS), strict=True):
        label = rf"best $\lambda$, {plotting.setting('alpha', curve['alpha'])}"
        draw_theories(axes[:, 0], data, curve, color=color, label=label)
    theory_legend(axes, data["dimension"], ("theory", "srf", "limit"), "the network at this $d$")
    ax.set(xlabel="", ylabel=plotting.ERROR_LABELS["test_error"])
    below.set_xlabel(plotting.LABELS["eta"])
    ax.set_title(", ".join(plotting.settings(SETTING | {"beta": 1.0})), fontsize="medium")
    return picture


def draw_functions(data: dict[str, Any]) -> Figure:
    """The functions that attain the bounds, and those within reach as the rate varies."""
    picture = Figure(figsize=(10, 4), layout="constrained")
    first, second = picture.subplots(1, 2, sharey=True)
    plotting.plot_functions(replica.bounds(STEP), first, reach=2.6)
    (values,) = data["learners"]
    fit = ", ".join(plotting.settings(LARGE_PENALTY | {"dimension": data["dimension"]}))
    label = f"networks (±{plotting.BARS} s.e.),\n{fit}"
    points = (data["kappa"], values["mean"], values["stderr"])
    plotting.draw_points(first, *points, color=plotting.COLOURS[1], label=label)
    shown = SETTING | {"eta": 3.0, "beta": 1.0}
    first.set_title(", ".join(plotting.settings(shown)))
    family: Sequence[Any] = replica.bounds(STEP, eta=FAMILY_ETAS).each
    plotting.plot_family(family, np.array(FAMILY_ETAS), second, reach=2.6)
    second.set_title(r"upper bound, $\lambda\to\infty$, as $\tilde\eta$ varies")
    second.set_ylabel("")
    plotting.add_legend(first)  # makes room above what both panels show, if it needs any
    plotting.letter_panels([first, second])
    return picture

"""What variability of the first-step readout buys: one learning curve for each law.

A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
with several readout values has several functions mu_0(r kappa) to combine along the spike:
with equal readout it has one.  tanh student, one giant step, an easy and a hard target.
Combinations of nearly dependent functions have large overlaps m, which cost m^2 / p: the
theory is drawn at the dimension simulated, and in the limit.  The last panel shows how few
groups stand for the Gaussian law.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, solve
from replica.documents import plain
from replica.observables import sweep
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, add_legend, letter_panels
from replica.problem import law
from replica.steps import GROUPS

from ..run import simulate
from .drawing import add_legend_entry, draw_curve, panels_with_differences

PROBLEM: dict[str, Any] = {"student": "tanh", "alpha0": 10, "eta": 3.0}
TARGETS = {
    "sin": r"easy: $\sigma_\star = \sin$",
    "he1+he3/2": r"hard: $\sigma_\star = He_1 + He_3/2$",
}
LAWS: dict[str, tuple[Any, str]] = {
    "1": (1.0, r"equal, $\tilde a = 1$"),
    "+-1": ("rademacher", r"$\tilde a = \pm 1$"),
    "four": ([-1.5, -0.5, 0.5, 1.5], r"$\tilde a = \pm\frac{1}{2}, \pm\frac{3}{2}$"),
    "gaussian": ("gaussian", r"$\tilde a \sim N(0, 1)$"),
}
PENALTY = 0.1


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Theory over alpha for every law and target, at d and in the limit, and simulated sRFs."""
    alpha = np.linspace(0.1, 4, 12 if quick else 60)
    few = np.array([0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0])
    dimension, seeds = (120, 2) if quick else (600, 8)
    curves = []
    for target in TARGETS:
        for kind, (readout, _) in LAWS.items():
            limit = GradientStep(target=target, readout=readout, **PROBLEM).srf(beta=1.0)
            curve: dict[str, Any] = {"target": target, "law": kind, "alpha": alpha}
            for name, model in (
                ("limit", limit),
                ("theory", replace(limit, dimension=dimension)),
            ):
                grid = sweep(model, alpha=alpha, lam=PENALTY, grids={})
                curve[name] = grid.columns["test_error"]
            if kind != "+-1":  # the same problem as equal, for an odd student
                simulation = simulate(
                    limit, alpha=few, lam=PENALTY, dimension=dimension, seeds=seeds, rng=0
                )
                curve |= {"simulated_alpha": few, "simulated": simulation.test_mean[:, 0]}
                curve |= {"stderr": simulation.test_stderr[:, 0]}
            curves.append(curve)
            if progress is not None:
                progress(len(curves), len(TARGETS) * len(LAWS))
    counts = (4, 8, 16) if quick else (4, 8, 12, 16, 20, 24, 28, 32)
    groups = [convergence(target, counts, dimension) for target in TARGETS]
    shared = {
        "groups": groups,
        "step": PROBLEM,
        "lam": PENALTY,
        "dimension": dimension,
        "seeds": seeds,
    }
    return dict(plain({**shared, "curves": curves}))


def convergence(target: str, counts: Sequence[int], dimension: int) -> dict[str, Any]:
    """How far the test error with each of ``counts`` groups for the Gaussian law is, relative,
    from that with the largest of GROUPS: at ``dimension`` and, for the easy target, in the limit.
    """

    def error(count: int, size: float) -> float:
        """Test error with ``count`` groups at the dimension ``size``."""
        values, shares = law("readout", "gaussian").discretise(count)
        step = GradientStep(target=target, readout=(values.tolist(), shares.tolist()), **PROBLEM)
        model = replace(step.srf(beta=1.0), dimension=size)
        return solve(model, alpha=2.0, lam=PENALTY).test_error

    changes: dict[str, Any] = {"target": target, "counts": counts}
    sizes = {"theory": float(dimension)}
    if target == "sin":  # the hard target's limit needs groups too dependent to be resolved
        sizes["limit"] = np.inf
    for name, size in sizes.items():
        finest = error(GROUPS[-1], size)
        changes[name] = [abs(error(count, size) / finest - 1) for count in counts]
    return changes


def draw(data: dict[str, Any]) -> Figure:
    """A panel for each target: theory as lines, simulated spiked random features as points, and
    below what they are off by; and a panel for the number of groups."""
    picture = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = picture.subfigures(1, 2, squeeze=False, width_ratios=(len(TARGETS), 1))[0]
    axes = panels_with_differences(left, len(TARGETS))
    columns = dict(zip(TARGETS, axes.T, strict=True))
    shades = dict(zip(LAWS, COLOURS, strict=False))
    for curve in data["curves"]:
        column, kind = columns[curve["target"]], curve["law"]
        shown: dict[str, Any] = {"color": shades[kind], "label": LAWS[kind][1]}
        if kind == "+-1":
            style = {"linestyle": (0, (4, 4)), "zorder": 3}
            column[0].plot(curve["alpha"], curve["theory"], **shown, **style)
            continue
        keys = ("alpha", "theory", "simulated_alpha", "simulated", "stderr")
        places = list(LAWS).index(kind) - 1.5
        draw_curve(column, *(curve[key] for key in keys), **shown, places=places)
        column[0].plot(curve["alpha"], curve["limit"], ":", color=shades[kind], linewidth=1)
    for target, (ax, below) in columns.items():
        ax.set_title(TARGETS[target], fontsize="medium")
        below.set_xlabel(LABELS["alpha"])
    easy, hard = axes[0]
    easy.set_ylabel(ERROR_LABELS["test_error"])
    d = data["dimension"]
    kinds = [
        hard.plot([], [], color="0.3", label=rf"theory at $d = {d}$")[0],
        hard.plot([], [], ":", color="0.3", linewidth=1, label=r"theory, $d \to \infty$")[0],
        add_legend_entry(hard, d),
    ]
    for ax in (easy, hard):
        ax.set_ylim(bottom=0)
    add_legend(easy)
    add_legend(hard, handles=kinds)
    last = right.subplots()
    for groups, colour in zip(data["groups"], COLOURS[4:], strict=False):
        easiness = TARGETS[groups["target"]].split(":")[0]
        x = groups["counts"]
        last.semilogy(x, groups["theory"], "o-", color=colour, label=rf"{easiness}, $d = {d}$")
        label = rf"{easiness}, $d \to \infty$"
        if "limit" in groups:
            last.semilogy(x, groups["limit"], "s:", color=colour, markersize=4, label=label)
    last.set_title(r"groups for $\tilde a \sim N(0, 1)$, $\alpha = 2$", fontsize="medium")
    last.set_xlabel("number of groups")
    last.set_ylabel(rf"relative change of $\epsilon_g$ at {GROUPS[-1]} groups")
    add_legend(last)
    letter_panels([easy, hard, last])
    return picture

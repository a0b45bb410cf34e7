"""Figure of both layers trained on the same samples: its cost, and the uses of a number of samples.

The first figure has errors against alpha = alpha0 of a readout on the samples of its step, and on
as many fresh ones; the second the smallest test error of each use of N samples, at its own best
penalty.  Lines: theory; points: the network itself.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, learning_curve, plotting, sample_allocation
from replica.documents import plain

from ..run import simulate
from . import Run, Values
from .panels import add_legend_entry, legend_below

STEPS: list[dict[str, Any]] = [
    {"student": "tanh", "target": "sin", "eta": 1.0, "noise": 0.0},
    {"student": "relu", "target": "relu", "eta": 1.0, "noise": 0.3},
    {"student": "softplus", "target": "he1+he2/2", "eta": 1.0, "noise": 0.0},
]
PENALTY = 0.1
READOUTS = {"the samples of the step": 1.0, "fresh samples": 0.0}  # the share reused
BOTH_ERRORS = ("test_error", "train_error")
USES = ("all for both", "part for the readout", "part for the step", "split")
USE_TITLES = ("all for both", "half for the readout, all for the step",
          "half for the step, all for the readout", "the best split")  # fmt: skip


def data(name: str, run: Run) -> Values:
    """Theory and simulated networks of one of the two figures, a panel for each of its steps."""
    dimension, seeds = (80, 3) if run.quick else (1000, 16)
    size: dict[str, Any] = {"dimension": dimension, "seeds": seeds, "rng": 0, "workers": 1}
    size |= {"test_samples": 4 * dimension, "store": run.store}  # test inputs over dimension
    make, steps = (_reuse, STEPS) if name == "reuse" else (_budget, STEPS[: 1 if run.quick else 2])
    panels = [make(of, run.quick, size) for of in run.tracked(steps)]
    return dict(plain({"name": name, "dimension": dimension, "seeds": seeds, "panels": panels}))


def _reuse(of: dict[str, Any], quick: bool, size: dict[str, Any]) -> dict[str, Any]:
    """Errors of one step over alpha = alpha0, on both kinds of samples."""
    x = np.geomspace(0.5, 8, 3 if quick else 13)
    at = x[:: 2 if quick else 3]
    curves = []
    for reuse in READOUTS.values():
        step = GradientStep(**of, alpha0="alpha")
        model = step.network(beta=1.0, reuse=reuse)  # in the limit, both alike
        how: dict[str, Any] = {"quadrature_tol": 1e-3} if reuse else {}  # a line is wider
        theory = learning_curve(model, alpha=x, lam=PENALTY, time_limit=60, **how)
        found = [simulate(model, alpha=a, lam=PENALTY, **size) for a in at]
        curves.append(
            {error: theory[error].values for error in BOTH_ERRORS}
            | {f"{error}_simulated": [_mean(one, error) for one in found] for error in BOTH_ERRORS}
        )
    return {"step": of, "x": x, "simulated_at": at, "curves": curves}


def _budget(of: dict[str, Any], quick: bool, size: dict[str, Any]) -> dict[str, Any]:
    """Test errors of the best of every use of N samples."""
    x = np.array([1.0, 4.0]) if quick else np.geomspace(0.5, 8, 7)
    some = slice(None, None, 1 if quick else 2)
    step, curves = GradientStep(**of, alpha0=1.0), []
    each = [sample_allocation(step, budget=budget).plans for budget in x]
    for use in USES:
        plans = [next(plan for plan in plans if plan.use == use) for plans in each]
        found = []
        for plan in plans[some]:
            own = replace(step, alpha0=plan.alpha0).network(beta=1.0, reuse=plan.reuse)
            one = simulate(own, alpha=plan.alpha, lam=plan.lam, **size)
            found.append(_mean(one, "test_error"))
        curves.append(
            {"test_error": [plan.test_error for plan in plans], "test_error_simulated": found,
             "plans": [[plan.alpha0, plan.alpha, plan.lam] for plan in plans]}
        )  # fmt: skip
    return {"step": of, "x": x, "simulated_at": x[some], "curves": curves}


def _mean(found: Any, error: str) -> list[float]:
    """The mean of an error and its standard error."""
    return [getattr(found, name).item() for name in (error, f"{error}_stderr")]


def draw(data: dict[str, Any]) -> Figure:
    """A column for each step; rows of test errors and, of reuse, of training errors."""
    reuse = data["name"] == "reuse"
    errors, labels = (BOTH_ERRORS, list(READOUTS)) if reuse else (BOTH_ERRORS[:1], list(USE_TITLES))
    columns = len(data["panels"])
    abscissa = r"$\alpha = \alpha_0 = n/d$" if reuse else r"samples per dimension $N/d$"
    figure = Figure(
        figsize=(max(3.4 * columns + 0.8, 8.0), 2.6 * len(errors) + 1.6), layout="constrained"
    )
    axes = figure.subplots(len(errors), columns, sharex=True, squeeze=False)
    handles = []
    for column, panel in enumerate(data["panels"]):
        for row, error in enumerate(errors):
            ax = axes[row, column]
            for i, curve in enumerate(panel["curves"]):
                style: dict[str, Any] = {"color": plotting.COLOURS[i]}
                line = ax.plot(panel["x"], curve[error], ["-", "--", "-.", ":"][i], **style)
                mean, stderr = np.array(curve[f"{error}_simulated"]).T
                style["marker"] = "os^D"[i]
                places = i - (len(labels) - 1) / 2
                at = plotting.nudged(np.array(panel["simulated_at"]), places, len(labels))
                plotting.draw_points(ax, at, mean, stderr, markerfacecolor="white", **style)
                if not (row or column):
                    line[0].set_label(f"theory, {labels[i]}" if reuse else labels[i])
                    handles += line
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_ylim(bottom=0)
        axes[0, column].set_title(", ".join(plotting.settings(panel["step"])), fontsize="small")
        axes[-1, column].set_xlabel(abscissa)
    for row, error in enumerate(errors):
        axes[row, 0].set_ylabel(plotting.ERROR_LABELS[error])
    of = data["dimension"], data["seeds"]
    handles.append(add_legend_entry(axes[0, 0], *of, markerfacecolor="white"))
    legend_below(figure, handles, ncols=len(handles) if columns > 2 else 2)
    shared = {"beta": 1.0} | ({"lam": PENALTY} if reuse else {})
    best = "" if reuse else r", $\lambda$ the best of each"
    figure.suptitle(", ".join(plotting.settings(shared)) + best, fontsize="small")
    plotting.letter_panels(axes.ravel())
    return figure

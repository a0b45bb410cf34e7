"""The network itself beside the sRF: errors against the learning rate of the step.

Left and middle: few samples in the step, so much noise in the gradient.  The noise has a row
covariance, which the sRF replaces by isotropic rows of the same variance.  Right: many samples
and little noise, but a linear target, which a student that saturates fits worse the more it
does: there the fluctuation of the row norms is what counts.  docs/theory.md 15

The theory is drawn at the dimension simulated, which matters for the shortest spikes alone:
they need a large overlap m, which costs m^2 / p.  In the limit any spike is better than none.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import BARS, LABELS
from replica.problem import SpikedRandomFeatures

from ..run import simulate
from .drawing import draw_points

# Of each case: the step, the fit of its readout, the width, and the size of its simulation.
CASES: dict[str, dict[str, Any]] = {
    "covariance": {
        "step": {"student": "tanh", "target": "sin", "alpha0": 0.3},
        "fit": {"alpha": 2.0, "lam": 0.01},
        "beta": 1.0,
        "dimension": 1000,
    },
    "norms": {
        "step": {"student": "erf", "target": "he1", "alpha0": 20.0},
        "fit": {"alpha": 3.0, "lam": 0.03},
        "beta": 2.0,
        "dimension": 600,
    },
}
LARGEST_ETA = 8.0
SIMULATED_ETAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
LINES: dict[str, dict[str, Any]] = {
    "srf": {"label": "sRF", "color": "0.3", "linewidth": 0.9},
    "network": {"label": "network", "color": "C0", "linewidth": 2.4},
    "equal": {"label": "network, equal row norms", "color": "C1", "linestyle": (0, (4, 3))},
}
SHOWN_ERRORS = {
    ("covariance", "test"): r"test error $\epsilon_g$",
    ("covariance", "train"): r"training error $\epsilon_t$",
    ("norms", "test"): r"test error $\epsilon_g$",
}


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Errors of every theory over a dense eta, and of simulated networks at a few."""
    eta = LARGEST_ETA * np.linspace(0, 1, 9 if quick else 81) ** 2  # close where the spike begins
    few, seeds = (SIMULATED_ETAS[1::4], 2) if quick else (SIMULATED_ETAS, 10)
    results = {}
    for i, (name, case) in enumerate(CASES.items()):
        dimension = 100 if quick else case["dimension"]
        theory = [theories(case | {"dimension": dimension}, rate) for rate in eta]
        simulated = []
        for j, rate in enumerate(few):
            step = GradientStep(eta=rate, **case["step"])
            size = {"dimension": dimension, "seeds": seeds, "rng": j, "beta": case["beta"]}
            columns = simulate(step, **case["fit"], **size).columns()
            simulated.append({key: values.item() for key, values in columns.items()})
            if progress is not None:
                progress(i * len(few) + j + 1, len(CASES) * len(few))
        results[name] = {
            **case,
            "dimension": dimension,
            "seeds": seeds,
            "eta": eta,
            "theory": {
                kind: {error: [at[kind][error] for at in theory] for error in ("test", "train")}
                for kind in LINES
            },
            "simulated_eta": few,
            "simulated": simulated,
        }
    return dict(plain(results))


def theories(case: dict[str, Any], eta: float) -> dict[str, dict[str, float]]:
    """Test and training error of each of LINES at the simulated dimension."""
    step = GradientStep(eta=eta, **case["step"])
    network = replace(step.network(beta=case["beta"]), dimension=case["dimension"])
    models: dict[str, SpikedRandomFeatures] = {
        "srf": replace(network.srf, dimension=case["dimension"]),
        "network": network,
        "equal": replace(
            step.network(beta=case["beta"], row_norms=False), dimension=case["dimension"]
        ),
    }
    points = {kind: solve(model, **case["fit"]) for kind, model in models.items()}
    return {
        kind: {"test": point.test_error, "train": point.train_error}
        for kind, point in points.items()
    }


def draw(data: dict[str, Any]) -> Figure:
    """Theories as lines, simulated networks as points: test and training error of the first
    case, test error of the second."""
    picture = Figure(figsize=(11, 3.7), layout="constrained")
    for ax, (name, error) in zip(picture.subplots(1, len(SHOWN_ERRORS)), SHOWN_ERRORS, strict=True):
        case = data[name]
        for kind, style in LINES.items():
            ax.plot(case["eta"], case["theory"][kind][error], **style)
        mean, stderr = (
            np.array([point[f"{column}_{error}"] for point in case["simulated"]])
            for column in ("simulated", "stderr")
        )
        style = {"color": "C0", "markerfacecolor": "white", "markersize": 5, "zorder": 3}
        label = f"simulated (±{BARS} s.e.)"
        draw_points(ax, case["simulated_eta"], mean, stderr, label=label, **style)
        ax.set_title(_title(case["step"], case["dimension"]), fontsize="medium")
        ax.set_xlabel(LABELS["eta"])
        ax.set_ylabel(SHOWN_ERRORS[name, error])
        ax.set_ylim(bottom=0)
    picture.axes[0].legend(frameon=False, fontsize="small", loc="lower right")
    return picture


def _title(step: dict[str, Any], dimension: int) -> str:
    """Student, target, alpha0 and d of a panel."""
    target = {"he1": "He_1", "sin": r"\mathrm{sin}"}[step["target"]]
    return (
        rf"{step['student']}, $\sigma_\star = {target}$, $\alpha_0 = {step['alpha0']:g}$, "
        rf"$d = {dimension}$"
    )

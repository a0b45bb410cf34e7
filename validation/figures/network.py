"""The network itself beside the sRF: errors against the learning rate of the step.

Left and middle: few samples in the step, so much noise in the gradient.  The noise has a row
covariance, which the sRF replaces by isotropic rows of the same variance.  Right: many samples
and little noise, but a linear target, which a student that saturates fits worse the more it
does: there the fluctuation of the row norms is what counts.  docs/theory.md 15

The theory is drawn at the dimension simulated, which matters for the shortest spikes alone:
they need a large overlap m, which costs m^2 / p.  In the limit any spike is better than none.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, solve
from replica.documents import plain
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, settings

from ..run import simulate
from .computing import Progress, model_of
from .drawing import draw_theories, panels_with_differences, theory_legend

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
KINDS = ("theory", "equal", "srf")  # of THEORIES
LARGEST_ETA = 8.0
SIMULATED_ETAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
SHOWN_ERRORS = {
    ("covariance", "test"): ERROR_LABELS["test_error"],
    ("covariance", "train"): ERROR_LABELS["train_error"],
    ("norms", "test"): ERROR_LABELS["test_error"],
}


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
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
            size: dict[str, Any] = {"dimension": dimension, "seeds": seeds, "rng": j}
            found = simulate(step, beta=case["beta"], store=store, **case["fit"], **size)
            columns = found.columns()
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
                for kind in KINDS
            },
            "simulated_eta": few,
            "simulated": simulated,
        }
    return dict(plain(results))


def theories(case: dict[str, Any], eta: float) -> dict[str, dict[str, float]]:
    """Test and training error of each of KINDS at the simulated dimension."""
    step = GradientStep(eta=eta, **case["step"])
    errors = {}
    for kind in KINDS:
        point = solve(model_of(kind, step, case["beta"], case["dimension"]), **case["fit"])
        errors[kind] = {"test": point.test_error, "train": point.train_error}
    return errors


def draw(data: dict[str, Any]) -> Figure:
    """Theories as lines, simulated networks as points: test and training error of the first
    case, test error of the second; below, what they are off by from the network's theory."""
    picture = Figure(figsize=(11, 4.8), layout="constrained")
    axes = panels_with_differences(picture, len(SHOWN_ERRORS))
    for column, (name, error) in zip(axes.T, SHOWN_ERRORS, strict=True):
        case = data[name]
        curve: dict[str, Any] = {kind: case["theory"][kind][error] for kind in KINDS}
        columns = (f"simulated_{error}", f"stderr_{error}")
        curve["simulated"] = [[point[key] for key in columns] for point in case["simulated"]]
        over = {"x": case["eta"], "simulated_at": case["simulated_eta"]}
        draw_theories(column, over, curve, color=COLOURS[0])
        column[0].set_title(_title(case), fontsize="small")
        column[0].set_ylabel(SHOWN_ERRORS[name, error])
        column[1].set_xlabel(LABELS["eta"])
    theory_legend(axes, None, KINDS, "the network at this $d$")
    return picture


def _title(case: dict[str, Any]) -> str:
    """The step and d of a panel, and below the fit of its readout."""
    step = case["step"] | {"dimension": case["dimension"]}
    fit = case["fit"] | {"beta": case["beta"]}
    return "\n".join(", ".join(settings(line)) for line in (step, fit))

"""Steps and readouts on structured inputs, beside simulation: sRF and network, docs/theory.md 19.

Settings are those of ``SETTINGS``, drawn once and then written down; each is simulated at two
dimensions.  Finished cells stay in the store, so a run that was stopped goes on.  Writes
STRUCTURED.md beside this file.

    python -m benchmarks.structured_inputs --store results/structured
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Option

import replica
from validation import simulate

from .given_layers import COMPARED
from .pages import mean_and_error, paragraphs, shares, table

PAGE = Path(__file__).with_name("STRUCTURED.md")
SIZES = {500: 32, 1000: 32}  # dimension: draws


def mixture(means, covariances=None, fractions=None):
    """A GaussianMixture, of covariances or of their diagonals."""
    if covariances is not None:
        covariances = [c if np.ndim(c) == 2 else np.diag(np.array(c, float)) for c in covariances]
    return replica.GaussianMixture(means=means, covariances=covariances, fractions=fractions)


CLASSES, TWO = "classes:1,-1", [[1.0, 0.5], [-1.0, 0.5]]
ROUND = [[1, 0], [-0.5, 0.8], [-0.5, -0.8]]
TURNED = np.array([[2.5, 1.5], [1.5, 2.5]])

# Of each: what is trained, then beta, alpha, lam and the loss.
SETTINGS = {
    "two classes": (
        dict(student="relu", target=CLASSES, alpha0=1, eta=2, inputs=mixture(TWO)),
        (1.0, 2.0, 0.1, "square"),
    ),
    "three classes": (
        dict(student="softplus", target="classes:1,-1,2", alpha0=2, eta=1, inputs=mixture(ROUND)),
        (0.5, 2.0, 0.05, "square"),
    ),
    "classes that differ in covariance": (
        dict(student="relu", target=CLASSES, alpha0=0.5, eta=3, intercept=True,
             inputs=mixture(np.zeros((2, 2)), [[6, 1], [1, 0.2]], [0.4, 0.6])),
        (1.0, 1.5, 0.1, "square"),
    ),
    "spiked data, target along the spike": (
        dict(student="tanh", target="sin", alpha0=2, eta=1, noise=0.1,
             inputs=mixture([[0.0]], [[8.0]])),
        (1.0, 2.0, 0.05, "square"),
    ),
    "spiked data, target beside it": (
        dict(student="relu", target="tanh(z1 + z2)", alpha0=1, eta=2,
             inputs=mixture(np.zeros((1, 2)), [TURNED])),
        (2.0, 1.0, 0.1, "square"),
    ),
    "product of two directions": (
        dict(student="softplus", target="z1*z2 + z1", alpha0=2, eta=1.5, noise=0.2,
             inputs=mixture([[1, 0], [-1, 0]], [[1, 1], [1, 3]])),
        (1.0, 2.0, 0.2, "square"),
    ),
    "biases and an intercept": (
        dict(student="relu", target="sin(z1) + z2", alpha0=2, eta=1, bias=[-0.5, 0.5],
             intercept=True, inputs=mixture([[0.5, 0], [-0.5, 0]], [[4, 1], [1, 1]])),
        (1.0, 2.0, 0.1, "square"),
    ),
    "two readouts": (
        dict(student="tanh", target="z1 + z2**2/2", alpha0=1, eta=2, readout=[1.5, -0.5],
             inputs=mixture([[1, 1], [-1, 0]], [[1, 2], [2, 1]])),
        (1.0, 2.0, 0.05, "square"),
    ),
    "three readouts": (
        dict(student="softplus", target="tanh(z1 - z2)", alpha0=2, eta=1, readout=[-1, 0.5, 2],
             inputs=mixture(np.zeros((2, 2)), [[5, 1], [1, 5]])),
        (1.0, 1.5, 0.05, "square"),
    ),
    "Gaussian rows": (
        dict(student="relu", target="relu(z1) - z2", alpha0=1, eta=1.5, initialisation="gaussian",
             inputs=mixture([[1, 0], [-0.5, 0.5]], None, [0.3, 0.7])),
        (0.5, 1.5, 0.1, "square"),
    ),
    "logistic loss, two classes": (
        dict(student="tanh", target=CLASSES, alpha0=1, eta=2, inputs=mixture(TWO)),
        (1.0, 2.0, 0.05, "logistic"),
    ),
    "logistic loss, unequal classes": (
        dict(student="relu", target=CLASSES, alpha0=0.5, eta=3,
             inputs=mixture([[1.5, 0], [-0.5, 0]], [[1, 4], [1, 1]], [0.3, 0.7])),
        (1.0, 3.0, 0.1, "logistic"),
    ),
    "Huber's loss": (
        dict(student="softplus", target="sin", alpha0=2, eta=2, label_noise="outliers:0.1:9",
             inputs=mixture([[1.0], [-1.0]], [[2.0], [0.5]])),
        (1.0, 2.0, 0.1, "huber:0.5"),
    ),
    "Huber's loss, spiked data": (
        dict(student="relu", target="relu", alpha0=1, eta=1, noise=0.1,
             inputs=mixture([[0.0]], [[5.0]])),
        (0.5, 2.0, 0.05, "huber:0.5"),
    ),
    "two steps, two classes": (
        dict(student="tanh", target=CLASSES, steps=[(1, 1), (2, 1)], inputs=mixture(TWO)),
        (1.0, 2.0, 0.05, "square"),
    ),
    "two steps, spiked data": (
        dict(student="softplus", target="tanh(z1 + z2)", steps=[(2, 1), (2, 1)],
             inputs=mixture(np.zeros((2, 2)), [[5, 1], [1, 2]])),
        (1.0, 2.0, 0.05, "square"),
    ),
    "transfer from classes": (
        dict(student="relu", target="sin(z1)", step_target=CLASSES, alpha0=1, eta=2,
             inputs=mixture([[1.2], [-1.2]])),
        (1.0, 2.0, 0.1, "square"),
    ),
    "transfer, N(0, I)": (
        dict(student="softplus", target="tanh(z1 + z2)", step_target="z1", alpha0=1, eta=3),
        (1.0, 2.0, 0.05, "square"),
    ),
    "decay, two classes": (
        dict(student="relu", target=CLASSES, alpha0=0.5, eta=3, decay=0.5, inputs=mixture(TWO)),
        (1.0, 2.0, 0.1, "square"),
    ),
    "decay in two steps": (
        dict(student="tanh", target="sin", steps=[(2, 1), (1, 2)], decay=[0.3, 0.6],
             inputs=mixture([[0.0]], [[3.0]])),
        (1.0, 1.0, 0.05, "square"),
    ),
}  # fmt: skip


def compared(name, what, dimension, draws, store):
    """Theory, mean and standard error of the test error (or the classification error) and the
    training error (or the training loss)."""
    of, (beta, alpha, lam, loss) = SETTINGS[name]
    step = replica.GradientStep(**of)
    model = step.network(beta=beta) if what == "network" else step.srf(beta=beta)
    model = replace(model, dimension=dimension)  # the price of m; other 1/d are not in it
    point = replica.solve(model, alpha=alpha, lam=lam, loss=loss)
    seed = list(SETTINGS).index(name)
    simulation = simulate(
        step, beta=beta, alpha=alpha, lam=lam, loss=loss, dimension=dimension, seeds=draws,
        rng=seed, simulated=what, workers=2, store=store,
    )  # fmt: skip
    each = [
        (getattr(point, name), *mean_and_error(simulation.errors[name].ravel()))
        for name in COMPARED[loss]
    ]
    return np.array(each)


def main(
    store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/structured"),
):
    """Compute what the store lacks, and write STRUCTURED.md."""
    rows, every = [], []
    for dimension, draws in SIZES.items():
        for name in SETTINGS:
            for what in ("srf", "network"):
                both = compared(name, what, dimension, draws, store)
                theory, mean, error = both.T
                z = (mean - theory) / error
                every.append((dimension, what, z, error / mean))
                text = [f"{t:.5f}; {m:.5f} ± {e:.5f}" for t, m, e in both]
                row = (name, what, str(dimension), *text, ", ".join(f"{x:+.1f}" for x in z))
                rows.append(row)
                print(" | ".join(row), flush=True)
    heads = ["setting", "theory of", "d", "test error", "training error", "z"]
    summary = []
    for dimension in SIZES:
        for what in ("srf", "network"):
            own = [(z, e) for d, w, z, e in every if (d, w) == (dimension, what)]
            z, e = np.array([z for z, _ in own]), np.array([e for _, e in own])
            summary.append(
                f"- {what}, d = {dimension}: test errors {shares(z[:, 0])}; "
                f"training errors {shares(z[:, 1])}; {e.max():.1%}."
            )
    text = paragraphs(
        "# Structured inputs",
        "Written by `python -m benchmarks.structured_inputs`.",
        "Theory; simulation and its standard error. The theory is taken at that dimension "
        "d, and still off by a few 1/d. Of the logistic loss the errors are the share of "
        "wrong labels and the mean training loss, of Huber's the training error is its mean.",
        "Within 2 standard errors, and the largest |z|; the largest standard error:",
        "\n".join(summary),
        table(heads, rows),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)

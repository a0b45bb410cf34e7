"""Networks at their own dimension, beside simulation and the limit: docs/theory.md 23.

Settings are those of ``SETTINGS``, chosen once and then written down; each is simulated at two
dimensions.  Finished cells stay in the store, so a run that was stopped goes on.  Writes
DIMENSION.md beside this file.

    python -m benchmarks.dimension --store results/dimension
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Option

import replica
from validation import simulate

from .pages import mean_and_error, paragraphs, shares, table

PAGE = Path(__file__).with_name("DIMENSION.md")
SIZES = (300, 1000)  # dimensions
DRAWS, FEW = (200, 24), (80, 12)  # at each
TEST_SAMPLES = 4  # over dimension
ERRORS = ("test_error", "train_error")

FRESH = (
    "Fresh draws of a setting that is flagged at d = 300, relu on he1 + he2/2, wide: the training "
    "error is 2.3 ± 0.9 % above the limit at d = 500 (100 draws) and 0.3 ± 0.6 % at 1000 (72, with "
    "those below), and the test error 0.5 ± 0.6 and 0.0 ± 0.5 %. The theory of the dimension would "
    "be 1.6 % below it in the training error at 500, where it is flagged, and is 0.8 % below it at "
    "1000."
)

CORRELATED = replica.GaussianMixture(means=np.zeros((1, 2)), covariances=[[[1, 0.6], [0.6, 1]]])
MIXTURE = replica.GaussianMixture(
    means=[[1.5, 0], [-0.5, 0.5]], covariances=[np.eye(2), [[0.5, 0.3], [0.3, 2]]],
    fractions=[0.4, 0.6],
)  # fmt: skip
APART = replica.GaussianMixture(means=[[1, 0], [-1, 0]], covariances=[np.eye(2)] * 2)
CROSSED = replica.GaussianMixture(
    means=np.zeros((2, 2)), covariances=[[[1, 0.8], [0.8, 1]], [[1, -0.8], [-0.8, 1]]]
)

# Of each: the step, then beta, alpha, lam, and the draws.
SETTINGS = {
    "tanh, sin": (dict(student="tanh", target="sin", alpha0=3, eta=2), (1, 2, 0.05), DRAWS),
    "erf, he1 + he3/2, noise .1": (
        dict(student="erf", target="he1 + he3/2", alpha0=2, eta=2, noise=0.1), (1, 1, 0.1), DRAWS),
    "sin, tanh, wide, noise .2": (
        dict(student="sin", target="tanh", alpha0=4, eta=1, noise=0.2), (3, 2, 0.1), FEW),
    "tanh, sign, two steps": (
        dict(student="tanh", target="sign", steps=[(1, 1), (1, 1)]), (1, 2, 0.1), DRAWS),
    "tanh, tanh(z1) + z2/2, correlated": (
        dict(student="tanh", target="tanh(z1) + z2/2", inputs=CORRELATED, alpha0=2, eta=1),
        (1, 2, 0.1), DRAWS),
    "abs, he2": (dict(student="abs", target="he2", alpha0=2, eta=1), (1, 2, 0.1), DRAWS),
    "abs, cos, two steps": (
        dict(student="abs", target="cos", steps=[(2, 1), (2, 1)]), (1, 1, 0.1), DRAWS),
    "cos, he2, noise .3": (
        dict(student="cos", target="he2", alpha0=3, eta=2, noise=0.3), (1, 3, 0.05), DRAWS),
    "relu, sin": (dict(student="relu", target="sin", alpha0=3, eta=1), (1, 2, 0.1), DRAWS),
    "relu, relu, three steps": (
        dict(student="relu", target="relu", steps=[(1, 1)] * 3), (1, 2, 0.1), DRAWS),
    "relu, he1 + he2/2, wide": (
        dict(student="relu", target="he1 + he2/2", alpha0=2, eta=2), (3, 1, 0.1), FEW),
    "relu, sin, few samples, noise .3": (
        dict(student="relu", target="sin", alpha0=0.5, eta=1, noise=0.3), (1, 0.5, 0.1), DRAWS),
    "gelu, z1 z2": (dict(student="gelu", target="z1*z2", alpha0=3, eta=2), (1, 2, 0.1), DRAWS),
    "gelu, z1 + z1 z2, correlated, two steps": (
        dict(student="gelu", target="z1 + z1*z2", inputs=CORRELATED, steps=[(2, 1), (2, 1)]),
        (1, 1, 0.1), DRAWS),
    "softplus, he1 + he2/2": (
        dict(student="softplus", target="he1 + he2/2", alpha0=4, eta=1.5), (0.5, 3, 0.05), DRAWS),
    "softplus, tanh(z1) + z2^2/4, mixture": (
        dict(student="softplus", target="tanh(z1) + z2**2/4", inputs=MIXTURE, alpha0=2, eta=1),
        (1, 2, 0.1), DRAWS),
    "relu, sin(z1 + z2), mixture": (
        dict(student="relu", target="sin(z1 + z2)", inputs=MIXTURE, alpha0=2, eta=2),
        (1, 2, 0.1), DRAWS),
    "relu, two classes": (
        dict(student="relu", target="classes:1,-1", inputs=APART, alpha0=2, eta=1),
        (1, 2, 0.1), DRAWS),
    "gelu, two classes of equal means, two steps": (
        dict(student="gelu", target="classes:1,-1", inputs=CROSSED, steps=[(2, 1), (2, 1)]),
        (1, 2, 0.1), DRAWS),
    "erf, two classes": (
        dict(student="erf", target="classes:1,-1", inputs=APART, alpha0=1, eta=2),
        (1, 1, 0.1), DRAWS),
    "relu, sin, two readouts": (
        dict(student="relu", target="sin", alpha0=2, eta=1, readout=[1.5, -0.5]),
        (1, 2, 0.1), DRAWS),
    "gelu, he1 + he2/2, two readouts": (
        dict(student="gelu", target="he1 + he2/2", alpha0=2, eta=2, readout=[-1, 1]),
        (1, 2, 0.1), DRAWS),
    "relu, he1 + he2/2, two biases": (
        dict(student="relu", target="he1 + he2/2", alpha0=2, eta=1, bias=[0.5, -0.5]),
        (1, 2, 0.1), DRAWS),
    "tanh, he1 + he2/2, bias, three steps": (
        dict(student="tanh", target="he1 + he2/2", bias=0.5, steps=[(1, 1)] * 3),
        (1, 2, 0.1), DRAWS),
}  # fmt: skip


def compared(name, size, store):
    """Limit, theory at the dimension, mean and standard error of the test and training errors,
    (2, 4)."""
    of, (beta, alpha, lam), draws = SETTINGS[name]
    step, dimension, at = replica.GradientStep(**of), SIZES[size], {"alpha": alpha, "lam": lam}
    found = simulate(
        step, **at, beta=beta, dimension=dimension, seeds=draws[size],
        rng=list(SETTINGS).index(name), test_samples=TEST_SAMPLES * dimension, workers=1,
        store=store,
    )  # fmt: skip
    points = [
        replica.solve(step.network(beta=beta, dimension=d), **at) for d in (np.inf, dimension)
    ]
    theory = [[getattr(point, error) for point in points] for error in ERRORS]
    means = [mean_and_error(found.errors[error].ravel()) for error in ERRORS]
    return np.column_stack([theory, means])


def main(
    store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/dimension"),
):
    """Simulate what the store lacks; DIMENSION.md has what is known at every moment."""
    rows, found = [], {dimension: [] for dimension in SIZES}
    for size, dimension in enumerate(SIZES):
        for name in SETTINGS:
            both = compared(name, size, store)
            limit, here, mean, error = both.T
            z = np.array([limit - mean, here - mean]) / error
            found[dimension].append((z, here / mean - 1))
            text = [
                f"{m:.5f} ± {e:.5f}; {100 * (m / t - 1):+.2f} ± {100 * e / t:.2f}; "
                f"{100 * (own / t - 1):+.2f}"
                for t, own, m, e in both
            ]
            scores = ["; ".join(f"{x:+.1f}" for x in pair) for pair in z.T]
            row = (name, str(dimension), text[0], scores[0], text[1], scores[1])
            rows.append([cell.replace("+nan", "nan").replace("nan", "-") for cell in row])
            print(" | ".join(rows[-1]), flush=True)
            write_page(rows, found)


def write_page(rows, found):
    """The page of the ``rows`` of its table, with a summary of what was ``found`` at each size."""
    heads = ["setting", "d", "test error", "z", "training error", "z"]
    text = paragraphs(
        "# Networks at their own dimension",
        "Written by `python -m benchmarks.dimension`.",
        "Simulated mean and its standard error; how far it is from the limit, in percent; and how "
        "far the theory at that dimension is, without a fit. Under z, the limit and the theory at "
        "the dimension less the mean, over its standard error.",
        "\n".join(summary(dimension, each) for dimension, each in found.items() if each),
        FRESH,
        table(heads, rows),
    )
    PAGE.write_text(text, encoding="utf-8")


def summary(dimension, found):
    """Lines on the test and training errors at a dimension, from z (2, 2) and deviations (2,)."""
    z, off = (np.array([one[part] for one in found]) for part in (0, 1))
    lines = []
    for which, error in enumerate(("test", "training")):
        solved = np.isfinite(z[:, 1, which])
        limit, here = np.abs(z[solved, :, which]).T
        near = (here <= 2) | (np.abs(off[solved, which]) <= 0.01)
        lines.append(
            f"- d = {dimension}, {error} errors, {solved.sum()} of {len(SETTINGS)} settings: in "
            f"2 standard errors {shares(here)} (limit: {shares(limit)}); within them or 1 % "
            f"{near.mean():.0%}; further than the limit by more than one "
            f"{np.sum(here > limit + 1)}, at most {np.max(here - limit):+.1f}."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)

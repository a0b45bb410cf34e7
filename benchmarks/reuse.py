"""Both layers trained on the same samples, beside simulation: docs/theory.md 21.

Settings are those of ``SETTINGS``, chosen once and then written down; each is simulated at two
dimensions.  Finished cells stay in the store, so a run that was stopped goes on.  Writes REUSE.md
beside this file.

    python -m benchmarks.reuse --store results/reuse
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Option

import replica
from validation import simulate

from .pages import file_of, kept, mean_and_error, paragraphs, shares, table

PAGE = Path(__file__).with_name("REUSE.md")
SIZES = (300, 1000)  # dimensions
DRAWS, FEW = (128, 64), (50, 16)  # at each
MORE = (128, 256)  # of five settings that looked farthest off, or scattered most
TEST_SAMPLES = 4  # over dimension
ERRORS = ("test_error", "train_error")
TIME_LIMIT = 300  # s, of a point of the theory

# Of each: the step, then beta, alpha, lam, the share that is reused, and the draws.
SETTINGS = {
    "tanh, sin": (
        dict(student="tanh", target="sin", alpha0=2, eta=1), (1, 2, 0.05, 1), DRAWS),
    "tanh, sin, large eta": (
        dict(student="tanh", target="sin", alpha0=3, eta=3), (1, 3, 0.1, 1), DRAWS),
    "tanh, tanh, few samples": (
        dict(student="tanh", target="tanh", alpha0=0.5, eta=1), (1, 0.5, 0.01, 1), MORE),
    "tanh, sin, many samples": (
        dict(student="tanh", target="sin", alpha0=10, eta=3), (1, 10, 0.1, 1), FEW),
    "tanh, sign, noise .3": (
        dict(student="tanh", target="sign", alpha0=1, eta=2, noise=0.3), (0.5, 1, 0.1, 1), MORE),
    "erf, sin, wide": (
        dict(student="erf", target="sin", alpha0=1, eta=2, noise=0.1), (5, 1, 0.1, 1), FEW),
    "relu, relu, noise .3": (
        dict(student="relu", target="relu", alpha0=2, eta=1, noise=0.3), (1, 2, 0.1, 1), DRAWS),
    "relu, relu, few samples": (
        dict(student="relu", target="relu", alpha0=0.25, eta=0.5), (1, 0.25, 0.1, 1), MORE),
    "relu, sin": (
        dict(student="relu", target="sin", alpha0=3, eta=3), (1, 3, 0.1, 1), DRAWS),
    "relu, sin, wide, noise .1": (
        dict(student="relu", target="sin", alpha0=1, eta=1, noise=0.1), (2, 1, 0.1, 1), DRAWS),
    "abs, even target": (
        dict(student="abs", target="he2", alpha0=2, eta=1), (1, 2, 0.1, 1), MORE),
    "softplus, z + (z^2 - 1)/2": (
        dict(student="softplus", target="he1 + he2/2", alpha0=4, eta=1), (0.5, 4, 0.05, 1), DRAWS),
    "sigmoid, tanh, large eta": (
        dict(student="sigmoid", target="tanh", alpha0=0.5, eta=6), (1, 0.5, 0.03, 1), DRAWS),
    "relu, relu, half reused": (
        dict(student="relu", target="relu", alpha0=2, eta=1, noise=0.3), (1, 2, 0.1, 0.5), DRAWS),
    "tanh, sin, half reused": (
        dict(student="tanh", target="sin", alpha0=1.5, eta=3), (1, 3, 0.1, 0.5), DRAWS),
    "relu, sin, step's samples first": (
        dict(student="relu", target="sin", alpha0=4, eta=2), (1, 1, 0.1, 1), DRAWS),
    "relu, sin, two readouts": (
        dict(student="relu", target="sin", alpha0=2, eta=2, noise=0.1, readout=[1.5, -0.5]),
        (1, 2, 0.1, 1), DRAWS),
    "tanh, sin, two readouts": (
        dict(student="tanh", target="sin", alpha0=1, eta=3, readout=[1.5, 0.5]),
        (1, 1, 0.05, 1), DRAWS),
    "relu, relu, Gaussian rows": (
        dict(student="relu", target="relu", alpha0=1, eta=2, initialisation="gaussian"),
        (1, 1, 0.1, 1), MORE),
    "tanh, two directions": (
        dict(student="tanh", target="tanh(z1 + z2) + z2/2", alpha0=2, eta=1),
        (1, 2, 0.05, 1), DRAWS),
    "relu, sin, two biases": (
        dict(student="relu", target="sin", alpha0=2, eta=2, noise=0.1, bias=[-0.5, 1]),
        (1, 2, 0.1, 1), DRAWS),
    "tanh, relu, one bias": (
        dict(student="tanh", target="relu", alpha0=1.5, eta=1.5, bias=0.7),
        (1, 1.5, 0.05, 1), DRAWS),
}  # fmt: skip


def compared(name, size, store):
    """Theory, mean and standard error of the test and the training error, and the theory of fresh
    samples, (2, 4); and the relative change of the theory's test error from the limit."""
    of, (beta, alpha, lam, reuse), draws = SETTINGS[name]
    step, dimension, at = replica.GradientStep(**of), SIZES[size], {"alpha": alpha, "lam": lam}
    model, fresh = (step.network(beta=beta, dimension=dimension, reuse=r) for r in (reuse, 0.0))

    def theory():
        in_limit = step.network(beta=beta, reuse=reuse)
        point, of_fresh, limit = (
            replica.solve(one, **at, time_limit=TIME_LIMIT) for one in (model, fresh, in_limit)
        )
        errors = [[getattr(one, error) for one in (point, of_fresh)] for error in ERRORS]
        return errors, point.test_error / limit.test_error - 1

    expected, shift = kept(file_of(store, f"theory and shift {name} {dimension}"), theory)
    expected = np.array(expected)
    found = simulate(
        model, **at, dimension=dimension, seeds=draws[size], rng=list(SETTINGS).index(name),
        test_samples=TEST_SAMPLES * dimension, workers=1, store=store,
    )  # fmt: skip
    means = [mean_and_error(found.errors[error].ravel()) for error in ERRORS]
    return np.column_stack([expected[:, 0], means, expected[:, 1]]), shift


def main(store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/reuse")):
    """Compute what the store lacks, the theory (theory_*.json) too, and write REUSE.md."""
    store.mkdir(parents=True, exist_ok=True)
    rows, every = [], []
    for size, dimension in enumerate(SIZES):
        for name in SETTINGS:
            both, shift = compared(name, size, store)
            theory, mean, error, _ = both.T
            z = (mean - theory) / error
            every.append((name, dimension, z, error / mean, mean / theory - 1, shift))
            text = [f"{t:.5f}; {m:.5f} ± {e:.5f}; {f:.5f}" for t, m, e, f in both]
            scores = ", ".join(f"{x:+.1f}" for x in z)
            row = (name, str(dimension), *text, scores, f"{shift:+.1%}")
            rows.append([cell.replace("+nan", "nan").replace("nan", "-") for cell in row])
            print(" | ".join(rows[-1]), flush=True)
    summary = []
    for dimension in SIZES:
        own = [one[2:] for one in every if one[1] == dimension and np.isfinite(one[2]).all()]
        z, e, off = (np.array([one[i] for one in own]) for i in range(3))
        rms, most = np.sqrt((z**2).mean(axis=0)), np.abs(off).max(axis=0)
        summary.append(
            f"- d = {dimension}, {len(own)} settings: test errors {shares(z[:, 0])}, rms "
            f"{rms[0]:.2f}, up to {most[0]:.1%} off; training errors {shares(z[:, 1])}, rms "
            f"{rms[1]:.2f}, up to {most[1]:.1%} off; {np.median(e):.1%}, {e.max():.1%}."
        )
        if flagged := [
            one[0] for one in every if one[1] == dimension and not np.isfinite(one[2]).all()
        ]:
            summary.append(f"- d = {dimension}, not answered: {'; '.join(flagged)}.")
    heads = ["setting", "d", "test error", "training error", "z", "from the limit"]
    text = paragraphs(
        "# Both layers trained on the same samples",
        "Written by `python -m benchmarks.reuse`.",
        "Theory; simulation and its standard error; theory of a readout on fresh samples. The "
        "theory is that at the dimension d, whose change from the limit on reused samples is taken "
        "from fresh ones (docs/theory.md 21, 23): *from the limit*, of the test error. Within 2 "
        "standard errors, the largest |z| and its root mean square; the median and the largest "
        "standard error:",
        "\n".join(summary),
        table(heads, rows),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)

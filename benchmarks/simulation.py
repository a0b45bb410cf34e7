"""``python -m benchmarks.simulation``: the Monte Carlo beside the plain way, time and memory.

The plain way is what one types first: a fresh first layer, design and test set for every point,
and the inverse of the p x p matrix.  Both ways have the same cores, draws and test inputs: by
threads of BLAS there, by processes here.  Each runs in a process of its own, whose peak
resident size, children included, is read when it ends.  Writes SIMULATION.md beside this file.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from validation import draw, simulate

from .benchmarks import MODEL
from .pages import mean_and_error, paragraphs, table
from .report import machine

SIMULATED_ALPHAS = (0.2, 0.6, 1.0, 1.4, 1.8, 2.4, 3.0)
PENALTY, D, SEEDS = 0.1, 2000, 3
TEST_COUNT = 8 * D  # test inputs of a point
SIMULATION_PAGE = Path(__file__).with_name("SIMULATION.md")


def plain():
    """Test errors (SEEDS, A) the plain way, as one types them first."""
    errors = np.empty((SEEDS, len(SIMULATED_ALPHAS)))
    for seed in range(SEEDS):
        for i, alpha in enumerate(SIMULATED_ALPHAS):
            rng = np.random.default_rng([seed, i])
            layer = draw(MODEL, dimension=D, rng=rng)
            X = rng.standard_normal((round(alpha * D), D))
            Phi, y = layer.features(X), layer.labels(X, rng)
            p = Phi.shape[1]
            a = np.linalg.inv(Phi.T @ Phi / p + PENALTY * np.eye(p)) @ (Phi.T @ y / np.sqrt(p))
            unseen = rng.standard_normal((TEST_COUNT, D))
            predicted = layer.features(unseen) @ a / np.sqrt(p)
            errors[seed, i] = ((layer.targets(unseen) - predicted) ** 2).mean()
    return errors


def library(workers, memory):
    """Test errors (SEEDS, A) by ``simulate``, with so many processes and so much memory."""
    return simulate(
        MODEL, alpha=SIMULATED_ALPHAS, lam=PENALTY, dimension=D, seeds=SEEDS, rng=0,
        test_samples=TEST_COUNT, workers=workers, memory=memory,
    ).errors["test_error"][:, :, 0]  # fmt: skip


WAYS = {  # what they are called on the page, and their test errors
    "plain": ("plain way, BLAS threads on all cores", plain),
    "library": ("`simulate`, its own choice of processes", lambda: library(None, "4GB")),
    "one process": (
        "`simulate(workers=1, memory='600MB')`, one thread",
        lambda: library(1, "600MB"),
    ),
}


def measured(way):
    """What ``run`` prints of one way: seconds, CPU seconds with children, peak resident bytes of
    the largest process, errors and their bars."""
    command = [sys.executable, "-m", "benchmarks.simulation", way]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run(way):
    """Print what ``measured`` returns."""
    start = time.perf_counter()
    errors = WAYS[way][1]()
    seconds = time.perf_counter() - start
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    busy, size = sum(u.ru_utime + u.ru_stime for u in both), max(u.ru_maxrss for u in both) * 1024
    mean, error = mean_and_error(errors)
    print(json.dumps([seconds, busy, size, mean.tolist(), error.tolist()]))


def main():
    """Measure all ways and write SIMULATION.md."""
    results = {way: measured(way) for way in WAYS}
    ratio, cpu = (results["plain"][i] / results["library"][i] for i in (0, 1))
    rows = []
    for way, (seconds, busy, size, mean, stderr) in results.items():
        relative = np.mean(np.divide(stderr, mean))
        cells = [f"{seconds:.0f} s", f"{busy:.0f} s", f"{size / 1e9:.2f} GB", f"{relative:.1%}"]
        rows.append([WAYS[way][0], *cells])
    heads = ["way", "time", "CPU time", "largest process", "mean relative standard error"]
    verdict = "met" if ratio >= 4 else "**not met**"
    apart = np.subtract(results["plain"][3], results["library"][3])
    z = np.abs(apart) / np.hypot(results["plain"][4], results["library"][4])
    text = paragraphs(
        "# The Monte Carlo beside the plain way",
        "Written by `python -m benchmarks.simulation`. sRF of tanh / sin, alpha0 = 20, eta = 3, "
        f"d = p = {D}, {len(SIMULATED_ALPHAS)} alpha, {SEEDS} seeds, lam = {PENALTY}, "
        f"{TEST_COUNT} test inputs.",
        machine() + f" OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}.",
        table(heads, rows),
        f"The plain way takes {ratio:.1f} times as long (bar: 4 times, {verdict}), "
        f"and {cpu:.1f} times the CPU time. The two ways' "
        f"mean errors differ by {z.mean():.1f} joint standard errors on average.",
    )
    SIMULATION_PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()

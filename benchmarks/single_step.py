"""The published single-step experiment at n = d^2, streamed and as one would type it.

``python -m benchmarks.single_step`` runs both, each in a process of its own, on the same draw of
d = 512, p = 1024, n = 262 144, and prints time, peak memory and test error.  The plain version
needs some 14 GB.
"""

import resource
import subprocess
import sys
import time

import numpy as np

from replica.problem.targets import target
from validation.draws import seed_sequence
from validation.measure import PUBLISHED_RATE, initial_layer, single_step

TEACHERS = "(he1(z1) + he2(z1)/2 + he4(z1)/24 + he1(z2) + he2(z2)/2 + he4(z2)/24)/2"
DIMENSION, NEURONS, TEST_SAMPLES = 512, 1024, 100_000  # as published
LAYER = {"student": "relu", "target": TEACHERS, "dimension": DIMENSION, "width": NEURONS, "rng": 0}


def streamed(samples: int, test_samples: int = TEST_SAMPLES) -> float:
    """Test error by ``validation.measure.single_step``."""
    layer, readout = initial_layer(**LAYER)
    step = single_step(layer, readout, samples=samples, test_samples=test_samples, rng=1)
    return step.published_test_error


def plain(samples: int, test_samples: int = TEST_SAMPLES) -> float:
    """The same error, with every array whole in memory and every formula typed once."""
    layer, readout = initial_layer(**LAYER)
    W, p, teacher = layer.W, NEURONS, target(TEACHERS)
    X, X_test = (
        np.random.default_rng(seed).standard_normal((count, DIMENSION))
        for count, seed in zip((samples, test_samples), seed_sequence(1).spawn(2), strict=True)
    )
    y, y_test = teacher(X[:, 0], X[:, 1]), teacher(X_test[:, 0], X_test[:, 1])
    y = y - y.mean() - X @ (y[:, None] * X).mean(axis=0)
    y_test = y_test - y_test.mean() - X_test @ (y_test[:, None] * X_test).mean(axis=0)
    a = readout / np.sqrt(p)
    f0 = np.maximum(X @ W.T, 0) @ a / np.sqrt(p)
    gradient = X.T @ (np.outer(y - f0, a) / np.sqrt(p) * (X @ W.T > 0)) / samples
    W = W + PUBLISHED_RATE * np.sqrt(samples) * np.sqrt(p) * gradient.T
    Phi, Phi_test = (np.maximum(inputs @ W.T, 0) / np.sqrt(p) for inputs in (X, X_test))
    fitted = np.linalg.inv(Phi.T @ Phi + np.eye(p)) @ (Phi.T @ y)
    return float(((y_test - Phi_test @ fitted) ** 2).mean())


def main() -> None:
    """Run both and print what they took."""
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else DIMENSION**2
    if len(sys.argv) > 1 and sys.argv[1] in ("streamed", "plain"):
        start = time.perf_counter()
        error = {"streamed": streamed, "plain": plain}[sys.argv[1]](samples)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB -> GiB
        print(
            f"{sys.argv[1]:9} n = {samples}: {seconds:6.1f} s, {peak:5.2f} GiB, error {error:.10f}"
        )
        return
    for name in ("streamed", "plain"):
        subprocess.run([sys.executable, "-m", "benchmarks.single_step", name], check=True)


if __name__ == "__main__":
    main()

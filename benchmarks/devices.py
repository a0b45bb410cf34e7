"""What an accelerator is worth: elapsed times on the host and on a device of torch.

    python -m benchmarks.devices [device]

A curve of ten numbers of samples of a given layer, and an sRF simulated at seven sample sizes and
three penalties.  On the host the library takes one thread of BLAS.  The largest relative difference
of the test errors is printed beside the times.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import replica
from validation import simulate

from .benchmarks import MODEL
from .given_speed import after_step

PENALTIES = (0.001, 0.1, 10.0)


def curve(p: int, device: str) -> object:
    """Ten points of a relu layer after one giant step."""
    layer = after_step("relu", "relu", p, device=device)
    return replica.learning_curve(layer, alpha=np.linspace(0.25, 3, 10), lam=0.1)


def simulated(d: int, device: str) -> object:
    """Two draws of the sRF of the other benchmarks, d = p."""
    alpha = np.linspace(0.3, 3, 7)
    at = dict(alpha=alpha, lam=PENALTIES, dimension=d, seeds=2, rng=0, test_samples=d)
    return simulate(MODEL, device=device, workers=1, memory="16GB", **at)


def timed(call: Callable[[str], Any], device: str) -> tuple[float, np.ndarray]:
    """Elapsed seconds of a call, and its test errors."""
    start = time.perf_counter()
    errors = call(device).errors["test_error"]
    return time.perf_counter() - start, errors


def main(device: str = "cuda") -> None:
    for name, measured, sizes in (
        ("given layer", curve, (500, 1000, 2000)),
        ("simulated sRF", simulated, (1024, 2048, 4096)),
    ):
        measured(200, device)  # what the libraries do once
        for size in sizes:
            (host, expected), (there, found) = (
                timed(partial(measured, size), where) for where in ("cpu", device)
            )
            off = np.max(np.abs(found / expected - 1))
            print(
                f"{name:14} {size:5}: host {host:6.1f} s, {device} {there:6.1f} s,"
                f" {host / there:.1f} times; errors differ by {off:.0e}",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])

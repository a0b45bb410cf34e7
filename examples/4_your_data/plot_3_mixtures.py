r"""
Gaussian mixtures and the Hermite model
=======================================

Inputs from a mixture with spikes in its covariances, and a network whose features are replaced by
Hermite polynomials of low degree and noise: at the order that the paper asks for, both have the
same errors. Lines are the theory given the first layers that are drawn, markers are simulated.
Images enter the same way, by the covariances of their classes (``validation.mixtures.image_task``).
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from validation.mixtures import in_theory, mixture, regression, scaling, side_by_side

dimension, widths, seeds = 200, [40, 100, 200, 400], range(3)
theta, rate = scaling(dimension, data_spread=0.74, split=0.5)
task = regression(mixture(dimension, eigenvalues=theta, alignment=0.3), target="relu", rng=1)
options = {"orders": [4], "samples": 200, "rate": rate, "lam": 1e-2, "students": ["relu", "tanh"]}


def means(errors):
    """Means over the seeds: (widths, students, network and order 4)."""
    draws = [
        [errors(task, width=width, rng=seed, **options).generalisation for seed in seeds]
        for width in widths
    ]
    return np.mean(draws, axis=1)


simulated, theory = means(partial(side_by_side, test_samples=5000)), means(in_theory)
for at, student in enumerate(options["students"]):
    style = {"color": f"C{at}", "mfc": "none"}
    plt.plot(widths, theory[:, at, 0], **style)
    plt.plot(widths, theory[:, at, 1], "--", **style)
    plt.plot(widths, simulated[:, at, 0], "o", label=f"{student} network", **style)
    plt.plot(widths, simulated[:, at, 1], "x", label=f"{student}, Hermite model", **style)
plt.title("networks and their Hermite models, with their theory (lines)")
plt.xlabel("width")
plt.ylabel("generalisation error")
plt.legend()

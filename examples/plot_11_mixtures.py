r"""
Gaussian mixtures and the Hermite model
=======================================

Inputs from a mixture with spikes in its covariances, and a network whose features are replaced by
Hermite polynomials of low degree and noise: at the order that the theory asks for, both have the
same errors. Images enter the same way, by the covariances of their classes
(``validation.mixtures.image_task``).
"""

import matplotlib.pyplot as plt
import numpy as np

from validation.mixtures import mixture, regression, scaling, side_by_side

dimension, widths = 200, [40, 100, 200, 400]
theta, rate = scaling(dimension, data_spread=0.74, split=0.5)
mixed = mixture(dimension, eigenvalues=theta, alignment=0.3, proportions=[1, 1], rng=0)
task = regression(mixed, target="relu", rng=1)
students = ["relu", "tanh"]
errors = np.array(
    [
        [
            side_by_side(
                task, students=students, orders=[4], width=width, samples=200, rate=rate,
                lam=1e-2, rng=seed,
            ).generalisation
            for seed in range(5)
        ]
        for width in widths
    ]
).mean(axis=1)  # (widths, students, network and order 4)  # fmt: skip
for at, student in enumerate(students):
    plt.plot(widths, errors[:, at, 0], "o", color=f"C{at}", mfc="none", label=f"{student} network")
    plt.plot(widths, errors[:, at, 1], "x--", color=f"C{at}", label=f"{student}, Hermite model")
plt.title("networks and their Hermite models")
plt.xlabel("width")
plt.ylabel("generalisation error")
plt.legend()

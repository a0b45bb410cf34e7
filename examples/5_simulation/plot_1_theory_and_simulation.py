r"""
Theory against simulation
=========================

The problem object of the theory also draws networks of finite size: here eight of :math:`d=400`
inputs and as many neurons, trained by one giant step and ridge regression. Errors are two standard
errors of the mean.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from validation import compare

step = replica.GradientStep(student="tanh", target="sin", alpha0=3, eta=2.0, noise=0.1)
alpha = [0.3, 0.7, 1.5, 2.5]
report = compare(step, alpha=alpha, lam=0.1, beta=1.0, dimension=400, seeds=8, rng=1, workers=1)
print(report.verdict)

# %%
# Its figure has the network's own theory, at the simulated dimension, beside its limit and the
# published theory of spiked random features; below, what simulated errors are off by.

report.plot(plt.axes())

# %%
# How far these theories are from one another is known without a simulation:

curve = replica.learning_curve(step, beta=1.0, alpha=alpha, lam=0.1, notes=True)
print("the network, from its sRF:", np.round(curve.network_difference.values, 3))
print("d = 1000, from the limit: ", np.round(curve.finite_size_shift.values, 3))

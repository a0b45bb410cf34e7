r"""
A map over learning rate and samples
====================================

Every field of the problem is an axis: here the rate :math:`\tilde\eta` of the giant step, and the
samples :math:`\alpha` of the readout. The dashed line is the best rate at each :math:`\alpha`.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve

step = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0, noise=0.1)
eta, alpha = np.geomspace(0.1, 20, 60), np.geomspace(0.1, 10, 60)
grid = replica.learning_curve(step, beta=1.0, eta=eta, alpha=alpha, lam=0.1)
ax = plot_curve(grid, plt.figure(layout="constrained").subplots())  # two long axes: a map
ax.plot(alpha, grid.eta[grid.test_error.argmin("eta")], "w--")

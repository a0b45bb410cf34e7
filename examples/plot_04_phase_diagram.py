r"""
A map over learning rate and samples
====================================

Every field of the problem is an axis: here the rate :math:`\tilde\eta` of the giant step, and the
samples :math:`\alpha` of the readout. The dashed line is the best rate at each :math:`\alpha`.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica

step = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0, noise=0.1)
eta, alpha = np.geomspace(0.1, 20, 60), np.geomspace(0.1, 10, 60)
grid = replica.learning_curve(step, beta=1.0, eta=eta, alpha=alpha, lam=0.1)
error = grid.test_error.squeeze()

drawn = plt.pcolormesh(alpha, eta, error, norm="log", shading="gouraud")
plt.plot(alpha, eta[error.argmin("eta").values], "w--", label="best rate")
plt.colorbar(drawn, label="test error")
plt.title("test error over rate and samples")
plt.xscale("log")
plt.yscale("log")
plt.xlabel(r"$\alpha = n/d$")
plt.ylabel(r"$\tilde\eta$")
plt.legend()

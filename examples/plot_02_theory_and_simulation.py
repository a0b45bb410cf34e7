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
# The comparison takes the network's own theory, at the simulated dimension. Its limit, and the
# published one of spiked random features, as lines:

grid = dict(alpha=np.linspace(0.2, 3, 60), lam=0.1)
for name, model in (("network", step.network(beta=1.0)), ("sRF", step.srf(beta=1.0))):
    plt.plot(grid["alpha"], replica.learning_curve(model, **grid).test_error[:, 0], label=name)
found = report.simulation
error = 2 * found.test_stderr[:, 0]
plt.errorbar(alpha, found.test_mean[:, 0], error, fmt="ko", label="simulated")
plt.title("theory and simulated networks")
plt.xlabel(r"$\alpha = n/d$")
plt.ylabel("test error")
plt.legend()

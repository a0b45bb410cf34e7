r"""
A first curve in five lines
===========================

Test and training error of a tanh network on a sine, after one giant gradient step on :math:`20\,d`
samples, against the samples of its readout. Theory, at a hundred points.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve

step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
curve = replica.learning_curve(step, beta=1.0, alpha=np.linspace(0.1, 4, 100), lam=[0.01, 0.1])
plot_curve(curve, plt.axes(title="tanh network, sin target"))

# %%
# The curve is an ``xarray.Dataset``, of which every point says whether it converged.

print(curve.test_error.sel(lam=0.1).isel(alpha=-1).item(), bool(curve.converged.all()))

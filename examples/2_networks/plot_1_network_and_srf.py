r"""
The network and its spiked random features
==========================================

The published theory replaces the trained first layer by spiked random features (sRF), whose bulk is
isotropic. ``network`` keeps the covariance that the step gives the rows, which counts where it
sees few samples, and the fluctuation of their norms, which counts where the rate is large.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve

step = replica.GradientStep(student="tanh", target="sin", alpha0=1, eta=4.0)
grid = dict(beta=1.0, theory=["network", "srf"], alpha=np.linspace(0.2, 4, 40), lam=0.05)
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for alpha0, ax in zip((0.3, 20.0), panels, strict=True):
    plot_curve(replica.learning_curve(step, alpha0=alpha0, **grid), ax, train=False)

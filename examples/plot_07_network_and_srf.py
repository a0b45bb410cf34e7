r"""
The network and its spiked random features
==========================================

The published theory replaces the trained first layer by spiked random features (sRF), whose bulk is
isotropic. ``network`` keeps the covariance that the step's samples give the rows, and the
fluctuation of their norms: where the step sees few samples, that is what counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica

alpha = np.linspace(0.2, 4, 40)
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for alpha0, ax in zip((0.3, 20.0), panels, strict=True):
    step = replica.GradientStep(student="tanh", target="sin", alpha0=alpha0, eta=4.0)
    for name, model in (("network", step.network(beta=1.0)), ("sRF", step.srf(beta=1.0))):
        curve = replica.learning_curve(model, alpha=alpha, lam=0.05)
        ax.plot(alpha, curve.test_error[:, 0], label=name)
    ax.set(title=rf"$\alpha_0={alpha0:g}$", xlabel=r"$\alpha = n/d$", ylabel="test error")
panels[0].legend()

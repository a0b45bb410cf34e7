r"""
An activation of one's own
==========================

Any numpy function serves as student or target. Where it has kinks or jumps is found; averages are
split there, and keep their digits. ``replica.Activation`` names it, and declares its kinks.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve


def hat(x):
    """Piecewise linear, saturated at one from both sides."""
    return np.clip(x, -1.0, 1.0)


hard = replica.Activation(hat, kinks=[-1.0, 1.0], name="hard tanh")
step = replica.GradientStep(student="tanh", target="sin", alpha0=10, eta=2.0)
grid = dict(alpha=np.linspace(0.2, 4, 60), lam=0.05)
curve = replica.learning_curve(step, beta=1.0, student=[hard, "tanh", "erf"], **grid)
plot_curve(curve, plt.axes(), train=False)

# %%
# The function as it is will do: the same kinks are found, and every point measures what is left of
# the error of its averages.

step = replica.GradientStep(student=hat, target="sin", alpha0=10, eta=2.0)
curve = replica.learning_curve(step, beta=1.0, **grid)
print(step.student.kinks, float(curve.quadrature_error.max()))

r"""
An activation of one's own
==========================

Any numpy function serves as student or target. One with kinks or jumps should say where they are:
averages are then split there, and keep their digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica


def hat(x):
    """Piecewise linear, saturated at one from both sides."""
    return np.clip(x, -1.0, 1.0)


student = replica.Activation(hat, kinks=[-1.0, 1.0], name="hard tanh")
alpha = np.linspace(0.2, 4, 60)
for choice in (student, "tanh", "erf"):
    step = replica.GradientStep(student=choice, target="sin", alpha0=10, eta=2.0)
    curve = replica.learning_curve(step.srf(beta=1.0), alpha=alpha, lam=0.05)
    plt.plot(alpha, curve.test_error[:, 0], label=getattr(choice, "name", choice))
plt.title("three saturating students")
plt.xlabel(r"$\alpha = n/d$")
plt.ylabel("test error")
plt.legend()

# %%
# What a wrong declaration costs is measured, not guessed: the quadrature error of a point.

print(float(curve.quadrature_error.max()))

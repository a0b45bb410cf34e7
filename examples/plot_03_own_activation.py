r"""
An activation of one's own
==========================

Any numpy function serves as student or target. Where it has kinks or jumps is found; averages are
split there, and keep their digits. ``replica.Activation`` names it, and declares its kinks.
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
# The function as it is will do: the same kinks are found, and every point measures what is left of
# the error of its averages.

step = replica.GradientStep(student=hat, target="sin", alpha0=10, eta=2.0)
curve = replica.learning_curve(step.srf(beta=1.0), alpha=alpha, lam=0.05)
print(step.student.kinks, float(curve.quadrature_error.max()))

r"""
Several steps, and the staircase
================================

A target of several directions is learned one direction after the other: :math:`z_1z_2` is
invisible to a step on :math:`O(d)` samples until :math:`z_1` is known. ``staircase`` says which
directions come when, here to neurons with a bias: relu without one sees no odd degree but the
first. ``steps=`` computes the errors of a network after each step.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_staircase

target = "z1 + z1*z2"
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_staircase(replica.staircase("z1 + z1*z2 + z1*z2*z3", student="relu(x + 0.5)"), left)
left.set_title("z1 + z1*z2 + z1*z2*z3")

alpha = np.linspace(0.3, 6, 30)
for count in (1, 2, 3):
    step = replica.GradientStep(student="relu", target=target, steps=[(4.0, 1.0)] * count)
    curve = replica.learning_curve(step, beta=1.0, alpha=alpha, lam=0.1)
    right.plot(alpha, curve.test_error, label=f"{count} step" + "s" * (count > 1))
right.set(xlabel=r"$\alpha = n/d$", ylabel="test error", title=target)
right.legend()

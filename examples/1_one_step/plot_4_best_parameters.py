r"""
The best penalty, and the best rate
===================================

``optimal_lambda`` finds the penalty of the smallest test error, ``optimal_eta`` the rate of the
step together with it.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica

step = replica.GradientStep(student="tanh", target="sin", alpha0=3, eta=1.0, noise=0.2)
grid = dict(beta=1.0, alpha=np.geomspace(0.2, 10, 12))
best = replica.learning_curve(step, lam="best", eta="best", **grid)
curves = {
    r"$\tilde\eta=1$, $\lambda=0.01$": replica.learning_curve(step, lam=0.01, **grid),
    r"$\tilde\eta=1$, best $\lambda$": replica.learning_curve(step, lam="best", **grid),
    r"best $\tilde\eta$ and $\lambda$": best,
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, curve in curves.items():
    left.loglog(curve.alpha, curve.test_error, label=name)
left.set(xlabel=r"$\alpha = n/d$", ylabel="test error", title="errors")
right.loglog(best.alpha, best.eta, label=r"best $\tilde\eta$")
right.loglog(best.alpha, best.lam, label=r"best $\lambda$")
right.set(xlabel=r"$\alpha = n/d$", title="best parameters")
for ax in (left, right):
    ax.legend()

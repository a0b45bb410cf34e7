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
alpha = np.geomspace(0.2, 10, 12)
model = step.srf(beta=1.0)
fixed = replica.learning_curve(model, alpha=alpha, lam=0.01).test_error[:, 0]
penalty = [replica.optimal_lambda(model, alpha=a).test_error for a in alpha]
best = [replica.optimal_eta(step, alpha=a, beta=1.0) for a in alpha]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.loglog(alpha, fixed, label=r"$\tilde\eta=1$, $\lambda=0.01$")
left.loglog(alpha, penalty, label=r"$\tilde\eta=1$, best $\lambda$")
left.loglog(alpha, [b.test_error for b in best], label=r"best $\tilde\eta$ and $\lambda$")
left.set(xlabel=r"$\alpha = n/d$", ylabel="test error", title="errors")
left.legend()
right.loglog(alpha, [b.eta for b in best], label=r"best $\tilde\eta$")
right.loglog(alpha, [b.lam for b in best], label=r"best $\lambda$")
right.set(xlabel=r"$\alpha = n/d$", title="best parameters")
right.legend()

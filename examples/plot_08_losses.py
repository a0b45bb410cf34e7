r"""
Robust and classification losses
================================

The readout may minimise any convex loss. Left: a tenth of the labels are outliers, of standard
deviation 3. Right: labels are signs, a tenth of them flipped.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica

alpha = np.linspace(0.5, 4, 8)
features = dict(student="tanh", r=1.5, c=1.0, gamma=0.9)
outliers = replica.SpikedRandomFeatures(target="sin", label_noise="outliers:0.1:9", **features)
signs = replica.SpikedRandomFeatures(target="sin", label_noise="flip:0.1", **features)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for loss in ("square", "huber:0.3", "absolute"):
    curve = replica.learning_curve(outliers, alpha=alpha, lam=0.3, loss=loss)
    left.semilogy(alpha, curve.test_error[:, 0], label=loss)
left.set(xlabel=r"$\alpha = n/d$", ylabel="test error", title="outliers")
left.legend()
for loss in ("square", "logistic", "hinge"):
    curve = replica.learning_curve(signs, alpha=alpha, lam=0.3, loss=loss)
    right.plot(alpha, curve.classification_error[:, 0], label=loss)
right.set(xlabel=r"$\alpha = n/d$", ylabel="misclassified", title="flipped labels")
right.legend()

r"""
Robust and classification losses
================================

The readout may minimise any convex loss. Left: a tenth of the labels are outliers, of standard
deviation 3. Right: labels are signs, a tenth of them flipped.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve

grid = dict(alpha=np.linspace(0.5, 4, 8), lam=0.3)
features = dict(student="tanh", r=1.5, c=1.0, gamma=0.9)
outliers = replica.SpikedRandomFeatures(target="sin", label_noise="outliers:0.1:9", **features)
signs = replica.SpikedRandomFeatures(target="sin", label_noise="flip:0.1", **features)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
robust = replica.learning_curve(outliers, loss=["square", "huber:0.3", "absolute"], **grid)
plot_curve(robust, left, train=False)
classes = replica.learning_curve(signs, loss=["square", "logistic", "hinge"], **grid)
plot_curve(classes, right)

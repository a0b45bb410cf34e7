r"""
A linear probe on features
==========================

Features of a random network with two layers, on inputs of two classes. The theory takes the rows of
a labelled sample, and gives the errors of a readout that is fitted on some of them: lines, and dots
for fitted readouts.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
import validation
from replica.plotting import plot_curve

rng = np.random.default_rng(0)
N, d, p = 6000, 40, 60
labels = rng.choice([-1.0, 1.0], N)
X = rng.standard_normal((N, d)) + 0.3 * labels[:, None]
hidden = np.tanh(X @ rng.standard_normal((d, 100)) / np.sqrt(d))
features = np.maximum(hidden @ rng.standard_normal((100, p)) / 10, 0)

sample = replica.FeatureSample(features=features, labels=labels)
grid = dict(lam=[0.001, 0.1])
curve = replica.learning_curve(sample, samples=np.geomspace(15, 1500, 40), **grid)
found = validation.simulate(sample, samples=[20, 60, 200, 1000], seeds=20, rng=0, **grid)
points = found.to_dataframe()
ax = plt.figure(layout="constrained").subplots()
plot_curve(curve, ax, error="test_error", train=False, points=points)
ax.set_yscale("log")
ax.set_title("readouts of random features of two layers: theory, and 20 splits")

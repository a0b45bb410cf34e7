r"""
A linear probe on features
==========================

Features of a random network with two layers, on inputs of two classes. The theory measures their
means and covariances on a labelled sample, and gives the errors of a readout that is fitted on some
of it: lines, and dots for fitted readouts.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
import validation

rng = np.random.default_rng(0)
N, d, p = 6000, 40, 60
labels = rng.choice([-1.0, 1.0], N)
X = rng.standard_normal((N, d)) + 0.3 * labels[:, None]
hidden = np.tanh(X @ rng.standard_normal((d, 100)) / np.sqrt(d))
features = np.maximum(hidden @ rng.standard_normal((100, p)) / 10, 0)

sample = replica.FeatureSample(features=features, labels=labels)
for k, lam in enumerate((0.001, 0.1)):
    curve = replica.learning_curve(sample, samples=np.geomspace(15, 1500, 40), lam=lam)
    plt.plot(curve.samples, curve.test_error[:, 0], f"C{k}", label=f"$\\lambda = {lam:g}$")
    found = validation.simulate(sample, samples=[20, 60, 200, 1000], lam=lam, seeds=20, rng=0)
    mean, bars = found.test_mean[:, 0], 2 * found.test_stderr[:, 0]
    plt.errorbar(found.samples, mean, bars, fmt=f"C{k}o", mfc="none", capsize=2)
plt.xscale("log")
plt.yscale("log")
plt.title("readouts of random features of two layers: theory, and 20 splits")
plt.xlabel("samples of the readout")
plt.ylabel("test error")
plt.legend()

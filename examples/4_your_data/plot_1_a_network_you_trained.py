r"""
A network you trained
=====================

The first layer is trained by twenty steps of Adam on one batch that is used again and again. Its
readout is then fitted on fresh samples. The theory takes the weights as they are: lines are the
errors that it gives, dots those of fitted readouts.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica
from replica.plotting import plot_curve

rng = np.random.default_rng(0)
d, p, lam, noise = 200, 150, 0.1, 0.1
direction = np.eye(d)[0]


def draw(n):
    """Inputs and labels."""
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X @ direction) + np.sqrt(noise) * rng.standard_normal(n)


# as nn.Linear(d, p) and nn.Linear(p, 1) start in PyTorch
W, b = rng.uniform(-1, 1, (p, d)) / np.sqrt(d), rng.uniform(-1, 1, p) / np.sqrt(d)
v = rng.uniform(-1, 1, p) / np.sqrt(p)
X, y = draw(4 * d)
mean, square = np.zeros((2, p, d))
for step in range(1, 21):  # Adam, on the weights
    fields = X @ W.T + b
    residual = y - np.maximum(fields, 0) @ v
    gradient = -2 * ((residual[:, None] * (fields > 0)).T @ X) * v[:, None] / len(X)
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    W -= 0.01 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)

layer = replica.FirstLayer(
    weights=W, bias=b, student="relu", target="sin(2*z1)", directions=direction, noise=noise
)
samples = np.geomspace(40, 1600, 24)
curve = replica.learning_curve(layer, samples=samples, lam=lam)

X_test = rng.standard_normal((4000, d))
target, features = np.sin(2 * X_test @ direction), np.maximum(X_test @ W.T + b, 0)
measured = []
for n in (50, 150, 400, 1200):
    errors = []
    for _ in range(10):
        X, y = draw(n)
        Phi = np.maximum(X @ W.T + b, 0)
        a = np.linalg.solve(Phi.T @ Phi + p * lam * np.eye(p), Phi.T @ y)
        errors.append(np.mean((target - features @ a) ** 2))
    measured.append([n, np.mean(errors), np.std(errors) / np.sqrt(10)])
names = "samples", "test_error", "test_error_stderr"
ax = plot_curve(curve, plt.axes(), points=dict(zip(names, np.transpose(measured), strict=True)))
ax.set_title("relu network after twenty steps of Adam on one batch")

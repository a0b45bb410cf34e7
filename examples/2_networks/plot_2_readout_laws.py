r"""
Any law of the first-step readout
=================================

Neurons whose readout differs in the first step get spikes of different lengths: the network then
has several functions of the projection on the spike to combine. Four values already fit a target
with a cubic part much better than one. ±1 is exactly as good as one value, whose line it hides.
"""

import matplotlib.pyplot as plt
import numpy as np

import replica

laws = {
    "one value": 1.0,
    "±1": [-1.0, 1.0],
    "±½, ±3/2": [-1.5, -0.5, 0.5, 1.5],
    "three in four ½": ([0.5, 1.8], [0.75, 0.25]),
}
alpha = np.linspace(0.2, 5, 60)
for name, law in laws.items():
    step = replica.GradientStep(student="tanh", target="he1+he3/2", alpha0=10, eta=3, readout=law)
    curve = replica.learning_curve(step, beta=1.0, alpha=alpha, lam=0.02)
    plt.plot(alpha, curve.test_error, label=name)
plt.title("laws of the first-step readout")
plt.xlabel(r"$\alpha = n/d$")
plt.ylabel("test error")
plt.legend(title="readout")

r"""
The spectrum of the features
============================

The density of the eigenvalues of :math:`\Phi^\top\Phi/n` and their edges, beside the eigenvalues of
one drawn model.
"""

import matplotlib.pyplot as plt

import replica
from replica.plotting import plot_spectrum
from validation.measure import eigenvalues

step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
model = step.srf(beta=0.5)
found = replica.spectrum(model, alpha=1.5)
print("edges", found.edges, "outliers over p", found.outliers)

drawn = eigenvalues(model, alpha=1.5, dimension=800, rng=0)
plot_spectrum(found, plt.axes(title="eigenvalues, theory and one draw"), eigenvalues=drawn)

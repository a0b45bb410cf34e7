"""The network's generalisation error over (split, data spread), one set of draws for all cells.

A heat map of [M] (docs/theory.md 12) recomputes everything for every cell.  But its cells differ in
theta and eta alone: standard normal inputs Z, first layer F_0, second layer and spikes are shared
by all cells of a seed, and since a component's inputs are

    X = Z + (sqrt(1 + theta) - 1) (Z gamma) gamma^T,

the fields of the first layer follow from Z F_0^T by a matrix of rank one.  For a relu network on
relu labels the generalisation error needs no test samples: given the trained weights it is a
quadratic form in

    E relu(u) relu(v) = |u||v| (sqrt(1 - c^2) + (pi - arccos c) c) / (2 pi),  c = cos(u, v),

for Gaussian u, v, component by component.  Cells of one seed are correlated: the map is smoother
than one of fresh draws, each cell has the same law and standard error.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from replica.problem import activation
from solvers.results import Array

from ..draws import seed_sequence
from .hermite_model import fit_readout, gradient
from .mixtures import Mixture, Scaling, mixture
from .tasks import regression

KERNEL_ROWS = 64  # of a block of the kernel, which then stays in the cache


class Inputs(NamedTuple):
    """What the inputs of one seed are made of, at every spike eigenvalue.

    Standard normal inputs Z (m, n), each one's projection on the spike of its component (m,),
    that spike (m, n), and the fields of the first layer: Z F_0^T (m, k) and the spike's (m, k).
    """

    Z: Array
    along: Array
    spikes: Array
    fields: Array
    spike_fields: Array

    def at(self, theta: float, trace: float) -> tuple[Array, Array]:
        """Inputs (m, n) and their fields F X^T (k, m) at a spike eigenvalue."""
        stretch = (np.sqrt(1 + theta) - 1) * self.along[:, None]
        fields = (self.fields + stretch * self.spike_fields) / np.sqrt(trace)
        return self.Z + stretch * self.spikes, fields.T


def shared_draws(
    scalings: list[Scaling],
    *,
    dimension: int,
    samples: int,
    width: int,
    lam: float,
    rng: Any = None,
) -> Iterator[float]:
    """Yield the generalisation error, 1/2 E (y - f)^2, of every pair (theta, eta) in turn.

    relu network on y = relu(xi . x), two components with one spike each, orthogonal, xi along
    their sum; one set of draws for all pairs.

    Parameters
    ----------
    scalings : list of Scaling
    dimension, samples, width : int
        n, m and k.
    lam : float
        Ridge penalty.
    rng : None, int, SeedSequence or Generator
    """
    relu = activation("relu")
    layer, first, second, spikes = map(default_rng, seed_sequence(rng).spawn(4))
    base = mixture(dimension, eigenvalues=1.0, rng=spikes)
    F0 = layer.standard_normal((width, dimension))
    w = layer.standard_normal(width) / np.sqrt(width)
    steps, fits = (_inputs(base, F0, samples, stream) for stream in (first, second))
    for theta, eta in scalings:
        mixed = Mixture(base.directions, theta * base.eigenvalues, base.proportions)
        task = regression(mixed, aligned=True)
        X0, fields = steps.at(theta, mixed.trace)
        G = gradient(fields, w, X0, relu(X0 @ task.direction), relu)
        X, fields = fits.at(theta, mixed.trace)
        features = relu(fields.T + eta * (X @ G.T))
        a = fit_readout(features, relu(X @ task.direction), lam * samples)
        after = F0 / np.sqrt(mixed.trace) + eta * G
        yield relu_error(mixed, after, a / np.sqrt(width), task.direction)


def _inputs(base: Mixture, F0: Array, samples: int, rng: Generator) -> Inputs:
    """Draw m standard normal inputs, the first half of them of the first component, and take their
    fields with the first layer F_0 (k, n)."""
    component = np.arange(samples) * 2 // samples
    spikes = base.directions[component, 0]
    Z = rng.standard_normal((samples, base.dimension))
    along = np.einsum("mn,mn->m", Z, spikes)
    return Inputs(Z, along, spikes, Z @ F0.T, (base.directions[:, 0] @ F0.T)[component])


def relu_error(mixed: Mixture, layer: Array, a: Array, direction: Array) -> float:
    """1/2 E (relu(xi . x) - sum_i a_i relu(f_i . x))^2 over the mixture, exactly.

    Parameters
    ----------
    mixed : Mixture
    layer : (k, n)
        Rows f_i.
    a : (k,)
    direction : (n,)
        xi.
    """
    rows = np.vstack([layer, direction])
    weights = np.append(-a, 1.0)
    gram = rows @ rows.T
    error = 0.0
    for share, spikes, theta in zip(
        mixed.proportions, mixed.directions, mixed.eigenvalues, strict=True
    ):
        along = (rows @ spikes.T) * np.sqrt(theta)
        size = np.sqrt(np.diagonal(gram) + (along**2).sum(axis=1))
        scaled, along = gram / size[:, None], along / size[:, None]
        error += share * _quadratic_form(scaled / size, along, weights * size)
    return error / 2


def _quadratic_form(gram: Array, along: Array, weights: Array) -> float:
    """sum_ij weights_i weights_j K(c_ij), c = gram + along along^T, K as in the docstring above.

    By blocks of rows from the diagonal on: half the matrix, in arrays that stay in the cache.
    """
    total = 0.0
    for start in range(0, len(gram), KERNEL_ROWS):
        stop = start + KERNEL_ROWS
        c = gram[start:stop, start:] + along[start:stop] @ along[start:].T
        np.clip(c, -1, 1, out=c)
        kernel = np.arccos(-c)  # pi - arccos c
        kernel *= c
        c *= c
        np.subtract(1, c, out=c)
        kernel += np.sqrt(c, out=c)
        row = weights[start:stop] @ kernel
        count = len(kernel)
        total += float(row[:count] @ weights[start:stop])
        total += 2 * float(row[count:] @ weights[stop:])
    return total / (2 * np.pi)

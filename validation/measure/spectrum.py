"""Eigenvalues of the features' covariance at finite size."""

from typing import Any

import numpy as np
from numpy.random import default_rng

from replica.problem import Problem, positive
from solvers.results import Array

from ..draws import check_array, draw, seed_count, seed_sequence, size, spiked_model, whole


def eigenvalues(
    problem: Problem,
    *,
    alpha: float,
    dimension: int,
    seeds: int = 1,
    rng: Any = None,
    beta: float | None = None,
) -> Array:
    """Eigenvalues of Phi^T Phi / n, (seeds, p), in increasing order, for fresh draws of all.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network after its step, or the sRF.
    alpha : float
        Samples over input dimension, n/d; n is rounded.
    dimension : int
        Input dimension d.
    seeds : int
        Independent draws.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the problem cannot be simulated.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation.measure import eigenvalues
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> values = eigenvalues(model, alpha=0.5, dimension=40, seeds=2, rng=0)
    >>> values.shape, int((values < 1e-12).sum(axis=1)[0])
    ((2, 40), 20)
    """
    spiked_model(problem, beta)
    (ratio,) = positive("alpha", [alpha])
    d = whole("dimension", dimension, 2, "the input dimension d")
    n = size("alpha", float(ratio), d)
    check_array(n, d)
    seeds = seed_count(seeds)
    spectra = []
    for seed in seed_sequence(rng).spawn(seeds):
        layer, inputs = seed.spawn(2)
        instance = draw(problem, dimension=d, rng=layer, beta=beta)
        X = np.concatenate([X for X, _ in instance.draw_inputs(n, default_rng(inputs))])
        features = instance.features(X)
        p = features.shape[1]
        gram = features @ features.T if n < p else features.T @ features
        values = np.maximum(np.linalg.eigvalsh(gram / n), 0.0)  # below 0 by rounding alone
        spectra.append(np.concatenate([np.zeros(p - len(values)), values]))
    return np.array(spectra)

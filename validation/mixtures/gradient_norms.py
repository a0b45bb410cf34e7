"""The gradient of the first step as a spike and a bulk, and how both shrink with the width.

    G = u v^T + Delta,  u = h_1 w / sqrt(k),  v = X^T y / m,  h_1 = E sigma'(b z):
    docs/theory.md 12

u v^T is what the mean slope h_1 of the activation makes of the labels; Delta is the rest.  With
n, m and k growing together, spikes of theta = n^s (0 <= s < 1) and y = sigma_*(xi . x) of xi along
them, |xi| = 1/sqrt(|Sigma|), the operator norms grow like powers of n, up to logarithms:

    |u v^T| ~ n^((s-1)/2),   |Delta| ~ n^max(s/2-1, j(s-1)/2),  j the lowest of 2, 3, ... with
    h_j = E He_j(z) sigma(b z) != 0 that the labels excite.

|w| -> 1 and E x y ~ sqrt(theta) along the spike give the first.  The part of Delta that is
independent from sample to sample has |w_i| k^(-1/2) m^(-1) |X| sqrt(m), with |X| ~ sqrt(m theta).
The other is the mean of the slope's part He_(j-1)(f . x), whose fields along the spike are
sqrt(theta/n): each degree costs a factor of n^((s-1)/2).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from replica.problem import Activation, activation

from ..draws import seed_sequence
from .hermite_expansion import expand
from .hermite_model import bulk_scale, initial, stepped
from .image_tasks import LearningTask


class Parts(NamedTuple):
    """Operator norms of u v^T and of Delta."""

    spike: float
    bulk: float


def gradient_parts(
    task: LearningTask, *, student: str | Activation, width: int, samples: int, rng: Any = None
) -> Parts:
    """Norms of the two parts of the gradient, of one draw.  docs/theory.md 12

    Parameters are those of :func:`validation.mixtures.side_by_side`.

    Examples
    --------
    >>> from validation.mixtures import gradient_parts, mixture, regression
    >>> task = regression(mixture(100, eigenvalues=5.0, rng=0), aligned=True)
    >>> norms = gradient_parts(task, student="tanh", width=100, samples=100, rng=1)
    >>> norms.spike > norms.bulk
    True
    """
    sigma = activation(student)
    layer, inputs = seed_sequence(rng).spawn(2)
    F, w = initial(task, width, layer)
    X, y = batch = task.draw(samples, default_rng(inputs))
    b = bulk_scale(task)
    slope = expand(sigma, order=2, b=b).coefficients[1] / b  # E z sigma(b z) = b E sigma'(b z)
    u, v = slope * w / np.sqrt(width), X.T @ y / samples
    rest = stepped(F, w, batch, sigma, 1.0) - F - np.outer(u, v)
    return Parts(float(np.linalg.norm(u) * np.linalg.norm(v)), float(np.linalg.norm(rest, 2)))


def predicted_slopes(student: str | Activation, *, spike_exponent: float) -> Parts:
    """Exponents of both norms in n, for labels that excite all degrees.  docs/theory.md 12

    Examples
    --------
    >>> from validation.mixtures import predicted_slopes
    >>> predicted_slopes("tanh", spike_exponent=0.8)
    Parts(spike=-0.1, bulk=-0.3)
    >>> predicted_slopes("relu", spike_exponent=0.0)
    Parts(spike=-0.5, bulk=-1.0)
    """
    h = expand(student, order=8).coefficients
    # a smaller coefficient is none, but for rounding
    j = next((j for j in range(2, 8) if abs(h[j]) > 1e-10), np.inf)
    s = spike_exponent
    return Parts(round((s - 1) / 2, 12), round(max(s / 2 - 1, j * (s - 1) / 2), 12))

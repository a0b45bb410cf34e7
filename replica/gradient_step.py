"""One giant gradient step: (eta, alpha0) -> (r, c, gamma).  THEORY 2, [C] Result 3.1.

The step adds to every row the same multiple of the gradient's rank-one part (the spike:
length r, cosine gamma with the target) and independent noise that, with the part of the
row itself that the step rescales, makes the bulk variance c.  Uniform readout.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .models import GradientStep


class SpikedParameters(NamedTuple):
    """Spike length r, bulk variance c, cosine gamma."""

    r: float
    c: float
    gamma: float


@lru_cache(maxsize=1024)
def spiked_parameters(step: GradientStep) -> SpikedParameters:
    """(r, c, gamma) of the network after ``step``.

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=1.0)
    >>> tuple(round(value, 7) for value in spiked_parameters(step))
    (0.6510892, 1.0769061, 0.5634852)
    """
    if step.eta == 0:
        return SpikedParameters(0.0, 1.0, 0.0)
    student = step.student.moments(0.0, 1.0)
    target = step.target.moments(0.0, 1.0)
    # Eq. (2.1)
    h0 = float(student.mean)
    h1, h_check = step.student.slope_moments()
    h2 = float(step.student.second_hermite())
    h1_star = float(target.first)
    y_bar = float(target.mean) - h0
    v_star = float(target.variance) + h1_star**2 + y_bar**2 + step.noise
    # Eq. (2.2)
    N = float(np.sqrt(h1_star**2 + v_star / step.alpha0))
    r = step.eta * h1 * N
    gamma = h1_star / N if r != 0 else 0.0
    # Eq. (2.3)
    c = (1 + step.eta * h2 * y_bar) ** 2 + step.eta**2 * v_star * h_check / step.alpha0
    return SpikedParameters(r, c, gamma)

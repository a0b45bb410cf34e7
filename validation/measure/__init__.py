"""Measurements inside simulated networks, besides their errors.

The turn of neurons towards the target, the function they have learned, the eigenvalues of
their features' covariance; and the published experiment of one step, with its errors.
"""

from .networks import (
    Alignment,
    MeasuredFunction,
    Spike,
    alignment,
    eigenvalues,
    measured_function,
    spike,
)
from .published_step import SingleStep, initial_layer, single_step

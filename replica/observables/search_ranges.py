"""Where optima are looked for, and how finely: the ranges and scans of penalty, rate and bias.

A scan shows the basins of a function of one variable; :func:`solvers.minima.minima` finds the
minimum in each to about ten digits.
"""

import numpy as np

from solvers.results import Array

# Ends of the ranges searched unless others are given, on logarithmic scales.  An optimum at an end
# is reported as such, so that a range too small for a problem shows.
LAM_RANGE = (1e-8, 1e4)
ETA_RANGE = (1e-2, 1e2)
LAM_SCAN = 40  # penalties scanned: 3 a decade
ETA_SCAN = 12  # learning rates scanned: 3 a decade
LARGEST_BIAS = 8.0  # of either sign, of a trained bias: the scale of pre-activations is 1


def bias_scan(count: int = 65) -> Array:
    """The trained biases that are scanned, (count,); unless given, four to a unit."""
    return np.linspace(-LARGEST_BIAS, LARGEST_BIAS, count)

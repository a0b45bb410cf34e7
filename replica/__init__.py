"""Exact high-dimensional theory of two-layer networks after giant gradient steps.

Problem objects (``GradientStep``, ``SpikedRandomFeatures``, ``Network``) go in; learning
curves come out (``solve``, ``learning_curve``), to machine precision and with an account of
how far they can be trusted.
"""

from . import start as _start  # noqa: F401, before everything else: see there
from .convex import Loss, loss
from .errors import InvalidArgument
from .observables import (
    Calibration,
    Solution,
    best_bounds,
    bounds,
    calibration,
    gradient,
    learned_function,
    learning_curve,
    optimal_eta,
    optimal_lambda,
    solve,
)
from .problem import Activation, MultiIndex, SpikedRandomFeatures, activation, hermite
from .spectra import spectrum
from .steps import AfterStep, GradientStep, Network, Staircase, after_each_step, staircase

__version__ = "0.1.0"
__all__ = [
    "Activation",
    "AfterStep",
    "Calibration",
    "GradientStep",
    "InvalidArgument",
    "Loss",
    "MultiIndex",
    "Network",
    "Solution",
    "SpikedRandomFeatures",
    "Staircase",
    "activation",
    "after_each_step",
    "best_bounds",
    "bounds",
    "calibration",
    "gradient",
    "hermite",
    "learned_function",
    "learning_curve",
    "loss",
    "optimal_eta",
    "optimal_lambda",
    "solve",
    "spectrum",
    "staircase",
]

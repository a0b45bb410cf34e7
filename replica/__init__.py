"""Exact high-dimensional theory of two-layer networks after one giant gradient step.

Problem objects (``GradientStep``, ``SpikedRandomFeatures``, ``Network``) go in; learning
curves come out (``solve``, ``learning_curve``), to machine precision and with an account of
how far they can be trusted.
"""

from .convex.losses import Loss, loss
from .errors import InvalidArgument
from .observables.bounds import best_bounds, bounds
from .observables.calibration import Calibration, calibration
from .observables.gradient import gradient
from .observables.learned import learned_function
from .observables.learning_curve import learning_curve
from .observables.optimum import optimal_eta, optimal_lambda
from .observables.solution import Solution, solve
from .problem.activation import Activation
from .problem.named import activation, hermite
from .problem.srf import SpikedRandomFeatures
from .problem.targets import MultiIndex
from .spectra.spectrum import spectrum
from .steps.gradient_step import GradientStep
from .steps.network import Network
from .steps.several_steps import AfterStep, after_each_step
from .steps.staircase import Staircase, staircase

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

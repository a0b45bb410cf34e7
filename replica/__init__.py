"""Exact high-dimensional theory of two-layer networks after one giant gradient step.

Problem objects (``GradientStep``, ``SpikedRandomFeatures``, ``Network``) go in; learning
curves come out (``solve``, ``learning_curve``), to machine precision and with an account of
how far they can be trusted.
"""

from .activations import Activation
from .curves import Solution, solve
from .errors import InvalidArgument
from .grids import learning_curve
from .models import GradientStep, SpikedRandomFeatures
from .named import activation, hermite
from .network import Network
from .several_steps import AfterStep, after_each_step
from .staircase import Staircase, staircase
from .targets import MultiIndex

__version__ = "0.1.0"
__all__ = [
    "Activation",
    "AfterStep",
    "GradientStep",
    "InvalidArgument",
    "MultiIndex",
    "Network",
    "Solution",
    "SpikedRandomFeatures",
    "Staircase",
    "activation",
    "after_each_step",
    "hermite",
    "learning_curve",
    "solve",
    "staircase",
]

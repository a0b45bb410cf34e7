"""What giant gradient steps make of a network, and what they learn."""

from .finite_step import features_at_dimension
from .gradient_step import GradientStep
from .network import MODELS, Network, NetworkRows, unsuited
from .row_samples import FirstSample, first_sample
from .several_steps import AfterStep, after_each_step
from .stages import Stage, Staircase
from .staircase import THRESHOLD, staircase

__all__ = [
    "MODELS",
    "THRESHOLD",
    "AfterStep",
    "FirstSample",
    "GradientStep",
    "Network",
    "NetworkRows",
    "Stage",
    "Staircase",
    "after_each_step",
    "features_at_dimension",
    "first_sample",
    "staircase",
    "unsuited",
]

"""Giant gradient steps: the network after them, and the directions that it learns."""

from .finite_step import features_at_dimension
from .gradient_step import GradientStep, model_of
from .network import THEORIES, NetworkRows, reason_not_covered
from .row_samples import FirstSampleWeights, first_sample_weights
from .several_steps import AfterStep, after_each_step
from .stages import Stage, Staircase
from .staircase import THRESHOLD, staircase

__all__ = [
    "THEORIES",
    "THRESHOLD",
    "AfterStep",
    "FirstSampleWeights",
    "GradientStep",
    "NetworkRows",
    "Stage",
    "Staircase",
    "after_each_step",
    "features_at_dimension",
    "first_sample_weights",
    "model_of",
    "reason_not_covered",
    "staircase",
]

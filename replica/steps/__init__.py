"""What giant gradient steps make of a network, and what they learn."""

from .first_batch import first_batch, mixed, on_labels, powers, probe
from .gradient_step import GradientStep
from .network import MODELS, Network, unsuited
from .one_step import GROUPS
from .row_steps import FirstSample, first_sample
from .several_steps import AfterStep, after_each_step
from .staircase import DEGREE, THRESHOLD, Stage, Staircase, staircase
from .step import Step

__all__ = [
    "DEGREE",
    "GROUPS",
    "MODELS",
    "THRESHOLD",
    "AfterStep",
    "FirstSample",
    "GradientStep",
    "Network",
    "Stage",
    "Staircase",
    "Step",
    "after_each_step",
    "first_batch",
    "first_sample",
    "mixed",
    "on_labels",
    "powers",
    "probe",
    "staircase",
    "unsuited",
]

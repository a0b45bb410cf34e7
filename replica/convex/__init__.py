"""The saddle point of any convex loss and any law of the labels.  Section 6"""

from . import equations, solve
from .averages import Losses
from .classification import classification_error
from .common_bias import objective, slope_of_loss, slope_of_ridge
from .coordinates import Coordinates
from .equations import Slopes
from .evaluation import Evaluation, Task, assign, concatenate
from .label_tables import LabelTable, Level, first_level, label_table
from .layered import solve_layered
from .losses import LOSSES, Loss, loss
from .own_tables import has_layers, own_tables
from .refinement import solve_refined
from .tau_layers import sharp

__all__ = [
    "LOSSES",
    "Coordinates",
    "Evaluation",
    "LabelTable",
    "Level",
    "Loss",
    "Losses",
    "Slopes",
    "Task",
    "assign",
    "classification_error",
    "concatenate",
    "equations",
    "first_level",
    "has_layers",
    "label_table",
    "loss",
    "objective",
    "own_tables",
    "sharp",
    "slope_of_loss",
    "slope_of_ridge",
    "solve",
    "solve_layered",
    "solve_refined",
]

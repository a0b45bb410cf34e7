"""The saddle point of any convex loss and any law of the labels.  docs/theory.md 6"""

from .averages import Losses
from .classification import classification_error
from .common_bias import objective, slope_of_loss, slope_of_ridge
from .coordinates import Coordinates, Slopes
from .equations import PointsOnTable
from .evaluation import Evaluation, Task, assign, concatenate
from .label_tables import LabelTable, Level, first_level, label_table
from .layered import solve_layered
from .losses import LOSSES, Loss, loss
from .own_tables import has_layers, own_label_tables
from .refinement import solve_refined
from .solve import (
    LOSS_QUADRATURE_TOLERANCE,
    LOSS_RESIDUAL_TOLERANCE,
    slopes_near,
    solve_from,
    solve_points,
)
from .table_change import change_of_overlaps, change_of_points
from .tau_layers import sharp

__all__ = [
    "LOSSES",
    "LOSS_QUADRATURE_TOLERANCE",
    "LOSS_RESIDUAL_TOLERANCE",
    "Coordinates",
    "Evaluation",
    "LabelTable",
    "Level",
    "Loss",
    "Losses",
    "PointsOnTable",
    "Slopes",
    "Task",
    "assign",
    "change_of_overlaps",
    "change_of_points",
    "classification_error",
    "concatenate",
    "first_level",
    "has_layers",
    "label_table",
    "loss",
    "objective",
    "own_label_tables",
    "sharp",
    "slope_of_loss",
    "slope_of_ridge",
    "slopes_near",
    "solve_from",
    "solve_layered",
    "solve_points",
    "solve_refined",
]

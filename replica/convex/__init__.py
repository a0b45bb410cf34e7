"""The saddle point of any convex loss and any law of the labels.  docs/theory.md 6"""

from .averages import losses, scores
from .classification import classification_error, wrong_at_nodes
from .common_bias import objective, slope_in_bias
from .equations import LOSS_RESIDUAL_TOLERANCE
from .evaluation import Evaluation, Task, on_growing_tables
from .held_nodes import errors_near
from .label_tables import ConditionalLabels
from .losses import Loss
from .named_losses import LOSSES, loss
from .refine import LOSS_QUADRATURE_TOLERANCE, solve_convex

__all__ = [
    "LOSSES",
    "LOSS_QUADRATURE_TOLERANCE",
    "LOSS_RESIDUAL_TOLERANCE",
    "ConditionalLabels",
    "Evaluation",
    "Loss",
    "Task",
    "classification_error",
    "errors_near",
    "loss",
    "losses",
    "objective",
    "on_growing_tables",
    "scores",
    "slope_in_bias",
    "solve_convex",
    "wrong_at_nodes",
]

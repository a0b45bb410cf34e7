"""Saddle point of any convex loss and any law of the labels.  docs/theory.md 6"""

from .adaptive_solution import (
    BIAS_SCAN,
    LOSS_QUADRATURE_TOLERANCE,
    errors_on_fixed_nodes,
    slope_in_bias,
    solve_convex,
    training_objective,
)
from .averages import losses, scores
from .classification import answers_of_two, classification_error, error_at_nodes
from .equations import LOSS_RESIDUAL_TOLERANCE, Task
from .label_tables import ConditionalLabels
from .losses import LOSSES, Loss, loss

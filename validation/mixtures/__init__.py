"""Inputs from Gaussian mixtures and images, beside their Hermite model.  docs/theory.md 12"""

from .generator import generate
from .gradient_norms import Parts, gradient_parts, gradient_slopes, predicted_slopes
from .heat_map import relu_error, shared_draws
from .hermite_expansion import (
    EquivalenceWarning,
    HermiteExpansion,
    expand,
    inside,
    needed_order,
)
from .hermite_model import Errors, side_by_side
from .image_files import ImageSet, images
from .image_tasks import ImageTask, image_task
from .mixtures import Mixture, Scaling, mixture, scaling
from .tasks import Classification, LearningTask, Regression, regression

__all__ = [
    "Classification",
    "EquivalenceWarning",
    "Errors",
    "HermiteExpansion",
    "ImageSet",
    "ImageTask",
    "LearningTask",
    "Mixture",
    "Parts",
    "Regression",
    "Scaling",
    "expand",
    "generate",
    "gradient_parts",
    "gradient_slopes",
    "image_task",
    "images",
    "inside",
    "mixture",
    "needed_order",
    "predicted_slopes",
    "regression",
    "relu_error",
    "scaling",
    "shared_draws",
    "side_by_side",
]

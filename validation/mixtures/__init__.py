"""Inputs from Gaussian mixtures and images, beside their Hermite model.  Section 12"""

from .heat_map import shared_draws
from .hermite_expansion import EquivalenceWarning, inside, needed_order
from .hermite_model import side_by_side
from .images import image_task, images
from .mixtures import Scaling, mixture, regression, scaling

__all__ = [
    "EquivalenceWarning",
    "Scaling",
    "image_task",
    "images",
    "inside",
    "mixture",
    "needed_order",
    "regression",
    "scaling",
    "shared_draws",
    "side_by_side",
]

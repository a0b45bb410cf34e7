"""Inputs from Gaussian mixtures and images, beside their Hermite model.  docs/theory.md 12"""

from .hermite_expansion import EquivalenceWarning, HermiteExpansion, expand, needed_order, proved
from .hermite_model import (
    Errors,
    Parts,
    closed_form,
    gradient_parts,
    in_theory,
    predicted_slopes,
    side_by_side,
)
from .image_tasks import ImageSet, ImageTask, LearningTask, image_task, images
from .mixtures import Mixture, MixtureTask, Scaling, classification, mixture, regression, scaling

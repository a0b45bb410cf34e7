"""Inputs from Gaussian mixtures and images, beside their Hermite model.  docs/theory.md 12"""

from .hermite_model import (
    EquivalenceWarning,
    Errors,
    HermiteExpansion,
    closed_form,
    expand,
    in_theory,
    needed_order,
    order_within,
    proved,
    side_by_side,
)
from .image_tasks import ImageSet, ImageTask, LearningTask, image_task, images
from .spiked_mixtures import (
    Mixture,
    MixtureTask,
    Scaling,
    classification,
    mixture,
    regression,
    scaling,
)

"""Inputs from Gaussian mixtures and images, beside their Hermite model.  docs/theory.md 12"""

from .closed_form import closed_form
from .gradient_norms import Parts, gradient_parts, predicted_slopes
from .hermite_expansion import EquivalenceWarning, HermiteExpansion, expand, needed_order, proved
from .hermite_model import Errors, in_theory, side_by_side
from .image_files import ImageSet, images
from .image_tasks import ImageTask, LearningTask, image_task
from .mixtures import Mixture, MixtureTask, Scaling, classification, mixture, regression, scaling

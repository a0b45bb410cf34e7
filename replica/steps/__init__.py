"""Giant gradient steps: the network after them, and the directions that it learns."""

from .finite_step import features_at_dimension
from .gradient_step import GradientStep, model_of
from .network import THEORIES, NetworkRows, reason_not_covered
from .row_samples import FirstSampleWeights, Kinds, first_sample_weights
from .row_steps import row_steps as batches_of_steps
from .several_steps import AfterStep, after_each_step, mean_output
from .staircase import THRESHOLD, Stage, Staircase, staircase
from .step_fields import Step

"""First layers, inputs and labels of finite size, drawn at random."""

from . import arrays
from .arguments import MOST, check_array, seed_count, seed_sequence, size, streams, whole
from .conditional_gaussian import draw_gaussian
from .features import Instance, draw, gradient_step, spiked_model, spread, trajectory
from .given import as_given, first_layer, instance_of
from .inputs import INPUT_BLOCK, gaussian_inputs, mixed_inputs

"""First layers, inputs and labels of finite size, drawn at random."""

from .arguments import HUGE, check_array, seed_count, seed_sequence, size, streams, whole_number
from .features import (
    INPUT_BLOCK,
    Instance,
    as_given,
    draw,
    draw_gaussian,
    first_layer,
    gaussian_inputs,
    gradient_step,
    instance_of,
    mixed_inputs,
    spiked_model,
    spread,
    trajectory,
)

"""First layers, inputs and labels of finite size, drawn at random."""

from .arguments import (
    HUGE,
    byte_count,
    check_array,
    fraction,
    seed_count,
    seed_sequence,
    size,
    streams,
    whole_number,
)
from .features import INPUT_BLOCK, Instance
from .first_layers import (
    as_given,
    draw,
    draw_gaussian,
    first_layer,
    gradient_step,
    instance_of,
    spiked_model,
    spread,
    trajectory,
)

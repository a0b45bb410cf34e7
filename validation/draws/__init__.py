"""First layers, inputs and labels of finite size, drawn at random."""

from .arguments import MOST, check_array, seed_count, seed_sequence, size, streams, whole
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

__all__ = [
    "INPUT_BLOCK",
    "MOST",
    "Instance",
    "as_given",
    "check_array",
    "draw",
    "draw_gaussian",
    "first_layer",
    "gaussian_inputs",
    "gradient_step",
    "instance_of",
    "mixed_inputs",
    "seed_count",
    "seed_sequence",
    "size",
    "spiked_model",
    "spread",
    "streams",
    "trajectory",
    "whole",
]

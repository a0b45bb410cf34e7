"""First layers, inputs and labels of finite size, drawn at random."""

from . import arrays
from .arguments import check_array, seed_count, seed_sequence, size, whole
from .arrays import check_device
from .conditional_gaussian import draw_gaussian
from .features import Instance, draw, gradient_step, spiked_model, spread, trajectory
from .inputs import INPUT_BLOCK, gaussian_inputs

__all__ = [
    "INPUT_BLOCK",
    "Instance",
    "arrays",
    "check_array",
    "check_device",
    "draw",
    "draw_gaussian",
    "gaussian_inputs",
    "gradient_step",
    "seed_count",
    "seed_sequence",
    "size",
    "spiked_model",
    "spread",
    "trajectory",
    "whole",
]

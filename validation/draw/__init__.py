"""Finite-size first layers and inputs, drawn at random."""

from . import arrays
from .arguments import byte_count, fraction, seed_sequence, size, whole
from .arrays import check_device
from .conditional_gaussian import draw_gaussian
from .features import Instance, draw, gradient_step, spiked_model, spread, trajectory
from .inputs import BLOCK, gaussian_inputs

__all__ = [
    "BLOCK",
    "Instance",
    "arrays",
    "byte_count",
    "check_device",
    "draw",
    "draw_gaussian",
    "fraction",
    "gaussian_inputs",
    "gradient_step",
    "seed_sequence",
    "size",
    "spiked_model",
    "spread",
    "trajectory",
    "whole",
]

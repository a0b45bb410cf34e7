"""Figures of the documentation and of the papers, one module each.

A module has ``data(quick, progress)``, which computes plain values for JSON, and
``draw(data)``, which makes the picture of them.  ``quick`` is a small version that takes
seconds.  A family of figures is one module, of which ``data`` takes the panel first and keeps
its finished cells in a folder.
"""

from importlib import import_module
from types import ModuleType

from replica.errors import InvalidArgument

# Seconds that the quick version takes on two ordinary cores, some times that on busy ones.
FIGURES = {
    "classification": 8,
    "ladder": 4,
    "learnable": 6,
    "network": 6,
    "network-steps": 9,
    "network-students": 17,
    "readout-laws": 9,
    "robust-losses": 6,
    "sample-exponent": 4,
    "spectra": 10,
    "staircase": 6,
    "steps": 4,
}
PANEL_SECONDS = 10  # likewise, of each panel of a family
FIGURE_FAMILIES = {
    "mixtures": {
        "1a": "Network and Hermite model against the width of the network.",
        "1b": "The same against alpha_s, how the spread is split between data and features.",
        "1c": "The same against beta_s, the spread of the data.",
        "2a": "The same against the alignment of two spikes.",
        "2b": "The same against the share of the first component.",
        "2c": "The same against the number of spikes of each component.",
        "3": "Network and Hermite model on two classes of images (--images) against the width.",
        "4": "A heat map over alpha_s and beta_s of what the network gains on its Hermite model.",
        "5": "Slices of the heat map against beta_s, with three activations.",
        "6": "Training errors of network and Hermite model against the width.",
    }
}
PANELS = {
    f"{family}/{panel}": text
    for family, panels in FIGURE_FAMILIES.items()
    for panel, text in panels.items()
}

__all__ = ["FIGURES", "PANELS", "described", "figure", "seconds"]


def described() -> dict[str, str]:
    """Of every figure what it shows, in a line."""
    lines = {name: (figure(name).__doc__ or "").partition("\n")[0] for name in FIGURES}
    return lines | PANELS


def seconds(name: str) -> int:
    """What the quick version of a figure takes, about."""
    return FIGURES.get(name, PANEL_SECONDS)


def figure(name: str) -> ModuleType:
    """The module of the figure ``name``.

    Raises
    ------
    InvalidArgument
        If there is no such figure.

    Examples
    --------
    >>> figure("readout-laws").__name__
    'validation.figures.readout_laws'
    """
    if name not in FIGURES | PANELS:
        known = ", ".join(FIGURES | PANELS)
        raise InvalidArgument("the name of a figure", name or None, f"one of {known}")
    return import_module(f"{__name__}.{name.partition('/')[0].replace('-', '_')}")

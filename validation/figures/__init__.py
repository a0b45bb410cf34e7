"""Figures of the documentation and of the papers, one module each.

A module has ``data(quick, progress)``, which computes plain values for JSON, and
``draw(data)``, which makes the picture of them.  ``quick`` is a small version that takes
seconds.  A family of figures is one module, of which ``data`` takes the panel first and keeps
its finished cells in a folder.
"""

from importlib import import_module
from types import ModuleType

from replica.errors import InvalidArgument

FIGURES = (
    "classification",
    "ladder",
    "learnable",
    "network",
    "network-steps",
    "network-students",
    "readout-laws",
    "robust-losses",
    "sample-exponent",
    "spectra",
    "staircase",
    "steps",
)
FIGURE_FAMILIES = {"mixtures": ("1a", "1b", "1c", "2a", "2b", "2c", "3", "4", "5", "6")}
PANELS = tuple(
    f"{family}/{panel}" for family, panels in FIGURE_FAMILIES.items() for panel in panels
)

__all__ = ["FIGURES", "PANELS", "figure"]


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
    if name not in FIGURES + PANELS:
        raise InvalidArgument("name", name, f"one of {', '.join(FIGURES + PANELS)}")
    return import_module(f"{__name__}.{name.partition('/')[0].replace('-', '_')}")

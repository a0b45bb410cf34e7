"""Figures of the documentation and of the papers, one module each.

A module has ``data(quick, progress)``, which computes plain values for JSON, and
``draw(data)``, which makes the picture of them.  ``quick`` is a small version that takes
seconds.
"""

from importlib import import_module
from types import ModuleType

from replica.errors import InvalidArgument

NAMES = (
    "classification",
    "ladder",
    "learnable",
    "network",
    "readout-laws",
    "robust-losses",
    "sample-exponent",
    "spectra",
    "staircase",
    "steps",
)


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
    if name not in NAMES:
        raise InvalidArgument("name", name, f"one of {', '.join(NAMES)}")
    return import_module(f"{__name__}.{name.replace('-', '_')}")

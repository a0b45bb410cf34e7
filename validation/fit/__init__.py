"""The readout of a finite-size network.  Eq. (1.2)"""

from . import convex_readout, measures, readout, ridge
from .ridge import Fits, predict

__all__ = [
    "Fits",
    "convex_readout",
    "measures",
    "predict",
    "readout",
    "ridge",
]

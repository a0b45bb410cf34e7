"""The readout of a finite-size network, fitted and evaluated.  Eq. (1.2)"""

from .convex_readout import fit_convex_readout
from .errors import mean_losses, squared_errors
from .readout import fit_readout
from .ridge import Blocks, Fits, fit_ridge, predict, routes

__all__ = [
    "Blocks",
    "Fits",
    "fit_convex_readout",
    "fit_readout",
    "fit_ridge",
    "mean_losses",
    "predict",
    "routes",
    "squared_errors",
]

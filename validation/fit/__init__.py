"""The readout of a finite-size network, fitted and evaluated.  Eq. (1.2)"""

from .convex_readout import fit_convex_readout
from .readout import fit_readout, mean_losses, squared_errors
from .ridge import Blocks, Fits, fit_ridge, predict

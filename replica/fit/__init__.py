"""The readout of finite size, fitted and evaluated.  Eq. (1.2)"""

from .convex_readout import fit_convex_readout
from .readout import (
    Blocks,
    Fits,
    fit_readout,
    fit_ridge,
    mean_losses,
    misclassified,
    predict,
    squared_error,
    squared_errors,
)

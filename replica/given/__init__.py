"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .equations import Posterior
from .evaluate import TOLERANCE, ReadoutErrors, ReadoutPoints, derivatives, evaluate
from .first_layer import FirstLayer
from .sample import FeatureSample
from .strata import HermiteStrata

__all__ = [
    "TOLERANCE",
    "FeatureSample",
    "FirstLayer",
    "HermiteStrata",
    "Posterior",
    "ReadoutErrors",
    "ReadoutPoints",
    "derivatives",
    "evaluate",
]

"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate import TOLERANCE, ReadoutErrors, ReadoutPoints, evaluate
from .first_layer import FirstLayer
from .sample import FeatureSample

__all__ = [
    "TOLERANCE",
    "FeatureSample",
    "FirstLayer",
    "ReadoutErrors",
    "ReadoutPoints",
    "evaluate",
]

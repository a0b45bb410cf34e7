"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate import Errors, Points, evaluate
from .first_layer import FirstLayer
from .sample import FeatureSample

__all__ = ["Errors", "FeatureSample", "FirstLayer", "Points", "evaluate"]

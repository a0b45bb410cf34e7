"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate import ReadoutErrors, ReadoutPoints, evaluate
from .first_layer import FirstLayer
from .sample import FeatureSample

__all__ = ["FeatureSample", "FirstLayer", "ReadoutErrors", "ReadoutPoints", "evaluate"]

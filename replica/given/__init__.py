"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate import Errors, Points, evaluate
from .models import FeatureSample, FirstLayer

__all__ = ["Errors", "FeatureSample", "FirstLayer", "Points", "evaluate"]

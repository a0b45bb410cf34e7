"""The spectrum of the features.  Section 9"""

from .spectrum import Spectrum, spectrum

__all__ = [
    "Spectrum",
    "spectrum",
]

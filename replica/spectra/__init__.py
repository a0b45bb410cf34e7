"""The spectrum of the features.  docs/theory.md 9"""

from .spectrum import Spectrum, spectrum

__all__ = [
    "Spectrum",
    "spectrum",
]

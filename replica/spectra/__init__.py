"""The spectrum of the features.  docs/theory.md 9"""

from .spectrum import SPECTRUM_TIME, Spectrum, spectrum

__all__ = [
    "SPECTRUM_TIME",
    "Spectrum",
    "spectrum",
]

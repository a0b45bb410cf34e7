"""The spectrum of the features.  docs/theory.md 9"""

from .density import SpectralDensity
from .layer import LayerSpectrum
from .spectrum import SPECTRUM_TIME, Spectrum, spectrum

__all__ = [
    "SPECTRUM_TIME",
    "LayerSpectrum",
    "SpectralDensity",
    "Spectrum",
    "spectrum",
]

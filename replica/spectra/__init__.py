"""The spectrum of the features.  docs/theory.md 9"""

from .density import SpectralDensity
from .layer import LayerSpectrum
from .spectrum import Spectrum, spectrum

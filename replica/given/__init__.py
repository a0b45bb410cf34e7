"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate import TOLERANCE, ReadoutPoints, check_memory, derivatives, evaluate
from .first_layer import FirstLayer
from .gaussian import FeatureMoments
from .sample import FEWEST_OF_STRATUM, MOST_ROWS, FeatureSample
from .samples import Given, asked, needs_alpha, samples_of
from .solve import equations_of
from .strata import Posterior, Strata

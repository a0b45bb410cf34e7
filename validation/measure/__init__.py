"""What is measured inside simulated networks, besides their errors.

How their neurons turn towards the target, the function they have learned, the eigenvalues of
their features' covariance; and the published experiment of one step, with its errors.
"""

from .learned import MeasuredFunction, measured_function
from .neurons import Alignment, Spike, alignment, spike
from .published_step import SingleStep, initial_layer, single_step
from .spectrum import eigenvalues

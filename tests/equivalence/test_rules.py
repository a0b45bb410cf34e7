"""Rules of kappa: the layers that a problem is known to have."""

from dataclasses import replace

import numpy as np
import pytest

from replica.equivalence import known_layers
from tests.convex.problems import SIGN


def test_layers_known_beforehand():
    """A kink of the target is blurred by tau, a neuron's by its other inputs."""
    (neuron, target) = known_layers(SIGN)
    assert neuron == pytest.approx((0.0, np.sqrt(1.3) / 1.5))
    assert target == pytest.approx((0.0, 0.75))
    assert known_layers(replace(SIGN, r=5e-324))[0][1] == np.inf

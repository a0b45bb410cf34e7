"""No false alarm: a theory that is exact is called so, of few draws and of outputs that are 0."""

import numpy as np
import pytest

from replica import GaussianMixture, GradientStep
from tests.problems import PUBLISHED
from validation import compare


def test_silent_networks_guess():
    """All relus are off for a third of these inputs, whose output is 0: half of them are wrong."""
    law = GaussianMixture(means=[[2.0], [-2.0]])
    classes = dict(student="relu", target="classes:1,-1", inputs=law)
    step = GradientStep(**classes, alpha0=2, eta=2.0)
    found = compare(step, alpha=2.0, lam=0.1, beta=1.0, dimension=200, seeds=8, rng=3)
    assert not found.disagrees, found.verdict
    assert found.checks["classification_error"].simulated.item() == pytest.approx(0.28, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 4, 6])
def test_chance_is_seldom_called_disagreement(seeds):
    """The sRF is exact but for 1/d: of 20 comparisons at d = 200 none disagrees.  Three at most are
    called not equal: one in a hundred is, for each of three means that are judged."""
    found = [
        compare(PUBLISHED, alpha=[0.5, 1, 2, 3], lam=0.1, beta=1.0, dimension=200, seeds=seeds,
                simulated="srf", rng=k)
        for k in range(20)
    ]  # fmt: skip
    assert not any(one.disagrees for one in found)
    assert np.sum(["not equal" in one.verdict for one in found]) <= 3

"""Successive approximations: what is computed, when it stops, what is said of the answer."""

import numpy as np
import pytest

from solvers.successive_refinement import settle


def gap(before, now):
    return abs(now - before)


@pytest.mark.parametrize(
    ("candidates", "compute", "tol", "value", "change", "met"),
    [
        # the finer of two that agree; a change equal to the tolerance is small enough
        ([1, 2, 3, 4], lambda n: 2.0**-n, 0.13, 0.125, 0.125, True),
        ([1, 2], lambda n: 2.0**-n, 0.25, 0.25, 0.25, True),
        # candidates that run out leave the last answer; a single one is never enough
        ([1, 2, 3], lambda n: 2.0**-n, 1e-6, 0.125, 0.125, False),
        ([7], float, 1e6, 7.0, np.inf, False),
        # an undefined change is not a small one
        ([np.nan, 1.0, 1.0], float, 1.0, 1.0, 0.0, True),
        ([1.0, np.nan], float, np.inf, np.nan, np.nan, False),
    ],
)
def test_answers(candidates, compute, tol, value, change, met):
    left = iter(candidates)
    settled = settle(left, compute, gap, tol=tol)
    assert list(left) == [4] * (len(candidates) == 4)  # none after the one that settles it
    assert settled.converged == met
    np.testing.assert_equal((settled.value, settled.change), (value, change))

"""The page on given layers at tiny sizes, and those of its limits that hold at any."""

import numpy as np
import pytest

from benchmarks import given_limits


@pytest.mark.parametrize("limit", ["linear_student", "rows_without_target"])
def test_limits_are_exact(limit):
    found, known, bar = getattr(given_limits, limit)(30)
    assert bar <= 1e-4
    np.testing.assert_allclose(found, known, rtol=bar)

"""Least squares of many small systems."""

import numpy as np
import pytest

from solvers.linear import least_squares


@pytest.mark.parametrize(("rows", "columns"), [(9, 4), (5, 5), (4, 5), (3, 8)])
def test_least_squares_of_any_shape(rows, columns):
    """More unknowns than equations have the least norm, of columns scaled to norm 1."""
    rng = np.random.default_rng(rows)
    design = rng.standard_normal((3, rows, columns)) * 10.0 ** np.arange(columns)
    target = rng.standard_normal((3, rows))
    scale = np.linalg.norm(design, axis=1)
    scaled = np.linalg.pinv(design / scale[:, None]) @ target[..., None]
    # condition numbers of some tens
    np.testing.assert_allclose(least_squares(design, target), scaled[..., 0] / scale, rtol=1e-11)

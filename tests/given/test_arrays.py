"""Strata whose matrices are arrays of another library than numpy: the same equations."""

import numpy as np
import pytest

from replica.convex import LOSSES
from replica.given import FirstLayer
from replica.given.evaluate import errors_at
from replica.given.solve import solve_point


@pytest.mark.parametrize("of", ["square", "absolute"])
def test_the_array_standard_is_enough(of):
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((30, 20)) / 4
    layer = FirstLayer(weights=weights, student="relu", target="sin", directions=np.eye(20)[0])
    given = layer.stratified(0)
    moved = given._replace(strata=given.strata.on(lambda x: xp.asarray(x, dtype=xp.float64)))
    here, there = (solve_point(each, LOSSES[of], 40, 0.1) for each in (given, moved))
    assert isinstance(there.posterior.response, type(xp.asarray(0.0)))
    expected = errors_at(given, here, LOSSES[of])
    assert errors_at(moved, there, LOSSES[of]) == pytest.approx(expected, rel=1e-7, nan_ok=True)

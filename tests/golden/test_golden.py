"""Today's results against the frozen ones.

Where another method moves numbers within what they are known to, let ``compare`` of their method in
``points`` say so; to replace them, run ``python -m tests.golden``.
"""

import numpy as np
import pytest

from . import frozen
from .points import METHODS, POINTS

FROZEN = frozen.read()
CLASSIFICATION = 1e-8  # accuracy of the classification error of ridge regression


def bar(name, quantity):
    """How far a quantity may be off: relative to its largest entry, or to 1 where it vanishes."""
    point, known = POINTS[name], FROZEN[name]["numbers"]
    method, convex = METHODS[point.method], point.method.startswith("convex")
    size = np.abs(np.nan_to_num(np.array(known[quantity], dtype=float))).max(initial=0.0) or 1.0
    if point.method == "gradient":  # errors are rounded to 1e-16, over steps of some thousandths
        size = max(size, 1e-4)
    if method.compare == "tolerance":
        return method.tolerance * size
    if convex and quantity == "train_loss":  # known relative to this where it is larger
        size = max(size, 0.01 * known["loss_error"])
    if convex and quantity == "train_error":  # and this: labels have a power of 1 to 10
        size = max(size, 1e-4)
    accuracy = FROZEN[name]["accuracy"] + method.accuracy  # both may be off
    return max(accuracy, CLASSIFICATION * (quantity == "classification_error")) * size


def test_every_point_is_frozen():
    assert list(FROZEN) == list(POINTS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * point.slow) for name, point in POINTS.items()],
)
def test_golden(name):
    found, known = POINTS[name].numbers(), FROZEN[name]["numbers"]
    assert set(found) - set(frozen.REPORTED) == set(known)
    for quantity, numbers in known.items():
        mine, theirs = (np.array(part, dtype=float) for part in (found[quantity], numbers))
        assert mine.shape == theirs.shape, quantity
        np.testing.assert_allclose(
            mine, theirs, rtol=0, atol=bar(name, quantity), err_msg=f"{name}: {quantity}"
        )

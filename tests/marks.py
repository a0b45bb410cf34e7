"""Marks of values."""

import pytest


def slow(*values):
    """Values of a parameter, or tuples of several, that the slow tests alone have."""
    each = (one if isinstance(one, tuple) else (one,) for one in values)
    return [pytest.param(*one, marks=pytest.mark.slow) for one in each]

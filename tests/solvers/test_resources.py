"""Deadlines: of what is called under them, of nested ones, and after them."""

import time

import numpy as np
import pytest

from solvers.resources import GivenUp, check_time, deadline, time_left
from solvers.results import ConvergenceError, Status


def test_a_deadline_holds_for_what_is_called_under_it():
    check_time()
    assert time_left() == np.inf
    with deadline(1e-3):
        time.sleep(2e-3)
        with pytest.raises(GivenUp, match="time_limit") as raised, deadline(60):
            check_time()
        assert time_left() < 0
    assert raised.value.status is Status.TIME
    assert str(Status.TIME) == (
        "not converged: it took longer than it may (a larger time_limit gives it more seconds)"
    )
    assert isinstance(raised.value, ConvergenceError)
    check_time()


def test_a_deadline_ends_with_an_exception():
    with pytest.raises(KeyError), deadline(1e-9):
        raise KeyError
    assert time_left() == np.inf

"""Executors and clusters that fail: the library's own error, and a store that goes on exactly."""

from concurrent.futures import CancelledError, Executor, Future

import numpy as np
import pytest

from solvers import executors
from tests.validation.test_engine import MODEL, OPTIONS
from validation import simulate
from validation.run import WorkerDied


class Failing(Executor):
    """Runs ``good`` cells, and raises ``error`` in the place of the next one's result, or as it is
    submitted."""

    def __init__(self, good, error, at_once=False):
        self.left, self.error, self.at_once = good, error, at_once

    def submit(self, function, /, *arguments):
        future = Future()
        if self.left:
            future.set_result(function(*arguments))
        elif self.at_once:
            raise self.error
        else:
            future.set_exception(self.error)
        self.left -= self.left > 0
        return future


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    "error", [CancelledError(), RuntimeError("cannot schedule"), OSError("Timed out"), KeyError(1)]
)
def test_whatever_an_executor_raises(tmp_path, error, at_once):
    expected = simulate(MODEL, **OPTIONS)
    with pytest.raises(WorkerDied, match=f"the executor failed \\({type(error).__name__}"):
        simulate(MODEL, store=tmp_path, executor=Failing(2, error, at_once), **OPTIONS)
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.errors["test_error"], expected.errors["test_error"])


def test_an_error_of_a_cell_is_its_own():
    """In an executor as in this process: it is not the executor that failed."""
    with pytest.raises(ZeroDivisionError):
        list(executors.run_all((0).__rfloordiv__, [1, 2], Failing(2, None), 1))

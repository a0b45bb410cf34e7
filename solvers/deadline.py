"""The time that a computation may take, which it looks at as it goes.

A deadline holds for all that is called under it, however deep: what may take long calls
``check_time`` as often as it can be given up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

import numpy as np

from .results import ConvergenceError, Status

_deadline = ContextVar("deadline", default=np.inf)  # as ``monotonic`` tells it


class GivenUp(ConvergenceError):
    """What takes longer, or more memory, than it may: with a ``Status`` that says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value, None)
        self.status = status


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is called inside is given up after so many seconds, or at a deadline that is earlier.

    Examples
    --------
    >>> with within(60):
    ...     with within(3600):
    ...         time_left() <= 60
    True
    """
    token = _deadline.set(min(_deadline.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def time_left() -> float:
    """Seconds to the deadline: negative past it, infinite where there is none."""
    return _deadline.get() - monotonic()


def check_time() -> None:
    """Raise ``GivenUp`` past the deadline."""
    if monotonic() > _deadline.get():
        raise GivenUp(Status.TIME)

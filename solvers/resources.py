"""The threads and the time that a computation may take.

One BLAS thread in a cell of work: sums are then in the same order on every machine of a kind, and
as many cells run beside each other as there are cores.

A deadline holds for all that is called under it, however deep: what may take long calls
``check_time`` as often as it can be given up.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from time import monotonic
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from .results import ConvergenceError, Status

TIME_LIMIT = 20.0  # seconds a call, or a point of a curve: more than any ordinary one takes

_lock = threading.Lock()
_inside: list[Any] = []
_deadline = ContextVar("deadline", default=np.inf)  # as ``monotonic`` tells it


_libraries = cache(ThreadpoolController)  # of BLAS, that are loaded: found once


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the process to one BLAS thread until the last of the threads inside has left.

    (The limit is the process's: a thread that left first would lift it for the others.)
    """
    with _lock:
        if not _inside:
            _inside.append(_libraries().limit(limits=1))
        _inside.append(None)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            if len(_inside) == 1:
                _inside.pop().restore_original_limits()


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

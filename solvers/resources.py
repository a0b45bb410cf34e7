"""Threads, time and memory of a computation: one BLAS thread, a deadline, memory at hand.

A cell of work uses one BLAS thread.  Sums are then in the same order on every machine of a kind,
and as many cells run in parallel as there are cores.

A deadline holds for all functions that are called under it, at any depth.  Long computations call
``check_time`` wherever they can be stopped.
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

TIME_LIMIT = 20.0  # seconds for a call, or for a point of a curve; ordinary ones take less
CACHE_NUMBERS = 2**17  # floats of 8 bytes that stay in the processor's cache: 1 MB

# Freed at once: from then on glibc keeps that much at hand.  Else it returns arrays of some 100 KiB
# to the system and takes them again page by page, 40 % of the time of 1 000 points.
np.empty(2**21)

_lock = threading.Lock()
_threads_inside: list[None] = []
_limited: list[tuple[Any, int]] = []  # BLAS libraries, and the threads that they had
_deadline = ContextVar("deadline", default=np.inf)  # in the time of ``monotonic``


_blas = cache(ThreadpoolController)  # the loaded BLAS libraries, found once


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the process to one BLAS thread, until the last Python thread leaves the context.

    The limit is global to the process, so that the first thread to leave must not lift it.
    """
    with _lock:
        if not _threads_inside:
            for blas_library in _blas().lib_controllers:
                if (blas_threads := blas_library.num_threads) > 1:
                    _limited.append((blas_library, blas_threads))
                    blas_library.set_num_threads(1)
        _threads_inside.append(None)
    try:
        yield
    finally:
        with _lock:
            _threads_inside.pop()
            while _limited and not _threads_inside:
                blas_library, blas_threads = _limited.pop()
                blas_library.set_num_threads(blas_threads)


class GivenUp(ConvergenceError):
    """Error raised where a computation reaches a limit of time or memory; ``status`` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value, None)
        self.status = status


@contextmanager
def deadline(seconds: float) -> Iterator[float]:
    """Set a deadline for all calls inside, and give it in the time of ``monotonic``: ``seconds``
    from now, or an outer one that is earlier.

    Examples
    --------
    >>> with deadline(60):
    ...     with deadline(3600):
    ...         time_left() <= 60
    True
    """
    deadline_time = min(_deadline.get(), monotonic() + seconds)
    deadline_token = _deadline.set(deadline_time)
    try:
        yield deadline_time
    finally:
        _deadline.reset(deadline_token)


def time_left() -> float:
    """Seconds until the deadline: negative past it, infinite without one."""
    return _deadline.get() - monotonic()


def check_time() -> None:
    """Raise ``GivenUp`` past the deadline."""
    if monotonic() > _deadline.get():
        raise GivenUp(Status.TIME)

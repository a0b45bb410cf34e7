"""One BLAS thread in a cell of work: sums are then in the same order on every machine of a kind,
and as many cells run beside each other as there are cores."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[Any] = []


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """What sets the number of threads of the BLAS libraries that are loaded."""
    return ThreadpoolController()


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

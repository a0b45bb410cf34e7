"""Runs independent cells of work: in this process, in a pool of its own, or in any executor.

The pool is one of loky's: spawned processes (never forked: threads of numerical libraries do not
survive a fork) that do not import the script, so that it needs no guard, and take functions of any
kind.  They end with their parent, even one that is killed.  A worker that dies - out of memory,
say - costs the cells it was on: they are run again in a new pool.
"""

import errno
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pipe, current_process
from multiprocessing.connection import Connection
from typing import Any

logger = logging.getLogger(__name__)

MAX_DEATHS = 3  # pools in a row that break before any of their cells is done: not by accident

Results = Iterator[tuple[int, Any]]


class WorkerDied(ChildProcessError):
    """Workers died again and again, or an executor given by the caller failed."""


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def results(
    task: Callable[[int], Any], cells: Sequence[int], executor: Executor | None, workers: int
) -> Results:
    """(cell, task(cell)) of every cell, as they are done.

    Parameters
    ----------
    task : callable
    cells : sequence of int
    executor : Executor, optional
        Where to run them; otherwise ``workers`` spawned processes, or this one: if 1, or where this
        one is a daemon, which may have no processes.

    Raises
    ------
    WorkerDied
    """
    if executor is None and workers > 1 and current_process().daemon:
        logger.warning("A daemonic process may start no others. Running in one process.")
        workers = 1
    if executor is None and workers > 1:
        yield from _in_pools(task, cells, workers)
    elif executor is None:
        yield from ((cell, task(cell)) for cell in cells)
    else:
        for cell, (result, error) in _outcomes(executor, task, cells):
            if error is not None:
                raise error
            yield cell, result


def _outcomes(executor: Executor, task: Callable[[int], Any], cells: Sequence[int]) -> Results:
    """What ``_attempt`` returns, from an executor; whatever that raises is no error of a cell.

    Raises
    ------
    WorkerDied
    """
    futures: dict[Future[Any], int] = {}
    try:
        yield from _completed(executor, partial(_attempt, task), cells, futures)
    except Exception as error:  # each executor has its own
        what = " ".join(f"{type(error).__name__} {error}".split())
        raise _died(f"the executor failed ({what:.200})") from error
    finally:
        for future in futures:
            future.cancel()


def _attempt(task: Callable[[int], Any], cell: int) -> tuple[Any, Exception | None]:
    """The result of a cell, or the error that it raises itself."""
    try:
        return task(cell), None
    except Exception as error:
        return None, error


def _completed(
    executor: Executor,
    task: Callable[[int], Any],
    cells: Sequence[int],
    futures: dict[Future[Any], int],
) -> Results:
    """The results from an executor; ``futures``, empty at first, are those that are left."""
    for cell in cells:
        futures[executor.submit(task, cell)] = cell
    for future in as_completed(futures):
        yield futures.pop(future), future.result()


def _in_pools(task: Callable[[int], Any], cells: Sequence[int], workers: int) -> Results:
    """The results from pools of our own: a new one takes over when one breaks."""
    left, deaths = list(cells), 0
    while left:
        try:
            with _pool(min(workers, len(left))) as pool:
                # a pool cancels what has not begun itself: of what others have, it may complain
                for cell, result in _completed(pool, task, left, {}):
                    left.remove(cell)
                    deaths = 0
                    yield cell, result
        except BrokenExecutor as error:
            deaths += 1
            if deaths == MAX_DEATHS:
                raise _died(f"some died {MAX_DEATHS} times in a row") from error
        except pickle.PicklingError as error:
            logger.warning("%s Running in one process.", error)
            yield from ((cell, task(cell)) for cell in left)
            return


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """A pool of spawned processes, which end with it: their results are here, or not wanted."""
    from loky import ProcessPoolExecutor  # only where there is a pool

    watched, held = Pipe(duplex=False)
    with watched, held:
        pool = ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(watched,))
        try:
            yield pool
        finally:
            pool.shutdown(kill_workers=True)


def _start_worker(watched: Connection) -> None:
    """Leave Ctrl-C to the parent, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, args=(watched,), daemon=True).start()


def _follow_parent(watched: Connection) -> None:
    """Wait until nobody holds the other end of the pipe, then end this process at once."""
    watched.poll(None)
    os._exit(1)


def _died(what: str) -> WorkerDied:
    """The error to raise, ``what`` happened, with what can be done about it."""
    advice = (
        "memory may have run out (give less, or fewer workers), or the machine or the cluster that "
        "they were on is gone; what was finished is in the store, if there is one, and the same "
        "call with a new executor goes on from there exactly"
    )
    return WorkerDied(errno.ECHILD, f"{what}: {advice}", "workers")

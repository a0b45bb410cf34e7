"""Parallel execution of independent cells of work: in this process, a process pool or an executor.

The pool is one of loky's.  Its processes are spawned, not forked, as threads of numerical libraries
do not survive a fork.  They do not import the script, so that it needs no guard, and they accept
functions of any kind.  They end with their parent, even if that is killed.  The cells of a worker
that dies, for lack of memory say, are run again in a new pool.
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


Results = Iterator[tuple[int, Any]]


class WorkerDied(ChildProcessError):
    """Error raised when workers died repeatedly, or when the caller's executor failed."""


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(
    task: Callable[[int], Any], cells: Sequence[int], executor: Executor | None, workers: int
) -> Results:
    """Iterate over (cell, task(cell)) of every cell, in the order in which they finish.

    Parameters
    ----------
    task : callable
    cells : sequence of int
    executor : Executor, optional
        Executor to run the cells in.  The default is ``workers`` spawned processes.
    workers : int
        With 1, or in a daemonic process, which may not start others, this process runs the cells.

    Raises
    ------
    WorkerDied
    """
    if executor is None and workers > 1 and current_process().daemon:
        logger.warning("A daemonic process may start no others. Running in one process.")
        workers = 1
    if executor is None and workers > 1:
        yield from _run_in_pools(task, cells, workers)
    elif executor is None:
        yield from ((cell, task(cell)) for cell in cells)
    else:
        for cell, (cell_result, cell_error) in _outcomes(executor, task, cells):
            if cell_error is not None:
                raise cell_error
            yield cell, cell_result


def _outcomes(executor: Executor, task: Callable[[int], Any], cells: Sequence[int]) -> Results:
    """Outcomes of ``_run_cell`` from an executor; any exception here is the executor's own.

    Raises
    ------
    WorkerDied
    """
    futures: dict[Future[Any], int] = {}
    try:
        yield from _completed_cells(executor, partial(_run_cell, task), cells, futures)
    except Exception as executor_error:  # each executor has exceptions of its own
        executor_failure = " ".join(f"{type(executor_error).__name__} {executor_error}".split())
        raise _worker_died(f"the executor failed ({executor_failure:.200})") from executor_error
    finally:
        for pending_future in futures:
            pending_future.cancel()


def _run_cell(task: Callable[[int], Any], cell: int) -> tuple[Any, Exception | None]:
    """Pair of a cell's result and the exception that it raised, one of them None."""
    try:
        return task(cell), None
    except Exception as cell_error:
        return None, cell_error


def _completed_cells(
    executor: Executor,
    task: Callable[[int], Any],
    cells: Sequence[int],
    futures: dict[Future[Any], int],
) -> Results:
    """Results from an executor, as they arrive; ``futures`` holds the pending ones."""
    for cell in cells:
        futures[executor.submit(task, cell)] = cell
    for completed_future in as_completed(futures):
        yield futures.pop(completed_future), completed_future.result()


def _run_in_pools(task: Callable[[int], Any], cells: Sequence[int], workers: int) -> Results:
    """Results from process pools; a new pool takes over when one breaks."""
    max_deaths = 3  # consecutive pools that break before any cell is done: then it is no accident
    remaining_cells, pool_deaths = list(cells), 0
    while remaining_cells:
        try:
            with _process_pool(min(workers, len(remaining_cells))) as pool:
                # futures need not be cancelled: the pool does that itself
                for cell, cell_result in _completed_cells(pool, task, remaining_cells, {}):
                    remaining_cells.remove(cell)
                    pool_deaths = 0
                    yield cell, cell_result
        except BrokenExecutor as pool_failure:
            pool_deaths += 1
            if pool_deaths == max_deaths:
                raise _worker_died(f"some died {max_deaths} times in a row") from pool_failure
        except pickle.PicklingError as pickling_error:
            logger.warning("%s Running in one process.", pickling_error)
            yield from ((cell, task(cell)) for cell in remaining_cells)
            return


@contextmanager
def _process_pool(workers: int) -> Iterator[Executor]:
    """Pool of spawned processes, which are killed when the context ends."""
    from loky import ProcessPoolExecutor  # imported only where a pool is used

    child_end, parent_end = Pipe(duplex=False)
    with child_end, parent_end:
        pool = ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(child_end,))
        try:
            yield pool
        finally:
            pool.shutdown(kill_workers=True)


def _start_worker(pipe: Connection) -> None:
    """Ignore Ctrl-C, which the parent handles, and end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()


def _end_with_parent(pipe: Connection) -> None:
    """Wait until the parent closes its end of the pipe, then end this process at once."""
    pipe.poll(None)
    os._exit(1)


def _worker_died(worker_failure: str) -> WorkerDied:
    """``WorkerDied`` error with advice; ``worker_failure`` says which failure was met."""
    worker_advice = (
        "memory may have run out (try fewer workers), or the machine or cluster is gone; "
        "finished cells are in the store, if there is one, and the same call with a new "
        "executor continues from there exactly"
    )
    return WorkerDied(errno.ECHILD, f"{worker_failure}: {worker_advice}", "workers")

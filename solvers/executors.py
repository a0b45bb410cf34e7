"""Runs independent cells of work: in this process, in a pool of its own, or in any executor.

The pool is of spawned processes (never forked: threads of numerical libraries do not survive
a fork) that end with their parent, even one that is killed.  A worker that dies - out of
memory, say - costs the cells it was on: they are run again in a new pool.
"""

import errno
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

MAX_DEATHS = 3  # pools in a row that break before any of their cells is done: not by accident

Results = Iterator[tuple[int, Any]]


class WorkerDied(ChildProcessError):
    """Workers died again and again, or those of an executor given by the caller died."""


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def travels(task: Any) -> bool:
    """Whether spawned processes can be given ``task``: it can be pickled, and what it refers to
    in the main module can be imported from there (not from a notebook).

    Examples
    --------
    >>> travels(lambda x: x)
    False
    """
    try:
        content = pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    main = sys.modules.get("__main__")
    return b"__main__" not in content or hasattr(main, "__file__")


def results(
    task: Callable[[int], Any], cells: Sequence[int], executor: Executor | None, workers: int
) -> Results:
    """(cell, task(cell)) of every cell, as they are done.

    Parameters
    ----------
    task : callable
    cells : sequence of int
    executor : Executor, optional
        Where to run them; otherwise ``workers`` spawned processes, or this one if 1.

    Raises
    ------
    WorkerDied
    """
    if executor is None and workers > 1:
        yield from _in_pools(task, cells, workers)
    elif executor is None:
        yield from ((cell, task(cell)) for cell in cells)
    else:
        try:
            yield from _completed(executor, task, cells)
        except BrokenExecutor as error:
            raise _died(f"one of the executor's died ({error})") from error


def _completed(executor: Executor, task: Callable[[int], Any], cells: Sequence[int]) -> Results:
    """The results from an executor; what has not begun is cancelled at the end."""
    futures = {executor.submit(task, cell): cell for cell in cells}
    try:
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
    finally:
        for future in futures:
            future.cancel()


def _in_pools(task: Callable[[int], Any], cells: Sequence[int], workers: int) -> Results:
    """The results from pools of our own: a new one takes over when one breaks."""
    left, deaths = list(cells), 0
    while left:
        try:
            with _pool(min(workers, len(left))) as pool:
                for cell, result in _completed(pool, task, left):
                    left.remove(cell)
                    deaths = 0
                    yield cell, result
        except BrokenExecutor as error:
            deaths += 1
            if deaths == MAX_DEATHS:
                raise _died(f"some died {MAX_DEATHS} times in a row") from error


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """A pool of spawned processes, which are ended if anything fails."""
    before = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    pool.shutdown()


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    """Wait for the parent process to end, then end this one at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _died(what: str) -> WorkerDied:
    """The error to raise, ``what`` happened, with what can be done about it."""
    advice = (
        "memory may have run out (give less, or fewer workers), or a script lacks "
        "if __name__ == '__main__'; a store keeps what was finished"
    )
    return WorkerDied(errno.ECHILD, f"{what}: {advice}", "workers")

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
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

MAX_DEATHS = 3  # pools in a row that break before any of their cells is done: not by accident
UNGUARDED = 86  # how a worker leaves that is told to start workers while it imports the script
NO_GUARD = (
    "this script starts worker processes, which import it again: put what it does, below its "
    'imports and functions, under a line that says if __name__ == "__main__":'
)

Results = Iterator[tuple[int, Any]]


class WorkerDied(ChildProcessError):
    """Workers died again and again, or an executor given by the caller failed."""


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
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)  # in silence, as the parent says it
    left, deaths = list(cells), 0
    while left:
        spawn = _Spawn()
        try:
            with _pool(min(workers, len(left)), spawn) as pool:
                # a pool cancels what has not begun itself: of what others have, it may complain
                for cell, result in _completed(pool, task, left, {}):
                    left.remove(cell)
                    deaths = 0
                    yield cell, result
        except BrokenExecutor as error:
            if any(process.exitcode == UNGUARDED for process in spawn.started):
                raise WorkerDied(errno.ECHILD, NO_GUARD, sys.argv[0]) from None
            deaths += 1
            if deaths == MAX_DEATHS:
                raise _died(f"some died {MAX_DEATHS} times in a row") from error


class _Spawn(SpawnContext):
    """Starts processes anew, never by a fork, and knows which."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        """A process of this context."""
        self.started.append(SpawnProcess(*arguments, **options))
        return self.started[-1]


@contextmanager
def _pool(workers: int, spawn: _Spawn) -> Iterator[Executor]:
    """A pool of spawned processes, which are ended if anything fails."""
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in spawn.started:
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
        "memory may have run out (give less, or fewer workers), or the machine or the cluster that "
        "they were on is gone; what was finished is in the store, if there is one, and the same "
        "call with a new executor goes on from there exactly"
    )
    return WorkerDied(errno.ECHILD, f"{what}: {advice}", "workers")

"""Following the solution of analytic equations along a path in the complex plane.

Newton's method alone does not know which of several roots it is sent to.  Started where the
root is known and moved towards the wanted place in steps short enough for it to stay close, it
cannot leave its branch: a step is taken only if Newton settles from the last point within a few
iterations, not far away, at an admissible value; otherwise half of it is tried.  As elsewhere
many problems ("rows") are followed at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .linear import solve_rows
from .results import Array, Result, Status, largest

System = Callable[[Array, Array, NDArray[np.int64]], tuple[Array, Array]]
Check = Callable[[Array, Array, NDArray[np.int64]], NDArray[np.bool_]]


def newton_complex(
    system: Callable[[Array, NDArray[np.int64]], tuple[Array, Array]],
    start: Array,
    *,
    tol: float = 1e-13,
    max_iterations: int = 8,
    reach: float = np.inf,
    size: Callable[[Array], Array] = np.abs,
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Newton's method for analytic F(x) = 0, without safeguards.

    Parameters
    ----------
    system : callable (x (R, k), rows (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
    tol : float
        A row is done when its step is smaller, relative to ``size`` - or when a step below
        1e-7 no longer shrinks.
    max_iterations : int
    reach : float
        A row whose first step is larger than this, relative to ``size``, is given up.
    size : callable (x (R, k)) -> positive array (R, k)
        What steps are relative to.

    Returns
    -------
    (values (rows, k), settled (rows,), iterations (rows,))

    Examples
    --------
    >>> def system(x, rows):
    ...     return x**2 + 1, (2 * x)[..., None]
    >>> newton_complex(system, np.array([[0.5 + 0.8j]]))[0].round(12).tolist()
    [[1j]]
    """
    value = np.array(start)
    settled = np.zeros(len(value), dtype=bool)
    iterations = np.zeros(len(value), dtype=np.int64)
    last = np.full(len(value), np.inf)
    rows = np.arange(len(value))
    for sweep in range(max_iterations):
        with np.errstate(all="ignore"):
            error, slope = system(value[rows], rows)
            step = solve_rows(slope, -error)
            length = largest(step / size(value[rows]))
        value[rows] += step
        iterations[rows] += 1
        done = (length <= tol) | ((length < 1e-7) & (length >= last[rows] / 2))
        settled[rows[done]] = True
        lost = ~np.isfinite(length) | (length > (reach if sweep == 0 else 1e3))
        last[rows] = length
        rows = rows[~(done | lost)]
        if rows.size == 0:
            break
    return value, settled, iterations


def follow(
    system: System,
    start: Array,
    path: Callable[[Array, NDArray[np.int64]], Array],
    check: Check,
    *,
    first: float = 0.2,
    smallest: float = 1e-9,
    reach: float = 0.7,
    tol: float = 1e-13,
    size: Callable[[Array], Array] = np.abs,
) -> Result:
    """The root at the end of a path, from one near its beginning.

    Parameters
    ----------
    system : callable (x (R, k), place (R,), rows (R,)) -> (F, dF/dx)
    start : (rows, k)
        Close to the root at t = 0.
    path : callable (t (R,), rows (R,)) -> place (R,)
        From t = 0 to t = 1.
    check : callable (x, place, rows) -> bool (R,)
        Whether a root is admissible at its place.
    first, smallest : float
        Steps in t: the first tried, and the one below which a row is given up.
    reach : float
        Largest relative change of an unknown in Newton's first step.
    tol, size
        As in :func:`newton_complex`.

    Returns
    -------
    Result
        ``residual`` is the modulus of F, ``iterations`` the evaluations of the system.
    """
    value = np.array(start)
    count = len(value)
    t, step = np.zeros(count), np.zeros(count)  # the first trial is at the beginning itself
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.NO_PROGRESS, dtype=object)
    rows = np.arange(count)
    started = np.zeros(count, dtype=bool)
    while rows.size:
        trial = np.minimum(t[rows] + step[rows], 1.0)
        place = path(trial, rows)

        def at(x: Array, which: Array, rows: Array = rows, place: Array = place) -> Any:
            return system(x, place[which], rows[which])

        found, settled, sweeps = newton_complex(at, value[rows], tol=tol, reach=reach, size=size)
        iterations[rows] += sweeps
        good = settled & np.isfinite(found).all(axis=1)
        good[good] = check(found[good], place[good], rows[good])
        kept = rows[good]
        value[kept], t[kept] = found[good], trial[good]
        quick = good & (sweeps <= 5)
        step[rows[quick]] *= 1.5
        step[rows[~good]] /= 3
        step[rows[good & ~started[rows]]] = first
        lost = ~good & (~started[rows] | (step[rows] < smallest))
        started[kept] = True
        done = good & (trial >= 1)
        status[rows[done]] = Status.CONVERGED
        rows = rows[~(done | lost)]
    end = path(np.ones(count), np.arange(count))
    with np.errstate(all="ignore"):
        residual = largest(system(value, end, np.arange(count))[0])
    return Result(value, residual, iterations, status)

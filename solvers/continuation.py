"""Following the solution of analytic equations along a path in the complex plane.

Newton's method alone does not know which of several roots it is sent to.  Started where the
root is known and moved towards the wanted place in steps short enough for it to stay close, it
cannot leave its branch: a step is taken only if Newton settles from the last point within a few
iterations, not far away, at an admissible value; otherwise a third of it is tried.  As elsewhere
many problems ("rows") are followed at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .linear import solve_rows
from .results import Array, Result, Rows, Status, largest

Check = Callable[[Array, Array, Rows], NDArray[np.bool_]]


def newton_complex(
    system: Callable[[Array, Rows], tuple[Array, Array]],
    start: Array,
    *,
    reach: float = np.inf,
    size: Callable[[Array], Array] = np.abs,
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Newton's method for analytic F(x) = 0, without safeguards: at most eight steps.

    A row has settled when a step is shorter than 1e-13, relative to ``size``, or when one below
    1e-7 is not half as long as the step before: what is left is rounding.

    Parameters
    ----------
    system : callable (x (R, k), rows (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
    reach : float
        A row whose first step is larger than this, relative to ``size``, is given up.
    size : callable (x (R, k)) -> positive array (R, k)
        What steps are relative to.

    Returns
    -------
    value : array (rows, k)
        The last points.
    settled : bool array (rows,)
    iterations : int array (rows,)
        Evaluations of the system.

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
    for sweep in range(8):
        with np.errstate(all="ignore"):
            error, slope = system(value[rows], rows)
            step = solve_rows(slope, -error)
            length = largest(step / size(value[rows]))
        value[rows] += step
        iterations[rows] += 1
        done = (length <= 1e-13) | ((length < 1e-7) & (length >= last[rows] / 2))
        settled[rows[done]] = True
        diverged = ~np.isfinite(length) | (length > (reach if sweep == 0 else 1e3))
        last[rows] = length
        rows = rows[~(done | diverged)]
        if rows.size == 0:
            break
    return value, settled, iterations


def follow(
    system: Callable[[Array, Array, Rows], tuple[Array, Array]],
    start: Array,
    path: Callable[[Array, Rows], Array],
    check: Check,
    *,
    size: Callable[[Array], Array] = np.abs,
) -> Result:
    """The root at the end of a path, from one near its beginning.

    The path is t from 0 to 1; steps in it grow by half where Newton's method settles quickly, and
    shrink by 3 where it fails or lands on an inadmissible root.

    Parameters
    ----------
    system : callable (x (R, k), place (R,), rows (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
        The root at t = 0, or close to it.
    path : callable (t (R,), rows (R,)) -> place (R,)
        From t = 0 to t = 1.
    check : callable (x, place, rows) -> bool (R,)
        Whether a root is admissible at its place.
    size : callable (x (R, k)) -> positive array (R, k)
        What Newton's steps are relative to.

    Returns
    -------
    Result
        ``residual`` is the largest modulus in F at the end of the path, ``iterations`` the
        evaluations of the system; ``Status.NO_PROGRESS`` where the path could not be followed.

    Examples
    --------
    >>> def square_root(x, place, rows):
    ...     return x**2 - place[:, None], (2 * x)[..., None]
    >>> def half_circle(t, rows):
    ...     return np.exp(1j * np.pi * t)
    >>> def above(x, place, rows):
    ...     return x[:, 0].imag > -1e-9
    >>> end = follow(square_root, np.array([[1.0 + 0j]]), half_circle, above)
    >>> end.value.round(12).tolist(), end.converged.tolist()  # sqrt(-1), and not -sqrt(-1)
    ([[1j]], [True])
    """
    shortest_step = 1e-9  # in t: a row that needs shorter ones is given up
    reach = 0.7  # Newton's first step may change an unknown by that much, relative to its size
    value = np.array(start)
    count = len(value)
    t, step = np.zeros(count), np.full(count, 0.2)
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.NO_PROGRESS, dtype=object)
    rows = np.arange(count)
    while rows.size:
        trial = np.minimum(t[rows] + step[rows], 1.0)
        place = path(trial, rows)

        def at(
            x: Array, which: Rows, rows: Rows = rows, place: Array = place
        ) -> tuple[Array, Array]:
            return system(x, place[which], rows[which])

        root, settled, sweeps = newton_complex(at, value[rows], reach=reach, size=size)
        iterations[rows] += sweeps
        good = settled & np.isfinite(root).all(axis=1)
        good[good] = check(root[good], place[good], rows[good])
        moved = rows[good]
        value[moved], t[moved] = root[good], trial[good]
        quick = good & (sweeps <= 5)
        step[rows[quick]] *= 1.5
        step[rows[~good]] /= 3
        given_up = step[rows] < shortest_step
        done = good & (trial >= 1)
        status[rows[done]] = Status.CONVERGED
        rows = rows[~(done | given_up)]
    end = path(np.ones(count), np.arange(count))
    with np.errstate(all="ignore"):
        residual = largest(system(value, end, np.arange(count))[0])
    return Result(value, residual, iterations, status)

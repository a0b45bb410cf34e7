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
from .results import Array, Rows, largest


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
    system: Callable[[Array, Array], tuple[Array, Array]],
    start: Array,
    path: Callable[[Array, Rows], Array],
    admissible: Callable[[Array], NDArray[np.bool_]],
    *,
    size: Callable[[Array], Array] = np.abs,
) -> Array:
    """The root at the end of a path, from one near its beginning.

    The path is t from 0 to 1; steps in it grow by half where Newton's method settles quickly, and
    shrink by 3 where it fails or lands on an inadmissible root.

    Parameters
    ----------
    system : callable (x (R, k), place (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
        The root at t = 0, or close to it.
    path : callable (t (R,), rows (R,)) -> place (R,)
        From t = 0 to t = 1.
    admissible : callable (x (R, k)) -> bool (R,)
    size : callable (x (R, k)) -> positive array (R, k)
        What Newton's steps are relative to.

    Returns
    -------
    array (rows, k)
        NaN where the path could not be followed.

    Examples
    --------
    >>> def square_root(x, place):
    ...     return x**2 - place[:, None], (2 * x)[..., None]
    >>> def half_circle(t, rows):
    ...     return np.exp(1j * np.pi * t)
    >>> def above(x):
    ...     return x[:, 0].imag > -1e-9
    >>> end = follow(square_root, np.array([[1.0 + 0j]]), half_circle, above)
    >>> end.round(12).tolist()  # sqrt(-1), and not -sqrt(-1)
    [[1j]]
    """
    shortest_step = 1e-9  # in t: a row that needs shorter ones is given up
    reach = 0.7  # Newton's first step may change an unknown by that much, relative to its size
    value, end = np.array(start), np.full_like(start, np.nan)
    t, step = np.zeros(len(value)), np.full(len(value), 0.2)
    rows = np.arange(len(value))
    while rows.size:
        trial = np.minimum(t[rows] + step[rows], 1.0)
        place = path(trial, rows)

        def at(x: Array, which: Rows, place: Array = place) -> tuple[Array, Array]:
            return system(x, place[which])

        root, settled, sweeps = newton_complex(at, value[rows], reach=reach, size=size)
        good = settled & np.isfinite(root).all(axis=1)
        good[good] = admissible(root[good])
        value[rows[good]], t[rows[good]] = root[good], trial[good]
        step[rows[good & (sweeps <= 5)]] *= 1.5
        step[rows[~good]] /= 3
        done = good & (trial >= 1)
        end[rows[done]] = root[done]
        rows = rows[~done & (step[rows] >= shortest_step)]
    return end

"""Numerical continuation: the root of analytic equations, followed along a complex path.

Newton's method alone may converge to any of several roots.  Here it starts where the root is known
and moves towards the end of the path in short steps, so that it stays on its branch.  A step is
accepted only if Newton's method converges from the last point within a few iterations, not far
away, at an admissible value; otherwise a third of the step is tried.  Many independent problems
("rows") are followed at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .newton import newton_complex
from .results import Array, Indices


def follow_root(
    system: Callable[[Array, Array], tuple[Array, Array]],
    start: Array,
    path: Callable[[Array, Indices], Array],
    admissible: Callable[[Array], NDArray[np.bool_]],
    *,
    size: Callable[[Array], Array] = np.abs,
) -> Array:
    """Root at the end of a path, followed from a root near its beginning.

    The path is parametrised by t from 0 to 1.  Steps in t grow by half where Newton's method
    converges quickly, and shrink by 3 where it fails or finds an inadmissible root.

    Parameters
    ----------
    system : callable (x (R, k), place (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
        The root at t = 0, or close to it.
    path : callable (t (R,), rows (R,)) -> place (R,)
        The point of the path at t.
    admissible : callable (x (R, k)) -> bool (R,)
        Whether a root is on the wanted branch.
    size : callable (x (R, k)) -> positive array (R, k)
        Scale that Newton's steps are measured against.

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
    >>> end = follow_root(square_root, np.array([[1.0 + 0j]]), half_circle, above)
    >>> end.round(12).tolist()  # sqrt(-1), and not -sqrt(-1)
    [[1j]]
    """
    shortest_step = 1e-9  # in t: a row that needs shorter steps is given up
    reach = 0.7  # largest first Newton step, relative to the size of an unknown
    path_root, root_at_path_end = np.array(start), np.full_like(start, np.nan)
    path_t, path_step = np.zeros(len(path_root)), np.full(len(path_root), 0.2)
    rows = np.arange(len(path_root))
    while rows.size:
        trial_path_t = np.minimum(path_t[rows] + path_step[rows], 1.0)
        place = path(trial_path_t, rows)

        def system_at_place(x: Array, subset: Indices, place: Array = place) -> tuple[Array, Array]:
            return system(x, place[subset])

        near_root = path_root[rows]
        root, settled, sweeps = newton_complex(system_at_place, near_root, reach=reach, size=size)
        accepted = settled & np.isfinite(root).all(axis=1)
        accepted[accepted] = admissible(root[accepted])
        accepted_rows = rows[accepted]
        path_root[accepted_rows], path_t[accepted_rows] = root[accepted], trial_path_t[accepted]
        path_step[rows[accepted & (sweeps <= 5)]] *= 1.5
        path_step[rows[~accepted]] /= 3
        at_path_end = accepted & (trial_path_t >= 1)
        root_at_path_end[rows[at_path_end]] = root[at_path_end]
        rows = rows[~at_path_end & (path_step[rows] >= shortest_step)]
    return root_at_path_end

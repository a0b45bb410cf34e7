"""Newton's method: damped, for positive unknowns in their logarithms, and without safeguards, for
complex unknowns.

The unknowns of a saddle point are positive and range over many decades, so the iteration runs on
y = log x: equations that balance products of powers become nearly linear, and unknowns stay
positive.  A step is shortened to at most ``LONGEST_STEP`` in any logarithm, and halved until the
step after it would be shorter.  Many independent problems ("rows") are solved at once.

Along a complex path.  Newton's method alone may converge to any of several roots of analytic
equations.  ``follow_root`` starts where the root is known and moves towards the end of the path in
short steps, so that it stays on its branch.  A step is accepted only if Newton's method converges
from the last point within a few iterations, not far away, at an admissible value; otherwise a third
of the step is tried.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .linear import solve_rows
from .results import Array, Indices, Result, Status, largest_modulus


def newton(
    system: Callable[[Array, Indices], tuple[Array, Array]],
    start: Array,
    *,
    size: Callable[[Array], Array] | None = None,
    signed: Array | None = None,
    tol: float = 1e-12,
    max_iterations: int = 100,
) -> Result:
    """Solve F(x) = 0 for x > 0, by Newton's method with backtracking.

    Parameters
    ----------
    system : callable (x of shape (R, k), rows of shape (R,)) -> (F (R, k), J (R, k, k))
        Dimensionless residuals and their derivatives with respect to log x.
    start : positive array (rows, k)
    size : callable (x of shape (R, k)) -> positive array (R, k), optional
        Unit of each unknown in ``signed``, as a function of the other unknowns.
    signed : bool array (k,), optional
        Unknowns that may have either sign.  For them x / size replaces log x.
    tol : float
        A row has converged when the full Newton step changes no log x by more than this.
    max_iterations : int
        Largest number of evaluations of ``system`` for a row.

    Returns
    -------
    Result
        Points with the largest modulus of F there as ``residual``.

    Raises
    ------
    ValueError
        If an entry of ``start`` is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> def system(x, rows):
    ...     return np.log(x) + x, (1 + x)[..., None]
    >>> round(float(newton(system, np.array([[1.0]])).value[0, 0]), 12)
    0.56714329041
    """
    longest_step = 3.0  # in any logarithm, so a factor of 20
    root_estimate = np.array(start, dtype=float, ndmin=2)
    is_signed = np.zeros(root_estimate.shape[1], dtype=bool) if signed is None else signed
    if not (np.isfinite(root_estimate).all() and (root_estimate[:, ~is_signed] > 0).all()):
        raise ValueError("start must be positive and finite")
    problem_count, unknowns = root_estimate.shape
    rounding = 1e-15  # a dimensionless residual this small is only rounding
    residual = np.full(problem_count, np.inf)
    iterations = np.zeros(problem_count, dtype=np.int64)
    status = np.full(problem_count, Status.ITERATION_LIMIT, dtype=object)
    step = np.zeros_like(root_estimate)  # the step from `root_estimate` to the point under trial
    newton_distance = np.zeros(problem_count)  # length of the full Newton step from `root_estimate`
    old_jacobian = np.empty((problem_count, unknowns, unknowns))  # the Jacobian at `root_estimate`
    unsolved = np.arange(problem_count)
    for sweep in range(1, max_iterations + 1):
        trial_root = root_estimate[unsolved] * np.exp(np.where(is_signed, 0.0, step[unsolved]))
        if size is not None and is_signed.any():
            signed_ratio = root_estimate[unsolved] / size(root_estimate[unsolved]) + step[unsolved]
            trial_root[:, is_signed] = (signed_ratio * size(trial_root))[:, is_signed]
        trial_residual, trial_jacobian = system(trial_root, unsolved)
        iterations[unsolved] = sweep
        accepted = np.ones(unsolved.size, dtype=bool)
        if sweep > 1:
            # A step is accepted if the remaining step, by the old Jacobian, is shorter.  Unlike a
            # test on the residual, this does not depend on how the equations are scaled.
            step_by_old_jacobian = solve_rows(old_jacobian[unsolved], -trial_residual)
            accepted = largest_modulus(step_by_old_jacobian) < newton_distance[unsolved]
        accepted_rows = unsolved[accepted]
        root_estimate[accepted_rows] = trial_root[accepted]
        old_jacobian[accepted_rows] = trial_jacobian[accepted]
        residual[accepted_rows] = largest_modulus(trial_residual[accepted])
        step[accepted_rows] = solve_rows(trial_jacobian[accepted], -trial_residual[accepted])
        newton_distance[accepted_rows] = largest_modulus(step[accepted_rows])
        step[unsolved[~accepted]] /= 2
        newton_length = largest_modulus(step[unsolved])
        is_newton_root = (newton_length <= tol) | (residual[unsolved] <= rounding)
        status[unsolved[is_newton_root]] = Status.CONVERGED
        # far from any root, a step becomes this short by halving alone
        status[unsolved[is_newton_root & ~(residual[unsolved] < 1e-10)]] = Status.NO_PROGRESS
        step_not_finite = ~np.isfinite(newton_length)
        status[unsolved[step_not_finite]] = Status.NOT_FINITE
        step_too_long = accepted & (newton_length > longest_step) & ~step_not_finite
        step[unsolved[step_too_long]] *= (longest_step / newton_length[step_too_long])[:, None]
        unsolved = unsolved[~(is_newton_root | step_not_finite)]
        if unsolved.size == 0:
            break
    return Result(root_estimate, residual, iterations, status)


def newton_complex(
    system: Callable[[Array, Indices], tuple[Array, Array]],
    start: Array,
    *,
    reach: float = np.inf,
    size: Callable[[Array], Array] = np.abs,
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Newton's method for analytic F(x) = 0 without safeguards, of at most eight steps.

    A row has converged when a step is shorter than 1e-13, relative to ``size``.  It has also
    converged when a step below 1e-7 is longer than half the step before, which is rounding.

    Parameters
    ----------
    system : callable (x (R, k), rows (R,)) -> (F (R, k), dF/dx (R, k, k))
    start : array (rows, k)
    reach : float
        A row whose first step is larger than this, relative to ``size``, is given up.
    size : callable (x (R, k)) -> positive array (R, k)
        Scale that steps are measured against.

    Returns
    -------
    value : array (rows, k)
        The last points.
    settled : bool array (rows,)
        Which rows converged.
    iterations : int array (rows,)
        Evaluations of the system.

    Examples
    --------
    >>> def system(x, rows):
    ...     return x**2 + 1, (2 * x)[..., None]
    >>> newton_complex(system, np.array([[0.5 + 0.8j]]))[0].round(12).tolist()
    [[1j]]
    """
    complex_root = np.array(start)
    settled_roots = np.zeros(len(complex_root), dtype=bool)
    iterations = np.zeros(len(complex_root), dtype=np.int64)
    length_before = np.full(len(complex_root), np.inf)
    unsolved = np.arange(len(complex_root))
    for sweep in range(8):
        with np.errstate(all="ignore"):
            complex_residual, complex_jacobian = system(complex_root[unsolved], unsolved)
            newton_step = solve_rows(complex_jacobian, -complex_residual)
            length = largest_modulus(newton_step / size(complex_root[unsolved]))
        complex_root[unsolved] += newton_step
        iterations[unsolved] += 1
        settled = (length <= 1e-13) | ((length < 1e-7) & (length >= length_before[unsolved] / 2))
        settled_roots[unsolved[settled]] = True
        newton_diverged = ~np.isfinite(length) | (length > (reach if sweep == 0 else 1e3))
        length_before[unsolved] = length
        unsolved = unsolved[~(settled | newton_diverged)]
        if unsolved.size == 0:
            break
    return complex_root, settled_roots, iterations


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

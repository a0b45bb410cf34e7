"""Newton's method: damped, for positive unknowns in their logarithms, and without safeguards, for
complex unknowns.

The unknowns of a saddle point are positive and range over many decades, so the iteration runs on
y = log x: equations that balance products of powers become nearly linear, and unknowns stay
positive.  A step is shortened to at most ``LONGEST_STEP`` in any logarithm, and halved until the
step after it would be shorter.  Many independent problems ("rows") are solved at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .linear import solve_rows
from .results import Array, Indices, Result, Status, largest_modulus

LONGEST_STEP = 3.0  # in any logarithm, so a factor of 20


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
        With the largest modulus of F at the returned point as ``residual``.

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
    value = np.array(start, dtype=float, ndmin=2)
    is_signed = np.zeros(value.shape[1], dtype=bool) if signed is None else signed
    if not (np.isfinite(value).all() and (value[:, ~is_signed] > 0).all()):
        raise ValueError("start must be positive and finite")
    count, unknowns = value.shape
    rounding = 1e-15  # a dimensionless residual this small is only rounding
    residual = np.full(count, np.inf)
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
    step = np.zeros_like(value)  # the step from `value` to the point under trial
    distance = np.zeros(count)  # length of the full Newton step from `value`
    slope = np.empty((count, unknowns, unknowns))  # the Jacobian at `value`
    problems = np.arange(count)
    for sweep in range(1, max_iterations + 1):
        trial = value[problems] * np.exp(np.where(is_signed, 0.0, step[problems]))
        if size is not None and is_signed.any():
            signed_ratio = value[problems] / size(value[problems]) + step[problems]
            trial[:, is_signed] = (signed_ratio * size(trial))[:, is_signed]
        residuals, jacobian = system(trial, problems)
        iterations[problems] = sweep
        accepted = np.ones(problems.size, dtype=bool)
        if sweep > 1:
            # A step is accepted if the remaining step, by the old Jacobian, is shorter.  Unlike a
            # test on the residual, this does not depend on how the equations are scaled.
            accepted = largest_modulus(solve_rows(slope[problems], -residuals)) < distance[problems]
        accepted_rows = problems[accepted]
        value[accepted_rows], slope[accepted_rows] = trial[accepted], jacobian[accepted]
        residual[accepted_rows] = largest_modulus(residuals[accepted])
        step[accepted_rows] = solve_rows(jacobian[accepted], -residuals[accepted])
        distance[accepted_rows] = largest_modulus(step[accepted_rows])
        step[problems[~accepted]] /= 2
        step_length = largest_modulus(step[problems])
        is_root = (step_length <= tol) | (residual[problems] <= rounding)
        status[problems[is_root]] = Status.CONVERGED
        # far from any root, a step becomes this short by halving alone
        status[problems[is_root & ~(residual[problems] < 1e-10)]] = Status.NO_PROGRESS
        not_finite = ~np.isfinite(step_length)
        status[problems[not_finite]] = Status.NOT_FINITE
        too_long = accepted & (step_length > LONGEST_STEP) & ~not_finite
        step[problems[too_long]] *= (LONGEST_STEP / step_length[too_long])[:, None]
        problems = problems[~(is_root | not_finite)]
        if problems.size == 0:
            break
    return Result(value, residual, iterations, status)


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
    value = np.array(start)
    settled = np.zeros(len(value), dtype=bool)
    iterations = np.zeros(len(value), dtype=np.int64)
    previous_length = np.full(len(value), np.inf)
    problems = np.arange(len(value))
    for sweep in range(8):
        with np.errstate(all="ignore"):
            equations, jacobian = system(value[problems], problems)
            step = solve_rows(jacobian, -equations)
            length = largest_modulus(step / size(value[problems]))
        value[problems] += step
        iterations[problems] += 1
        done = (length <= 1e-13) | ((length < 1e-7) & (length >= previous_length[problems] / 2))
        settled[problems[done]] = True
        has_diverged = ~np.isfinite(length) | (length > (reach if sweep == 0 else 1e3))
        previous_length[problems] = length
        problems = problems[~(done | has_diverged)]
        if problems.size == 0:
            break
    return value, settled, iterations

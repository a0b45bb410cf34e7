"""Safeguarded Newton for positive unknowns, in their logarithms.

The unknowns of a saddle point are positive and range over many decades, so the
iteration runs on y = log x: equations that balance products of powers become
nearly linear, and positivity costs nothing.  A step is shortened to at most
``LONGEST_STEP`` in any logarithm and halved until the step after it would be shorter.  As
in ``fixed_point`` many independent problems ("rows") are solved at once.
"""

from collections.abc import Callable

import numpy as np

from .linear import solve_rows
from .results import Array, Result, Rows, Status, largest

LONGEST_STEP = 3.0  # of any logarithm: a factor of 20


def newton(
    system: Callable[[Array, Rows], tuple[Array, Array]],
    start: Array,
    *,
    size: Callable[[Array], Array] | None = None,
    signed: Array | None = None,
    tol: float = 1e-12,
    max_iterations: int = 100,
) -> Result:
    """Solve F(x) = 0 for x > 0.

    Parameters
    ----------
    system : callable (x of shape (R, k), rows of shape (R,)) -> (F (R, k), J (R, k, k))
        Dimensionless residuals and their derivatives with respect to log x.
    start : positive array (rows, k)
    size : callable (x of shape (R, k)) -> positive array (R, k), optional
        The unit of each unknown that ``signed`` names, made of the other unknowns.
    signed : bool array (k,), optional
        Unknowns that may have either sign; for them x / size takes the place of log x.
    tol : float
        A row is done when the full Newton step changes no log x by more than this.
    max_iterations : int
        Evaluations of ``system`` a row.

    Returns
    -------
    Result
        ``residual`` is the largest modulus in F at the returned point.

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
    free = np.zeros(value.shape[1], dtype=bool) if signed is None else signed
    if not (np.isfinite(value).all() and (value[:, ~free] > 0).all()):
        raise ValueError("start must be positive and finite")
    count, unknowns = value.shape
    rounding = 1e-15  # a dimensionless residual this small is nothing but rounding
    residual = np.full(count, np.inf)
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
    step = np.zeros_like(value)  # the step that led from `value` to the point under trial
    distance = np.zeros(count)  # length of the full Newton step from `value`
    slope = np.empty((count, unknowns, unknowns))  # the Jacobian at `value`
    rows = np.arange(count)
    for sweep in range(1, max_iterations + 1):
        trial = value[rows] * np.exp(np.where(free, 0.0, step[rows]))
        if size is not None and free.any():
            ratio = value[rows] / size(value[rows]) + step[rows]
            trial[:, free] = (ratio * size(trial))[:, free]
        error, jacobian = system(trial, rows)
        iterations[rows] = sweep
        accept = np.ones(rows.size, dtype=bool)
        if sweep > 1:
            # A step is good if the rest of the way, by the old Jacobian, has become shorter: unlike
            # a test on the residual, this does not depend on how the equations are scaled.
            accept = largest(solve_rows(slope[rows], -error)) < distance[rows]
        good = rows[accept]
        value[good], slope[good] = trial[accept], jacobian[accept]
        residual[good] = largest(error[accept])
        step[good] = solve_rows(jacobian[accept], -error[accept])
        distance[good] = largest(step[good])
        step[rows[~accept]] /= 2
        length = largest(step[rows])
        done = (length <= tol) | (residual[rows] <= rounding)
        status[rows[done]] = Status.CONVERGED
        # far from any root, a step becomes this short by halving alone
        status[rows[done & ~(residual[rows] < 1e-10)]] = Status.NO_PROGRESS
        bad = ~np.isfinite(length)
        status[rows[bad]] = Status.NOT_FINITE
        clip = accept & (length > LONGEST_STEP) & ~bad
        step[rows[clip]] *= (LONGEST_STEP / length[clip])[:, None]
        rows = rows[~(done | bad)]
        if rows.size == 0:
            break
    return Result(value, residual, iterations, status)

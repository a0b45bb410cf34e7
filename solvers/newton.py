"""Safeguarded Newton for positive unknowns, in their logarithms.

The unknowns of a saddle point are positive and range over many decades, so the
iteration runs on y = log x: equations that balance products of powers become
nearly linear, and positivity costs nothing.  A step is shortened to at most
``LONGEST_STEP`` in any logarithm and halved until the step after it would be shorter.  As
in ``fixed_point`` many independent problems ("rows") are solved at once.
"""

from collections.abc import Callable

import numpy as np

from .linear import Kept
from .results import Array, Result, Rows, Status, largest

LONGEST_STEP = 3.0  # of any logarithm: a factor of 20

Slopes = Array | Callable[[Array], Array]
System = Callable[[Array, Rows], tuple[Array, Slopes]]


def newton(
    system: System,
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
        Dimensionless residuals and their derivatives with respect to log x.  Where these cost far
        more than residuals, J may be a callable, which maps some of the R, as a bool array (R,), to
        theirs; an old J is then used as long as steps shrink fast.
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
    slopes = Kept(count, unknowns)  # the Jacobian at `value`, or not far from it
    old = np.zeros(count, dtype=bool)  # whether that is a Jacobian from before
    renew = np.zeros(count, dtype=bool)  # whether the one at `value` is asked for
    rows = np.arange(count)
    for sweep in range(1, max_iterations + 1):
        trial = value[rows] * np.exp(np.where(free, 0.0, step[rows]))
        if size is not None and free.any():
            ratio = value[rows] / size(value[rows]) + step[rows]
            trial[:, free] = (ratio * size(trial))[:, free]
        error, jacobian = system(trial, rows)
        iterations[rows] = sweep
        # A step is good if the rest of the way, by the old Jacobian, has become shorter: unlike
        # a test on the residual, this does not depend on how the equations are scaled.
        accept, fast = renew[rows] | (sweep == 1), np.zeros(rows.size, dtype=bool)
        if sweep > 1:
            ahead = slopes.solve(rows, -error)
            accept |= largest(ahead) < distance[rows]
            if callable(jacobian):
                # steps that shrink so fast need no new Jacobian, which costs
                fast = (largest(ahead) < 0.3 * distance[rows]) & ~renew[rows]
                step[rows[fast]] = ahead[fast]
        good, new = rows[accept], accept & ~fast
        value[good], residual[good] = trial[accept], largest(error[accept])
        if new.any():
            slopes.put(rows[new], jacobian(new) if callable(jacobian) else jacobian[new])
            step[rows[new]] = slopes.solve(rows[new], -error[new])
        distance[good] = largest(step[good])
        # Shorter steps are better by the Jacobian at `value` alone: with an old one, back there.
        renew[rows] = ~accept & old[rows]
        old[good] = fast[accept]
        step[rows[~accept]] /= 2
        step[renew] = 0.0
        length = largest(step[rows])
        done = ((length <= tol) | (residual[rows] <= rounding)) & ~renew[rows]
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

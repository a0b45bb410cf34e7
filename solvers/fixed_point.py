"""Fixed points x = T(x), by plain iteration or Anderson's method.

Many independent problems ("rows") are iterated at once, and a row leaves as soon as it has
converged, so that the cost of Python is paid once a sweep instead of once a problem.  The stopping
rule uses the relative residual T(x) - x over all unknowns, corrected for the observed contraction:
with rate q the distance to the fixed point is about residual * q / (1 - q), so that a slow plain
iteration is not mistaken for a converged one.
"""

from collections.abc import Callable

import numpy as np

from .results import Array, Indices, Result, Status, largest_modulus

COMBINED = 10  # steps that Anderson's method combines


def fixed_point(
    step: Callable[[Array, Indices], Array],
    start: Array,
    *,
    tol: float = 1e-13,
    size: Callable[[Array], Array] = np.abs,
    history: Array | None = None,
    weights: Array | None = None,
    linear_below: float = np.inf,
    longest_step: float = np.inf,
    max_iterations: int = 500,
    patience: int | None = None,
    contraction: float = 1.0,
) -> Result:
    """Iterate ``x <- T(x)``, accelerated by Anderson's method if asked, until it converges.

    Parameters
    ----------
    step : callable (x of shape (R, k), rows of shape (R,)) -> array (R, k)
        The map T for the named rows.
    start : array (rows, k)
    tol : float
        Bound on the relative error of every unknown, estimated from the contraction rate.  The
        estimate is rough where steps are accelerated.
    size : callable (x of shape (R, k)) -> array (R, k)
        Scale that changes of x are measured against; by default the modulus of x.
    history : array (rows, M, 2, k), optional
        The last M changes of x and of T(x), which Anderson's method combines; updated in place.
        It starts with zeros, or with the history of an earlier solve of a similar map.  Without it
        the iteration is plain.
    weights : array (k,), optional
        Weights of the unknowns in the least squares of Anderson's method; alike unless given.
    linear_below : float
        Residual below which T is taken to be nearly linear.  Iterates with a larger residual are
        not stored for extrapolation, and their contraction rate is not used.
    longest_step : float
        Largest relative change of an unknown by an accelerated step, where the plain step is
        shorter.
    max_iterations : int
    patience : int, optional
        Number of iterations: a row is given up as ``Status.SLOW`` once its contraction rate
        predicts more.
    contraction : float
        The contraction rate, where it is known beforehand: one iteration may then be enough.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> result = fixed_point(lambda x, rows: np.cos(x), np.array([[1.0]]))
    >>> round(float(result.value[0, 0]), 12), bool(result.converged[0])
    (0.739085133215, True)
    """
    iterates = np.array(start, dtype=float, ndmin=2)
    row_count = len(iterates)
    residual = np.full(row_count, np.inf)
    iterations = np.zeros(row_count, dtype=np.int64)
    status = np.full(row_count, Status.ITERATION_LIMIT, dtype=object)
    rows = np.arange(row_count)
    rounding = 1e-15  # a relative change this small is only rounding
    iterates_before, images = iterates.copy(), iterates.copy()  # the previous point, and its image
    for sweep in range(1, max_iterations + 1):
        x = iterates[rows]
        image, image_before = step(x, rows), images[rows]
        new_residual = _relative_size(image - x, size(x))
        residual_before = residual[rows] if sweep > 1 else new_residual / contraction
        images[rows], residual[rows] = image, new_residual
        far_from_linear = np.maximum(new_residual, residual_before) >= linear_below
        iterations[rows] = sweep
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.minimum(new_residual / residual_before, 1 - 1e-15)
            iterations_left = np.log(tol * (1 - rate) / new_residual) / np.log(rate)
        finite = np.isfinite(image).all(axis=1)
        # The rate is seen from the second sweep on.  At an exact fixed point it is 0/0 or
        # eps/eps, and the residual alone decides.
        row_converged = finite & ((new_residual <= tol * (1 - rate)) | (new_residual <= rounding))
        status[rows[row_converged]] = Status.CONVERGED
        status[rows[~finite]] = Status.NOT_FINITE
        unconverged_rows = finite & ~row_converged
        if patience is not None and sweep > 1:
            slow_rows = unconverged_rows & ~far_from_linear & (iterations_left > patience)
            status[rows[slow_rows]] = Status.SLOW
            unconverged_rows &= ~slow_rows
        if not unconverged_rows.any() or sweep == max_iterations:
            break  # without a further step: the residual is that of the point returned
        rows, x, image = rows[unconverged_rows], x[unconverged_rows], image[unconverged_rows]
        x_next = image
        if history is not None:
            if sweep > 1:
                x_change = np.stack(
                    [x - iterates_before[rows], image - image_before[unconverged_rows]], axis=1
                )
                history[rows] = np.concatenate([history[rows][:, 1:], x_change[:, None]], axis=1)
            history[rows[far_from_linear[unconverged_rows]]] = 0.0
            x_next = _anderson_step(x, image, history[rows], weights)
            step_length = np.maximum(_relative_size(x_next - x, size(x)), 1e-300)
            longest_allowed = np.maximum(longest_step, new_residual[unconverged_rows])
            x_next = x + (x_next - x) * np.minimum(1, longest_allowed / step_length)[:, None]
            iterates_before[rows] = x
        iterates[rows] = x_next
    return Result(iterates, residual, iterations, status)


def _relative_size(difference: Array, iterate_size: Array) -> Array:
    """Largest |difference| / size in each row, (R,), for arrays (R, k); size 0 counts as 1."""
    return largest_modulus(difference / np.where(iterate_size == 0, 1.0, iterate_size))


def _anderson_step(iterate: Array, image: Array, changes: Array, weights: Array | None) -> Array:
    """Next point (R, k) of Anderson's method, from x, T(x) and the history of changes of both.

    The changes are combined such that T(x) - x would be shortest, in least squares, if T were
    linear.
    """
    changes = changes[:, changes.any(axis=(0, 2, 3))]  # at first most of it is zeros
    iterate_changes, image_changes = np.moveaxis(changes, 1, 3).swapaxes(0, 1)  # (R, k, M) each
    residual_changes, residual = image_changes - iterate_changes, image - iterate
    if weights is not None:
        residual_changes *= np.sqrt(weights)[:, None]
        residual = residual * np.sqrt(weights)
    # scaled to length 1: the latest changes are much smaller than the first, and more accurate
    change_lengths = np.linalg.norm(residual_changes, axis=1, keepdims=True)
    change_lengths[change_lengths == 0] = 1.0
    # singular vectors with smaller singular values are mostly rounding
    mixing = np.linalg.pinv(residual_changes / change_lengths, rcond=1e-5) @ residual[..., None]
    return np.asarray(image - (image_changes / change_lengths @ mixing)[..., 0])

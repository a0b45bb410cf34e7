"""Fixed points x = T(x): plain iteration, or Anderson's method.

Many independent problems ("rows") are iterated at once, and a row leaves as soon
as it is done, so the cost of Python is paid once a sweep instead of once a
problem.  Stopping is decided on the relative residual T(x) - x over all unknowns,
whatever step is taken from x, and corrected for the observed contraction: with rate
q the distance to the fixed point is about residual * q / (1 - q), so a slow plain
iteration is not mistaken for a finished one.
"""

from collections.abc import Callable

import numpy as np

from .results import Array, Result, Rows, Status, largest


def fixed_point(
    step: Callable[[Array, Rows], Array],
    start: Array,
    *,
    tol: float = 1e-13,
    size: Callable[[Array], Array] = np.abs,
    past: Array | None = None,
    near: float = np.inf,
    longest: float = np.inf,
    max_iterations: int = 500,
    patience: int | None = None,
) -> Result:
    """Iterate ``x <- T(x)``, or what Anderson's method makes of it, until it stands still.

    Parameters
    ----------
    step : callable (x of shape (R, k), rows of shape (R,)) -> array (R, k)
        The map T for the named rows.
    start : array (rows, k)
    tol : float
        Bound on the relative error of every unknown as the contraction tells it: roughly, where
        steps are accelerated.
    size : callable (x of shape (R, k)) -> array (R, k)
        What changes of x are relative to, its modulus unless said.
    past : array (rows, M, 2, k), optional
        The last M changes of x and of T(x), which Anderson's method combines with the newest, in
        place: zeros to begin with, or what an earlier solve of a similar map has left.  The plain
        iteration without.
    near : float
        Of steps of a larger residual nothing is learned: far from the fixed point, where T is not
        nearly linear, extrapolation may lead anywhere, and the contraction rate says little.
    longest : float
        Largest relative change of an unknown by an accelerated step, where the plain one is
        shorter.
    max_iterations : int
    patience : int, optional
        Give a row up as ``Status.SLOW`` once its contraction rate predicts more than this many
        further iterations.

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
    value = np.array(start, dtype=float, ndmin=2)
    count = len(value)
    residual = np.full(count, np.inf)
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
    rows = np.arange(count)
    rounding = 1e-15  # a relative change this small is nothing but rounding
    before, images = value.copy(), value.copy()  # the last point, and the images of the last two
    for sweep in range(1, max_iterations + 1):
        x = value[rows]
        image, image_before = step(x, rows), images[rows]
        current = _relative(image - x, size(x))
        previous = residual[rows] if sweep > 1 else current
        images[rows], residual[rows] = image, current
        far = np.maximum(current, previous) >= near
        iterations[rows] = sweep
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.minimum(current / previous, 1 - 1e-15)
            remaining = np.log(tol * (1 - rate) / current) / np.log(rate)
        finite = np.isfinite(image).all(axis=1)
        # The rate is known from the second sweep on.  At an exact fixed point it is 0/0 or
        # eps/eps, and the residual alone settles it.
        done = finite & (((sweep > 1) & (current <= tol * (1 - rate))) | (current <= rounding))
        status[rows[done]] = Status.CONVERGED
        status[rows[~finite]] = Status.NOT_FINITE
        active = finite & ~done
        if patience is not None and sweep > 1:
            slow = active & ~far & (remaining > patience)
            status[rows[slow]] = Status.SLOW
            active &= ~slow
        if not active.any() or sweep == max_iterations:
            break  # without a further step: the residual is that of the point returned
        rows, x, image = rows[active], x[active], image[active]
        target = image
        if past is not None:
            if sweep > 1:
                change = np.stack([x - before[rows], image - image_before[active]], axis=1)
                past[rows] = np.concatenate([past[rows][:, 1:], change[:, None]], axis=1)
            past[rows[far[active]]] = 0.0
            target = _combined(x, image, past[rows])
            length = np.maximum(_relative(target - x, size(x)), 1e-300)
            within = np.maximum(longest, current[active])
            target = x + (target - x) * np.minimum(1, within / length)[:, None]
            before[rows] = x
        value[rows] = target
    return Result(value, residual, iterations, status)


def _relative(difference: Array, size: Array) -> Array:
    """Largest |difference| / size (R,) in each row, both (R, k); absolute where the size is 0."""
    return largest(difference / np.where(size == 0, 1.0, size))


def _combined(x: Array, image: Array, past: Array) -> Array:
    """The next point (R, k) by Anderson's method, from x, T(x) and ``past`` changes of both: as far
    along these as makes the step T(x) - x shortest in least squares, if T were linear."""
    points, images = np.moveaxis(past, 1, 3).swapaxes(0, 1)  # (R, k, M) each
    changes = images - points
    # of unit length: the last are smaller than the first by many digits, and know more
    length = np.linalg.norm(changes, axis=1, keepdims=True)
    length[length == 0] = 1.0
    # directions in which they differ by less are mostly rounding
    weight = np.linalg.pinv(changes / length, rcond=1e-5) @ (image - x)[..., None]
    return np.asarray(image - (images / length @ weight)[..., 0])

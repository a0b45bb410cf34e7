"""Fixed points x = T(x): damped iteration and Anderson acceleration, one loop.

Many independent problems ("rows") are iterated at once, and a row leaves as soon
as it is done, so the cost of Python is paid once a sweep instead of once a
problem.  Stopping is decided on the *undamped* relative residual over all
unknowns, corrected for the observed contraction: with rate q the distance to the
fixed point is about residual * q / (1 - q), so a slow iteration is not mistaken
for a finished one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .results import Array, Result, Status, largest

ROUNDING = 1e-15  # a relative change this small is all rounding
TINY = 1e-300

Rows = NDArray[np.int64]
Map = Callable[[Array, Rows], Array]


class Leave(NamedTuple):
    """What to ask, (x and T(x) of shape (R, k), rows of shape (R,)) -> bool array (R,), of rows
    whose residual is at most ``close``."""

    close: float
    ask: Callable[[Array, Array, Rows], NDArray[np.bool_]]


def fixed_point(
    step: Map,
    start: Array,
    *,
    tol: float = 1e-13,
    damping: float = 0.0,
    memory: int = 0,
    near: float = np.inf,
    longest: float = np.inf,
    max_iterations: int = 500,
    patience: int | None = None,
    leave: Leave | None = None,
    size: Callable[[Array], Array] = np.abs,
) -> Result:
    """Iterate ``x <- damping * x + (1 - damping) * T(x)`` until it stands still.

    Parameters
    ----------
    step : callable (x of shape (R, k), rows of shape (R,)) -> array (R, k)
        The undamped map T for the named rows.
    start : array (rows, k)
    tol : float
        Bound on the estimated relative error of every unknown.
    damping : float in [0, 1)
        Share of the old point that is kept; 0 is the plain iteration.
    memory : int
        Number of earlier steps combined by Anderson acceleration; 0 turns it off.
    near : float
        Steps of a larger residual are not combined: far from the fixed point, where T is not
        nearly linear, extrapolation may lead anywhere.
    longest : float
        Largest relative change of an unknown by combined steps, where the newest alone is
        shorter.
    max_iterations : int
    patience : int, optional
        Give a row up as ``Status.SLOW`` once its contraction rate predicts more
        than this many further iterations.
    leave : Leave, optional
        Asked once of every row that comes close: whether to leave it there, as ``Status.LEFT``.
    size : callable (x of shape (R, k)) -> array (R, k)
        What changes of x are relative to, its modulus unless said.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If ``damping`` is outside [0, 1) or ``memory`` is negative.

    Examples
    --------
    >>> import numpy as np
    >>> result = fixed_point(lambda x, rows: np.cos(x), np.array([[1.0]]))
    >>> round(float(result.value[0, 0]), 12), bool(result.converged[0])
    (0.739085133215, True)
    """
    if not 0 <= damping < 1:
        raise ValueError(f"damping must lie in [0, 1), got {damping}")
    if memory < 0:
        raise ValueError(f"memory must be 0 or more, got {memory}")
    value = np.array(start, dtype=float, ndmin=2)
    count = len(value)
    residual = np.full(count, np.inf)
    iterations = np.zeros(count, dtype=np.int64)
    status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
    rows, asked = np.arange(count), np.zeros(count, dtype=bool)
    points: list[Array] = []
    images: list[Array] = []
    for sweep in range(1, max_iterations + 1):
        x = value[rows]
        image = step(x, rows)
        previous = residual[rows]
        residual[rows] = current = _relative(image - x, size(x))
        iterations[rows] = sweep
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.minimum(current / previous, 1 - 1e-15)
            remaining = np.log(tol * (1 - rate) / current) / np.log(rate)
        finite = np.isfinite(image).all(axis=1)
        # The rate is known from the second sweep on.  At an exact fixed point it is 0/0 or
        # eps/eps, and the residual alone settles it.
        done = finite & (((sweep > 1) & (current <= tol * (1 - rate))) | (current <= ROUNDING))
        status[rows[done]] = Status.CONVERGED
        status[rows[~finite]] = Status.NOT_FINITE
        active = finite & ~done
        if patience is not None and sweep > 1:
            slow = active & (remaining > patience)
            status[rows[slow]] = Status.SLOW
            active &= ~slow
        if leave is not None and (new := active & ~asked[rows] & (current <= leave.close)).any():
            asked[rows[new]] = True
            left = rows[new][leave.ask(x[new], image[new], rows[new])]
            status[left] = Status.LEFT
            active &= status[rows] != Status.LEFT
        if not active.any() or sweep == max_iterations:
            break  # without a further step: the residual is that of the point returned
        rows = rows[active]
        points = [past[active] for past in points[-memory:]] if memory else []
        images = [past[active] for past in images[-memory:]] if memory else []
        x, image = x[active], image[active]
        far = np.maximum(current, previous)[active] >= near
        for past, past_image in zip(points, images, strict=True):
            # what equals the newest step has no part in the combination
            past[far], past_image[far] = x[far], image[far]
        points.append(x)
        images.append(image)
        target, base = _anderson(points, images)
        if np.isfinite(longest):
            change = np.maximum(_relative(target - x, size(x)), TINY)
            within = np.maximum(longest, current[active])
            target = x + (target - x) * np.minimum(1, within / change)[:, None]
        value[rows] = damping * base + (1 - damping) * target
    return Result(value, residual, iterations, status)


def _relative(difference: Array, size: Array) -> Array:
    """Largest entry of |difference| / size in each row; absolute where the size is 0."""
    return largest(difference / np.where(size == 0, 1.0, size))


def _anderson(points: list[Array], images: list[Array]) -> tuple[Array, Array]:
    """The combination of past images (and points) whose combined step is shortest."""
    image, point = images[-1], points[-1]
    if len(points) == 1:
        return image, point
    step = image - point
    steps = np.stack([t - x for x, t in zip(points[:-1], images[:-1], strict=True)], axis=-1)
    difference = step[..., None] - steps
    weight = np.linalg.pinv(difference) @ step[..., None]
    past_images = image[..., None] - np.stack(images[:-1], axis=-1)
    past_points = point[..., None] - np.stack(points[:-1], axis=-1)
    return image - (past_images @ weight)[..., 0], point - (past_points @ weight)[..., 0]

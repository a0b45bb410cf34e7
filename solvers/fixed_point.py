"""Fixed points x = T(x): plain iteration, Anderson's method and Broyden's, one loop.

Many independent problems ("rows") are iterated at once, and a row leaves as soon
as it is done, so the cost of Python is paid once a sweep instead of once a
problem.  Stopping is decided on the relative residual T(x) - x over all unknowns,
whatever step is taken from x, and corrected for the observed contraction: with rate
q the distance to the fixed point is about residual * q / (1 - q), so a slow plain
iteration is not mistaken for a finished one.
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .linear import solve_rows
from .results import Array, Result, Rows, Status, largest

Map = Callable[[Array, Rows], Array]
# All points and their images (rows, k), the rows (R,) that go on, and which of these are far from
# their fixed points, bool (R,) -> the next points (R, k).
Accelerator = Callable[[Array, Array, Rows, NDArray[np.bool_]], Array]


def fixed_point(
    step: Map,
    start: Array,
    *,
    tol: float = 1e-13,
    size: Callable[[Array], Array] = np.abs,
    accelerator: Accelerator | None = None,
    near: float = np.inf,
    longest: float = np.inf,
    max_iterations: int = 500,
    patience: int | None = None,
) -> Result:
    """Iterate ``x <- T(x)``, or what an accelerator makes of it, until it stands still.

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
    accelerator : Accelerator, optional
        ``Anderson`` or ``Broyden``; the plain iteration if absent.
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
    images = value.copy()
    for sweep in range(1, max_iterations + 1):
        x = value[rows]
        image = step(x, rows)
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
        if accelerator is not None:
            target = accelerator(value, images, rows, far[active])
            change = np.maximum(_relative(target - x, size(x)), 1e-300)
            within = np.maximum(longest, current[active])
            target = x + (target - x) * np.minimum(1, within / change)[:, None]
        value[rows] = target
    return Result(value, residual, iterations, status)


class Anderson:
    """Anderson's method: the last points are combined, with weights that sum to 1, so that their
    combined step T(x) - x is shortest in least squares; the next is that combination of images.
    An object serves one call of ``fixed_point``.

    Parameters
    ----------
    memory : int
        Number of points that are combined beside the newest.
    """

    def __init__(self, memory: int) -> None:
        self.steps: deque[tuple[Array, Array]] = deque(maxlen=memory + 1)  # the newest last

    def __call__(self, x: Array, image: Array, rows: Rows, far: NDArray[np.bool_]) -> Array:
        newest = x.copy(), image.copy()
        for past in self.steps:
            # what equals the newest step has no part in the combination
            for kept, now in zip(past, newest, strict=True):
                kept[rows[far]] = now[rows[far]]
        self.steps.append(newest)
        return _combined([(point[rows], its_image[rows]) for point, its_image in self.steps])


class Broyden:
    """Broyden's method: Newton's step for x - T(x) = 0 with slopes that are corrected, by the least
    change, for what each step has shown of them.  An object serves one call of ``fixed_point``.

    Parameters
    ----------
    slopes : array (rows, k, k)
        Derivatives of x - T(x), as far as they are known, or else the identity: the first step is
        the plain one then.  Overwritten by what is known at the end.
    """

    def __init__(self, slopes: Array) -> None:
        self.slopes = slopes
        self.before: Array | None = None

    def __call__(self, x: Array, image: Array, rows: Rows, far: NDArray[np.bool_]) -> Array:
        now, slopes = np.stack([x, x - image]), self.slopes[rows]
        if self.before is not None:
            step, change = now[:, rows] - self.before[:, rows]
            missed = change - np.einsum("rij,rj->ri", slopes, step)
            length = np.maximum((step**2).sum(axis=1), 1e-300)[:, None, None]
            slopes += missed[:, :, None] * step[:, None] / length
        slopes[far] = np.eye(x.shape[1])
        self.slopes[rows], self.before = slopes, now
        return x[rows] - solve_rows(slopes, now[1, rows])


def _relative(difference: Array, size: Array) -> Array:
    """Largest |difference| / size (R,) in each row, both (R, k); absolute where the size is 0."""
    return largest(difference / np.where(size == 0, 1.0, size))


def _combined(steps: list[tuple[Array, Array]]) -> Array:
    """The next point (R, k) by Anderson's method, from the last points x and their images T(x),
    pairs of (R, k), the newest last."""
    *past, (point, image) = steps
    if not past:
        return image
    step = (image - point)[..., None]
    past_steps = np.stack([t - x for x, t in past], axis=-1)
    past_images = np.stack([t for _, t in past], axis=-1)
    weight = np.linalg.pinv(step - past_steps) @ step
    return image - ((image[..., None] - past_images) @ weight)[..., 0]

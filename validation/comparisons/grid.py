"""Simulations beside the theory over a problem's parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replica.display import Progress, told
from replica.observables import grid_axes, places_on_grid
from replica.problem import Problem
from solvers.results import Array

from .comparing import compare
from .comparison import Comparison
from .theory import Theory, theory_of


def compare_grid(
    problem: Problem,
    *,
    grids: Mapping[str, ArrayLike],
    run: Callable[..., Comparison] = compare,
    beta: float | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> Comparison:
    """Simulate a problem for every combination of some of its parameters, beside the theory.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
    grids : dict of name -> values
        As for :func:`replica.learning_curve`: ``{"eta": [1, 3]}``,
        ``{"readout": ["equal", "gaussian"]}``.
    run : callable
        :func:`compare` or :func:`ladder`; what else it takes are the ``options``.
    beta : float
        Width over input dimension p/d, for a GradientStep, unless it is among the ``grids``.
    progress : bool or callable
        As in :func:`simulate`, of the draws at all places.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation.comparisons import compare_grid
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> at = dict(alpha=[0.5, 2], lam=0.1, dimension=60, seeds=3, rng=0, beta=1.0)
    >>> dict(compare_grid(step, grids={"eta": [1, 3]}, **at).dataset().sizes)
    {'eta': 2, 'alpha': 2, 'source': 2}
    """
    axes = grid_axes(problem, grids)
    each: list[Comparison] = []
    count = int(np.prod([axis.size for axis in axes.values()]))

    with told(progress, "draws") as of_all:

        def advance(done: int, total: int) -> None:
            if of_all is not None:
                of_all(len(each) * total + done, count * total)

        for of, width in problems_on_grid(problem, axes, beta):
            each.append(run(of, beta=width, progress=advance, **options))
    which = {name: options[name] for name in ("theory", "simulated") if name in options}
    size, loss = each[0].simulations[0].dimension, each[0].simulations[0].loss

    def theories(axes: Mapping[str, Array]) -> list[Theory]:
        places = problems_on_grid(problem, axes, beta)
        return [theory_of(of, width, **which).at(size, loss) for of, width in places]

    axes_of_all = axes | each[0].axes
    shape = [axis.size for axis in axes_of_all.values()]
    return Comparison(
        axes_of_all,
        joined([one.checks for one in each], shape),
        [simulation for one in each for simulation in one.simulations],
        [one.theories[0] for one in each],
        each[0].allowance,
        joined([one.lines for one in each], shape),
        theories,
    )


def joined(parts: Sequence[Mapping[str, Any]], shape: Sequence[int]) -> dict[str, Any]:
    """The checks, or the lines, of all settings as one; NaN where something is not measured."""
    unknown = np.full(shape[-2:], np.nan)
    of_all = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        kind = type(next(part[name] for part in parts if name in part))
        none = [unknown] * len(kind._fields)
        of_each = zip(*(part.get(name, none) for part in parts), strict=True)
        of_all[name] = kind(*(np.reshape(of, shape) for of in of_each))
    return of_all


def problems_on_grid(
    problem: Problem, axes: Mapping[str, Array], beta: float | None
) -> Iterator[tuple[Problem, float | None]]:
    """The problem of every combination, and its width where that is not its own."""
    for values in places_on_grid(axes):
        if problem.schedule:
            width = values.pop("beta", beta)
            yield problem.step.with_values(width, values), width
        else:
            yield problem.model_at(**values), beta

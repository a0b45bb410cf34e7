"""Comparisons on a grid: one for every combination of the values of a problem's parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from replica.observables import grid_axis, places_on_grid, sweep
from replica.problem import Problem
from solvers.results import Array

from .one_size import Comparison, compare
from .several_sizes import Ladder
from .theory import theory_of

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class ComparisonGrid:
    """Theory beside simulation for every combination of some parameters.

    Attributes
    ----------
    problem : GradientStep or SpikedRandomFeatures
        With the first value of every parameter.
    axes : dict of name -> (n,) array
        The parameters that vary, in the order of the dimensions.
    each : list of Comparison or Ladder
        The last parameter varying fastest.
    """

    problem: Problem
    axes: dict[str, Array]
    each: Sequence[Comparison | Ladder]

    @property
    def places(self) -> list[dict[str, Any]]:
        """The parameters of ``each``."""
        return list(places_on_grid(self.problem, self.axes))

    @property
    def agrees(self) -> bool:
        """Whether all of them do."""
        return all(one.agrees for one in self.each)

    @property
    def verdict(self) -> str:
        """A sentence, and those of the comparisons that do not agree."""
        off = [i for i, one in enumerate(self.each) if not one.agrees]
        first = f"theory and simulation agree at {len(self.each) - len(off)} of {len(self.each)}"
        others = [f"at {_setting(self.places[i])}: {self.each[i].verdict}" for i in off]
        return "; ".join([f"{first} settings", *others])

    def points(self) -> list[dict[str, Any]]:
        """The points of all, each with its parameters."""
        pairs = zip(self.places, self.each, strict=True)
        return [place | point for place, one in pairs for point in one.document()["points"]]

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: as of one comparison, with the points of all."""
        document = self.each[0].document()
        varied = {name: axis.tolist() for name, axis in self.axes.items()}
        return document | {"problem": document["problem"] | varied, "points": self.points()}

    def dataset(self) -> "xarray.Dataset":
        """The points as an xarray.Dataset; its dimensions are the parameters, alpha and lam."""
        import xarray

        first = self.each[0]
        axes = self.axes | {"alpha": first.alpha, "lam": first.lam}
        points, shape = self.points(), [axis.size for axis in axes.values()]
        columns = {name: [point[name] for point in points] for name in points[0]}
        variables = {
            name: (tuple(axes), np.reshape(np.array(values, dtype=float), shape))
            for name, values in columns.items()
            if name not in axes
        }
        problem = self.document()["problem"]
        attrs = {k: v for k, v in problem.items() if k not in axes and isinstance(v, (str, float))}
        return xarray.Dataset(variables, coords=axes, attrs=attrs)


def _setting(place: Mapping[str, Any]) -> str:
    """The values of some parameters, in words."""
    return ", ".join(f"{name} = {value}" for name, value in place.items())


def compare_grid(
    problem: Problem,
    *,
    grids: Mapping[str, ArrayLike],
    run: Callable[..., Comparison | Ladder] = compare,
    beta: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> ComparisonGrid:
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
    progress : callable (done, total)

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> at = dict(alpha=[0.5, 2], lam=0.1, dimension=60, seeds=3, rng=0, beta=1.0)
    >>> dict(compare_grid(step, grids={"eta": [1, 3]}, **at).dataset().sizes)
    {'eta': 2, 'alpha': 2, 'lam': 1}
    """
    axes = {name: grid_axis(name, values) for name, values in grids.items()}
    each: list[Comparison | Ladder] = []
    count = int(np.prod([axis.size for axis in axes.values()]))

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(len(each) * total + done, count * total)

    for of, width in problems_on_grid(problem, axes, beta):
        each.append(run(of, beta=width, progress=advance, **options))
    return ComparisonGrid(problem, axes, each)


def problems_on_grid(
    problem: Problem, axes: Mapping[str, Array], beta: float | None
) -> Iterator[tuple[Problem, float | None]]:
    """The problem of every combination, and its width where that is not its own."""
    for values in places_on_grid(problem, axes):
        if problem.schedule:
            width = values.pop("beta", beta)
            yield problem.step.at(width, values), width
        else:
            yield problem.model(**values), beta


def theory_on_grid(
    problem: Problem,
    axes: Mapping[str, Array],
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    beta: float | None = None,
    simulated: str = "network",
    model: str | None = None,
    dimension: int | None = None,
    loss: Any = "square",
) -> "xarray.Dataset":
    """The theory that comparisons on the grid ``axes`` take, as a data set over the same
    dimensions: for lines through more points than are simulated."""
    import xarray

    shape = [axis.size for axis in axes.values()]
    parts = []
    for of, width in problems_on_grid(problem, axes, beta):
        theory = theory_of(of, width, model, simulated)
        at = theory if dimension is None else theory.at(dimension)
        parts.append(sweep(at.model, alpha=alpha, lam=lam, grids={}, loss=loss))
    ends, names = parts[0].axes, ("test_error", "train_error", "classification_error")
    sizes = [*shape, *(axis.size for axis in ends.values())]
    variables = {
        name: ((*axes, *ends), np.reshape([part.columns[name] for part in parts], sizes))
        for name in names
        if name in parts[0].columns
    }
    return xarray.Dataset(variables, coords={**axes, **ends})

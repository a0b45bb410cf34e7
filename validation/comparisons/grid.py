"""Comparisons on a grid: one for every combination of the values of a problem's parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from replica.display import Displayed, text
from replica.observables import grid_axes, places_on_grid
from replica.plotting import abscissa_of, plot_comparison, spaced
from replica.problem import Problem, attributes
from solvers.results import Array

from .one_size import Comparison, compare
from .several_sizes import Ladder
from .theory import Theory, curves, theory_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

# Values of a parameter between which a line is drawn, other than alpha and lam, which cost nothing:
# each takes .1 s, and several seconds with a continuous law of the readout.
SHOWN, SHOWN_OF_LAWS = 31, 13


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonGrid(Displayed):
    """Theory beside simulation at all values of some parameters, of :func:`compare_grid`.

    Attributes
    ----------
    problem : GradientStep or SpikedRandomFeatures
        With the first value of every parameter.
    axes : dict of name -> (n,) array
        The parameters that vary, in the order of the dimensions.
    each : list of Comparison or Ladder
        The last parameter varying fastest.
    theories : callable (axes) -> list of Theory
        Those of other values of the parameters, in the same order.
    """

    problem: Problem
    axes: dict[str, Array]
    each: Sequence[Comparison | Ladder]
    theories: Callable[[dict[str, Array]], list[Theory]]

    @property
    def places(self) -> list[dict[str, Any]]:
        """The parameters of ``each``."""
        return places_on_grid(self.axes)

    @property
    def agrees(self) -> bool:
        """Whether all of them do."""
        return all(one.agrees for one in self.each)

    @property
    def verdict(self) -> str:
        """A sentence, and those of the comparisons that do not agree."""
        off = [i for i, one in enumerate(self.each) if not one.agrees or one.differs]
        first = f"Theory and simulation agree at {len(self.each) - len(off)} of {len(self.each)}"
        others = [f"At {_setting(self.places[i])}: {self.each[i].verdict}" for i in off]
        return "\n".join([f"{first} settings.", *others])

    @property
    def note(self) -> str:
        """Which theories they are, where they differ at which settings, and why where that may
        surprise."""
        notes = [one.note for one in self.each]
        if len(set(notes)) == 1:
            return notes[0]
        size = len(notes)
        return "; ".join(
            f"{note} (at {notes.count(note)} of {size} settings, "
            f"the first {_setting(self.places[notes.index(note)])})"
            for note in dict.fromkeys(notes)
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the size of the simulations, in plain values."""
        first = self.each[0].settings
        return first | {name: axis.tolist() for name, axis in self.axes.items()}

    def points(self) -> list[dict[str, Any]]:
        """The points of all, each with its parameters."""
        pairs = zip(self.places, self.each, strict=True)
        return [place | point for place, one in pairs for point in one.document()["points"]]

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: as of one comparison, with the points of all."""
        document = self.each[0].document()
        varied = {name: axis.tolist() for name, axis in self.axes.items()}
        described = {"problem": document["problem"] | varied, "theory": self.note}
        return document | described | {"points": self.points()}

    def dataset(self) -> "xarray.Dataset":
        """The points as an xarray.Dataset; its dimensions are the parameters, alpha and lam."""
        import xarray

        first, points = self.each[0], self.points()
        axes = self.axes | {"alpha": first.alpha, "lam": first.lam}
        shape = [axis.size for axis in axes.values()]
        columns = {
            name: np.array([point[name] for point in points], dtype=float).reshape(shape)
            for name in points[0]
            if name not in axes
        }
        variables = {name: (tuple(axes), values) for name, values in columns.items()}
        made = {*axes} | ({"eta"} if "rate" in axes else set())
        origin = first.settings | first.origin | {"theory": self.note}
        known = {k: v for k, v in origin.items() if k not in made}
        return xarray.Dataset(variables, coords=axes, attrs=attributes(known))

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """A curve with its dots for every combination, along the longest dimension; thin and pale
        lines as in the figure of one comparison, so that each shows which theory it is of."""
        points = self.dataset()
        along = abscissa_of(points, "simulated_test")
        places = {str(name): points[name].values for name in points.simulated_test.dims}
        places[along] = spaced(places[along], *([self._shown] if along in self.axes else []))
        alpha, lam = places.pop("alpha"), places.pop("lam")
        first = self.each[0]
        lines = curves(self.theories(places), places, alpha, lam, first.loss)
        return plot_comparison(points, lines, ax, error=error, simulated=first.simulated)

    @property
    def _shown(self) -> int:
        """Between how many values of a parameter of the problem a line is drawn."""
        step = self.problem.step
        laws = "readout" in self.axes or (step is not None and step.readout.continuous)
        return SHOWN_OF_LAWS if laws else SHOWN

    def _facts(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "theory": self.note}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self.points()


def _setting(place: Mapping[str, Any]) -> str:
    """The values of some parameters, in words."""
    return ", ".join(f"{name} = {text(value)}" for name, value in place.items())


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
    >>> from validation.comparisons import compare_grid
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> at = dict(alpha=[0.5, 2], lam=0.1, dimension=60, seeds=3, rng=0, beta=1.0)
    >>> dict(compare_grid(step, grids={"eta": [1, 3]}, **at).dataset().sizes)
    {'eta': 2, 'alpha': 2, 'lam': 1}
    """
    axes = grid_axes(problem, grids)
    each: list[Comparison | Ladder] = []
    count = int(np.prod([axis.size for axis in axes.values()]))

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(len(each) * total + done, count * total)

    for of, width in problems_on_grid(problem, axes, beta):
        each.append(run(of, beta=width, progress=advance, **options))
    which = {name: options[name] for name in ("model", "simulated") if name in options}
    size = each[0].theory.model.dimension

    def theories(axes: Mapping[str, Array]) -> list[Theory]:
        places = problems_on_grid(problem, axes, beta)
        return [theory_of(of, width, **which).at(size) for of, width in places]

    return ComparisonGrid(problem, axes, each, theories)


def problems_on_grid(
    problem: Problem, axes: Mapping[str, Array], beta: float | None
) -> Iterator[tuple[Problem, float | None]]:
    """The problem of every combination, and its width where that is not its own."""
    for values in places_on_grid(axes):
        if problem.schedule:
            width = values.pop("beta", beta)
            yield problem.step.at(width, values), width
        else:
            yield problem.model(**values), beta

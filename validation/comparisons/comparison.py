"""Comparison of simulation and theory: agreement, verdict, document, figure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from replica.display import Displayed, text
from replica.documents import plain
from replica.observables import data_set, places_on_grid
from replica.plotting import abscissa_of, plot_comparison, spaced, with_all_axes
from solvers.results import Array

from ..run import Simulation, rows_of
from .checks import CHANCE, SOURCES, Check, Extrapolation, columns_by_source, simulated, verdict
from .theory import Theory, curves, exact

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

# Values of a parameter between which a line is drawn, other than alpha and lam, which cost nothing:
# each takes .1 s, and several seconds with a continuous law of the readout.
SHOWN, SHOWN_OF_LAWS = 31, 13
SIZES = ("dimension", "seeds")  # settings in which the simulations of a ladder differ


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """Simulations beside the theory at the same points.

    Returned by :func:`validation.compare`, :func:`validation.ladder` and
    :func:`validation.comparisons.compare_grid`.

    Attributes
    ----------
    axes : dict of name -> (n,) array
        The parameters of the problem that vary, if any, then alpha, or the samples of what is
        given, and lam.
    checks : dict of name -> Check
        Of test_error, train_error and what else is measured; over the axes.
    simulations : list of Simulation
        At every setting of the parameters, the last varying fastest, and every dimension.
    theories : list of Theory
        Of every setting.
    allowance : float or (n, 1) array, or a list of them, one for each setting of a grid
        Finite-size bias that is allowed for, relative to the theory; 1 / n of what is given.
    lines : dict of name -> Extrapolation
        In 1/d, of which the limits are compared; empty at a single dimension.
    between : callable (axes) -> list of Theory
        Those of other values of the parameters, in the same order.
    notes : list of str
        Of what is given: what the theory may be off by, why, and at how many samples.
    """

    axes: dict[str, Array]
    checks: dict[str, Check]
    simulations: list[Simulation]
    theories: list[Theory]
    allowance: Any
    lines: dict[str, Extrapolation] = field(default_factory=dict)
    between: Callable[[dict[str, Array]], list[Theory]] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def simulation(self) -> Simulation:
        """Simulation of the first setting, at the largest dimension."""
        return self._sizes[-1]

    @property
    def agrees(self) -> bool:
        """True if every error is within 4 standard errors, more of few seeds, and the allowance of
        the theory, and no more than a quarter of the simulated one off.

        False if the theory did not converge somewhere.
        """
        return self._all(Check.agrees)

    @property
    def disagrees(self) -> bool:
        """True if an error is further off than is allowed, also of skewed draws, or the theory did
        not converge somewhere; of few draws theory and simulation may neither agree nor disagree.
        """
        return not self._all(lambda *known: ~Check.differs(*known))

    def _all(self, holds: Callable[[Check, Any, int], Array]) -> bool:
        """True if a condition ``holds`` for every error."""
        seeds = self.simulation.seeds
        return all(
            bool(holds(check, self._at(i, self.allowance), seeds).all())
            for i, (_, checks, _) in enumerate(self._settings())
            for check in checks.values()
        )

    def _at(self, i: int, known: Any) -> Any:
        """The entry of setting ``i``, of a list with one for each, or with one for all."""
        return known[i] if isinstance(known, list) else known

    @property
    def verdict(self) -> str:
        """Sentence on the agreement of theory and simulation; of several settings, the number that
        agree, and a sentence for the one of the largest score of these and for each of the others.
        """
        places = list(self._settings())
        verdicts = [self._verdict(i, *known[1:]) for i, known in enumerate(places)]
        if not self._varied:
            return verdicts[0][1]
        said = [
            f"At {_in_words(place)}: {sentence}"
            for (place, *_), (_, sentence) in zip(places, verdicts, strict=True)
        ]
        equal = [i for i, (agree, _) in enumerate(verdicts) if agree]
        off = [one for i, one in enumerate(said) if i not in equal]
        first = f"Theory and simulation agree at {len(equal)} of {len(said)} settings."
        if equal:

            def score(i: int) -> float:
                return float(
                    max(np.abs(np.nan_to_num(one.z)).max() for one in places[i][1].values())
                )

            first += f" Least alike of these, {said[max(equal, key=score)].replace('At', 'at', 1)}"
        return "\n".join([first, *off])

    def _verdict(
        self, i: int, checks: dict[str, Check], lines: dict[str, Extrapolation]
    ) -> tuple[bool, str]:
        """True if theory and simulation are equal at one setting, and a sentence; a second sentence
        where the means are too far from lines in 1/d for a limit to be known."""
        sizes = ", ".join(str(one.dimension) for one in self._sizes)
        size = f"terms in 1/d^2 at d = {sizes}" if lines else f"d = {sizes}"
        if exact(self.simulation, self.theories[min(i, len(self.theories) - 1)]):
            n = self.simulation.samples
            size = f"n = {n.min()}" + f" to {n.max()}" * (n.size > 1)
        equal, sentence = verdict(
            checks,
            self._points,
            allowance=self._at(i, self.allowance),
            size=size,
            seeds=self.simulation.seeds,
        )
        p = np.array([line.p_value for line in lines.values()])
        off = p < CHANCE / max(p.size, 1)
        if off.any():
            sentence += (
                f" The means of {off.sum()} of {p.size} errors do not lie on a line in 1/d "
                f"(p_value down to {p[off].min():.1g}): of these, larger sizes tell the limit."
            )
        return equal, sentence

    @property
    def note(self) -> str:
        """The theories compared with, the settings of each, and why where that may surprise."""
        notes = [
            theory.note + f": {theory.reason}" * bool(theory.reason) for theory in self.theories
        ]
        if len(set(notes)) == 1:
            return notes[0]
        places = places_on_grid(self._varied)
        return "; ".join(
            f"{note} (at {notes.count(note)} of {len(notes)} settings, "
            f"the first {_in_words(places[notes.index(note)])})"
            for note in dict.fromkeys(notes)
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the sizes of the simulations, in plain values."""
        varied = {name: axis.tolist() for name, axis in self._varied.items()}
        return self.simulation.settings | self._ladder | varied

    @property
    def columns(self) -> dict[str, Array]:
        """Errors in theory and simulation, by name, over the axes and ``source``; beside it
        its standard error, <error>_stderr, its score, <error>_z, and of a ladder the slope and
        p_value of its line, which are NaN in the theory."""
        columns = columns_by_source(self.axes, self.checks)
        for name, line in self.lines.items():
            columns[f"{name}_slope"] = simulated(line.slope)
            columns[f"{name}_p_value"] = simulated(line.p_value)
        return columns

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: problem, points, agreement, dimension (of features their number,
        the width) and seeds; None for NaN."""
        document = self.simulation.document(self.columns)
        document["problem"] |= self._varied
        document |= {"theory": self.note, "agrees": self.agrees, "verdict": self.verdict}
        document |= {"notes": self.notes} if self.notes else {}
        if self.lines:
            each = [one.document() for one in self._sizes]
            steps = [{name: one[name] for name in (*SIZES, "points")} for one in each]
            document |= self._ladder | {"dimension": "inf", "ladder": steps}
        return dict(plain(document))

    def dataset(self) -> "xarray.Dataset":
        """Columns as an xarray.Dataset over the axes and ``source``, theory or simulation, with the
        settings to run the comparison again as attributes."""
        known = self.settings | self.simulation.origin | {"theory": self.note}
        made = {*self.axes} | ({"eta"} if "rate" in self.axes else set())
        known = {name: value for name, value in known.items() if name not in made}
        axes = self.axes | {"source": SOURCES}
        return data_set(axes, self.columns, known, self.simulation.single)

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """Theory as lines and simulation as points, :func:`replica.plotting.plot_comparison`; over
        the longest of the axes, a line for every combination of the others.

        Thin lines: the published sRF beside the network's own theory; pale ones: the limit d -> inf
        where the theory is that of the simulated dimension.
        """
        points = self.dataset()
        along = abscissa_of(with_all_axes(points), "test_error")
        shown = [self._shown] if along in self._varied else []
        places = self.axes | {along: spaced(self.axes[along], *shown)}
        at = {name: places.pop(name) for name in self._points}
        theories = self.theories if self.between is None else self.between(places)
        lines = curves(theories, places, at, self.simulation.loss)
        simulated = "extrapolated" if self.lines else "simulated"
        return plot_comparison(points, lines, ax, error=error, simulated=simulated)

    @property
    def _varied(self) -> dict[str, Array]:
        """The axes of the problem's parameters."""
        return {name: axis for name, axis in self.axes.items() if name not in self._points}

    @property
    def _points(self) -> dict[str, Array]:
        """Axes of a single simulation: alpha or samples, and lam."""
        return {name: self.axes[name] for name in self.simulations[0].axes}

    @property
    def _sizes(self) -> list[Simulation]:
        """The simulations of the first setting."""
        return self.simulations[: len(self.simulations) // len(self.theories)]

    @property
    def _ladder(self) -> dict[str, list[int]]:
        """Dimensions and widths of a ladder, in the place of a single simulation's."""
        return {name: [getattr(one, name) for one in self._sizes] for name in SIZES if self.lines}

    def _settings(
        self,
    ) -> Iterator[tuple[dict[str, Any], dict[str, Check], dict[str, Extrapolation]]]:
        """Parameters of every setting, its checks and its lines, (N_a, N_l) each, without errors
        that are not measured there."""
        inner = (-1, *(axis.size for axis in self._points.values()))

        def entry(i: int, of: Any) -> Any:
            return type(of)(*(part.reshape(inner)[i] for part in of))

        for i, place in enumerate(places_on_grid(self._varied)):
            checks = {name: entry(i, check) for name, check in self.checks.items()}
            known = {name: of for name, of in checks.items() if not np.isnan(of.simulated).all()}
            lines = {name: entry(i, line) for name, line in self.lines.items()}
            yield place, known or checks, lines

    @property
    def _shown(self) -> int:
        """Between how many values of a parameter of the problem a line is drawn."""
        step = getattr(self.simulation.problem, "step", None)
        laws = "readout" in self.axes or (step is not None and step.readout.continuous)
        return SHOWN_OF_LAWS if laws else SHOWN

    def _facts(self) -> dict[str, Any]:
        z = {f"z of {name}": check.z.ravel().round(2) for name, check in self.checks.items()}
        known = {"verdict": self.verdict, "theory": self.note, "notes": "; ".join(self.notes)}
        return ({} if self._varied else z) | {name: said for name, said in known.items() if said}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns)


def _in_words(place: Mapping[str, Any]) -> str:
    """The values of some parameters."""
    return ", ".join(f"{name} = {text(value)}" for name, value in place.items())

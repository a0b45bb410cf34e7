"""Comparison: simulated errors beside the theory, with agreement, verdict, document and figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from replica.display import Displayed, text
from replica.files import plain
from replica.observables import data_set, places_on_grid
from replica.plotting import abscissa_of, plot_comparison, spaced, with_all_axes
from solvers.results import Array

from ..run import Simulation, rows_of
from .agreement_checks import (
    CHANCE,
    SOURCES,
    Check,
    Extrapolation,
    columns_by_source,
    simulated,
    undetected_differences,
    undetected_text,
    verdict,
)
from .theory import Remarks, Theory, curves, exact, is_srf_of_networks

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


SIZES = ("dimension", "seeds")  # settings in which the simulations of a ladder differ
SQUARED = ("test_error", "train_error")


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
        Checks of test_error, train_error and what else is measured; over the axes.
    simulations : list of Simulation
        Simulations at every setting of the parameters, the last varying fastest, and dimension.
    theories : list of Theory
        Theory of every setting.
    allowance : float or (n, 1) array, or a list of them, one for each setting of a grid
        Finite-size bias that is allowed for, relative to the theory; 1 / n of what is given.
    lines : dict of name -> Extrapolation
        Lines in 1/d, of which the limits are compared; empty at a single dimension.
    remarks : Remarks
        Of what is given: notes, and columns beside the errors of the theory.
    between : callable or None
        Theories at other values of the varied parameters, for smooth lines.
    parts : list of Comparison
        Comparisons at every setting of a grid, in the order of ``theories``; else empty.
    """

    axes: dict[str, Array]
    checks: dict[str, Check]
    simulations: list[Simulation]
    theories: list[Theory]
    allowance: Any
    lines: dict[str, Extrapolation] = field(default_factory=dict)
    between: Callable[[dict[str, Array]], list[Theory]] | None = None
    remarks: Remarks = field(default_factory=Remarks)
    parts: list["Comparison"] = field(default_factory=list)

    @property
    def simulation(self) -> Simulation:
        """Simulation of the first setting, at the largest dimension."""
        return self._sizes[-1]

    @property
    def notes(self) -> list[str]:
        """Notes on what is given: how far off the theory may be, why, and at how many samples."""
        return list(self.remarks.notes)

    @property
    def agrees(self) -> bool:
        """True if every error of the ``verdict`` is within 4 standard errors, more of few seeds,
        and the allowance of the theory, and no more than a quarter of the simulated one off.

        False if the theory did not converge somewhere.
        """
        return self._all(Check.agrees)

    @property
    def disagrees(self) -> bool:
        """True if an error of the ``verdict`` is further off than is allowed, also of skewed draws,
        or the theory did not converge somewhere; of few draws theory and simulation may neither
        agree nor disagree.
        """
        return not self._all(lambda *known: ~Check.differs(*known))

    def _all(self, condition: Callable[[Check, Any, int], Array]) -> bool:
        """True if the ``condition`` holds for every error."""
        return all(
            bool(condition(check, one.allowance, one.simulation.seeds).all())
            for one in self._settings
            for check in one._judged.values()
        )

    @property
    def _judged(self) -> dict[str, Check]:
        """The checks that are judged: without the squared errors of a loss of the margin, which it
        does not minimise, and of which rare draws of large outputs have the most."""
        unjudged = SQUARED if self.simulation.loss.kind == "margin" else ()
        return {name: check for name, check in self.checks.items() if name not in unjudged}

    @property
    def _settings(self) -> list["Comparison"]:
        """The comparison of every setting."""
        return self.parts or [self]

    @property
    def verdict(self) -> str:
        """Sentence on the agreement of theory and simulation; of several settings, the number that
        agree, and a sentence for each of the others.  Squared errors of a loss of the margin, such
        as hinge, are not judged, here and in ``agrees`` and ``disagrees``."""
        verdicts = [one._equal for one in self._settings]
        if not self._varied:
            return verdicts[0][1]
        agreeing = [one for one, (equal, _) in zip(self._settings, verdicts, strict=True) if equal]
        text = f"Theory and simulation agree at {len(agreeing)} of {len(verdicts)} settings"
        seeds = self.simulation.seeds
        text += undetected_text(
            [undetected_differences(one._judged, seeds) for one in agreeing], seeds
        )
        disagreeing = [
            f"At {_point_text(place)}: {sentence}"
            for place, (equal, sentence) in zip(places_on_grid(self._varied), verdicts, strict=True)
            if not equal
        ]
        return "\n".join([f"{text}.", *disagreeing])

    @property
    def _equal(self) -> tuple[bool, str]:
        """True if theory and simulation are equal at a single setting, and a sentence; a second
        sentence where the means are too far from lines in 1/d for a limit to be known."""
        d_text = ", ".join(str(simulation.dimension) for simulation in self.simulations)
        compared_size = f"terms in 1/d^2 at d = {d_text}" if self.lines else f"d = {d_text}"
        if exact(self.simulation, self.theories[0]):
            n = self.simulation.samples
            compared_size = f"n = {n.min()}" + f" to {n.max()}" * (n.size > 1)
        if is_srf_of_networks(self.simulation, self.theories[0]):
            compared_size += " (the sRF may differ from the network in the limit, too)"
        how: dict[str, Any] = {"allowance": self.allowance, "seeds": self.simulation.seeds}
        are_equal, verdict_sentence = verdict(self._judged, self._points, size=compared_size, **how)
        p = np.array([line.p_value for line in self.lines.values()])
        off_line = p < CHANCE / max(p.size, 1)
        if off_line.any():
            verdict_sentence += (
                f" The means of {off_line.sum()} of {p.size} errors do not lie on a line in 1/d "
                f"(p_value down to {p[off_line].min():.1g}): of these, larger sizes tell the limit."
            )
        return are_equal, verdict_sentence

    @property
    def note(self) -> str:
        """The theories compared with, the settings of each, and why where that may surprise."""
        theory_notes = [
            theory.note + f": {theory.reason}" * bool(theory.reason) for theory in self.theories
        ]
        if len(set(theory_notes)) == 1:
            return theory_notes[0]
        grid_points = places_on_grid(self._varied)
        return "; ".join(
            f"{theory_note} (at {theory_notes.count(theory_note)} of {len(theory_notes)} settings, "
            f"the first {_point_text(grid_points[theory_notes.index(theory_note)])})"
            for theory_note in dict.fromkeys(theory_notes)
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
        p_value of its line, which are NaN in the theory; errors of fits to random rows, which are
        NaN in the simulation, and whether a point of the theory is ``noted``, of what is given; and
        ``theory``, the name of the theory that the simulation of a point is compared with."""
        source_columns = columns_by_source(self.axes, self.checks)
        for name, ladder_line in self.lines.items():
            source_columns[f"{name}_slope"] = simulated(ladder_line.slope)
            source_columns[f"{name}_p_value"] = simulated(ladder_line.p_value)
        for name, values in self.remarks.columns.items():
            unknown = False if values.dtype == bool else np.nan
            source_columns[name] = np.stack([values, np.full_like(values, unknown)], axis=-1)
        point_shape = [axis.size for axis in self._points.values()]
        of_settings = [np.broadcast_to(theory.names, point_shape) for theory in self.theories]
        names = np.reshape(of_settings, (*(axis.size for axis in self.axes.values()), 1))
        return source_columns | {"theory": np.broadcast_to(names, source_columns["source"].shape)}

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: problem, points, agreement, dimension (of features their number,
        the width) and seeds; None for NaN."""
        comparison_document = self.simulation.document(self.columns)
        comparison_document["problem"] |= self._varied
        comparison_document |= {"theory": self.note, "agrees": self.agrees, "verdict": self.verdict}
        comparison_document |= {"notes": self.notes} if self.notes else {}
        if self.lines:
            rung_documents = [doc.document() for doc in self._sizes]
            rungs = [{name: doc[name] for name in (*SIZES, "points")} for doc in rung_documents]
            comparison_document |= self._ladder | {"dimension": "inf", "ladder": rungs}
        return dict(plain(comparison_document))

    def dataset(self) -> "xarray.Dataset":
        """Columns as an xarray.Dataset over the axes and ``source``, theory or simulation, with the
        settings to run the comparison again as attributes."""
        attributes = self.settings | self.simulation.origin | {"theory": self.note}
        grid_names = {*self.axes} | ({"eta"} if "rate" in self.axes else set())
        attributes = {name: value for name, value in attributes.items() if name not in grid_names}
        source_axes = self.axes | {"source": SOURCES}
        return data_set(source_axes, self.columns, attributes, self.simulation.single)

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """Theory as lines and simulation as points, :func:`replica.plotting.plot_comparison`; over
        the longest of the axes, a line for every combination of the others.

        Thin lines: the published sRF beside the network's own theory; pale ones: the limit d -> inf
        where the theory is that of the simulated dimension.
        """
        simulated_points = self.dataset()
        abscissa = abscissa_of(with_all_axes(simulated_points), "test_error")
        # the theory of a model takes .1 s or more, points of one little unless samples are reused
        models = [theory.model for theory in self.theories]
        slow_points = any(getattr(one, "reuse", 0) and one.target.dimension > 1 for one in models)
        point_count = [13] if abscissa in self._varied or slow_points else []
        line_axes = self.axes | {abscissa: spaced(self.axes[abscissa], *point_count)}
        readout_axes = {name: line_axes.pop(name) for name in self._points}
        theories = self.theories if self.between is None else self.between(line_axes)
        varied_axes = self._varied if self.between is None else line_axes
        theory_lines = curves(theories, varied_axes, readout_axes, self.simulation.loss)
        simulated = "extrapolated" if self.lines else "simulated"
        return plot_comparison(simulated_points, theory_lines, ax, error=error, simulated=simulated)

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
        return self._settings[0].simulations

    @property
    def _ladder(self) -> dict[str, list[int]]:
        """Dimensions and widths of a ladder, in the place of a single simulation's."""
        return {name: [getattr(one, name) for one in self._sizes] for name in SIZES if self.lines}

    def _facts(self) -> dict[str, Any]:
        z = {f"z of {name}": check.z.ravel().round(2) for name, check in self.checks.items()}
        facts = {"theory": self.note, "verdict": self.verdict, "notes": "; ".join(self.notes)}
        return ({} if self._varied else z) | {name: said for name, said in facts.items() if said}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns)


def _point_text(grid_point: Mapping[str, Any]) -> str:
    """The values of some parameters."""
    return ", ".join(f"{name} = {text(value)}" for name, value in grid_point.items())

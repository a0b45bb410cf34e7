"""Results of comparing simulations with the theory: of errors, with agreement, verdict, document
and figure, and of the alignment of the neurons with the target's directions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from replica.display import Displayed, text
from replica.files import plain
from replica.observables import data_set, places_on_grid
from replica.plotting import (
    BARS,
    REFERENCE,
    abscissa_of,
    axes,
    colours,
    draw_points,
    finish,
    nudged,
    plot_comparison,
    spaced,
    with_all_axes,
)
from replica.problem import Geometry
from replica.steps import GradientStep, after_each_step
from solvers.results import Array

from ..draws import seed_count, seed_sequence
from ..measure import alignment
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
from .theory import Theory, curves, exact

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


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
    notes : list of str
        Of what is given: what the theory may be off by, why, and at how many samples.
    between : callable or None
        Theories at other values of the varied parameters, for smooth lines.
    parts : list of Comparison
        Those at every setting of a grid, in the order of ``theories``; empty of a single one.
    """

    axes: dict[str, Array]
    checks: dict[str, Check]
    simulations: list[Simulation]
    theories: list[Theory]
    allowance: Any
    lines: dict[str, Extrapolation] = field(default_factory=dict)
    between: Callable[[dict[str, Array]], list[Theory]] | None = None
    notes: list[str] = field(default_factory=list)
    parts: list["Comparison"] = field(default_factory=list)

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

    def _all(self, condition: Callable[[Check, Any, int], Array]) -> bool:
        """True if the ``condition`` holds for every error."""
        return all(
            bool(condition(check, one.allowance, one.simulation.seeds).all())
            for one in self._settings
            for check in one.checks.values()
        )

    @property
    def _settings(self) -> list["Comparison"]:
        """The comparison of every setting."""
        return self.parts or [self]

    @property
    def verdict(self) -> str:
        """Sentence on the agreement of theory and simulation; of several settings, the number that
        agree, and a sentence for each of the others."""
        verdicts = [one._equal for one in self._settings]
        if not self._varied:
            return verdicts[0][1]
        agreeing = [one for one, (equal, _) in zip(self._settings, verdicts, strict=True) if equal]
        text = f"Theory and simulation agree at {len(agreeing)} of {len(verdicts)} settings"
        seeds = self.simulation.seeds
        text += undetected_text(
            [undetected_differences(one.checks, seeds) for one in agreeing], seeds
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
        sizes = ", ".join(str(simulation.dimension) for simulation in self.simulations)
        size = f"terms in 1/d^2 at d = {sizes}" if self.lines else f"d = {sizes}"
        if exact(self.simulation, self.theories[0]):
            n = self.simulation.samples
            size = f"n = {n.min()}" + f" to {n.max()}" * (n.size > 1)
        how: dict[str, Any] = {"allowance": self.allowance, "seeds": self.simulation.seeds}
        equal, sentence = verdict(self.checks, self._points, size=size, **how)
        p = np.array([line.p_value for line in self.lines.values()])
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
        grid_points = places_on_grid(self._varied)
        return "; ".join(
            f"{note} (at {notes.count(note)} of {len(notes)} settings, "
            f"the first {_point_text(grid_points[notes.index(note)])})"
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
        p_value of its line, which are NaN in the theory; and ``theory``, the name of the theory
        that the simulation of a point is compared with."""
        columns = columns_by_source(self.axes, self.checks)
        for name, ladder_line in self.lines.items():
            columns[f"{name}_slope"] = simulated(ladder_line.slope)
            columns[f"{name}_p_value"] = simulated(ladder_line.p_value)
        of_settings = np.array([theory.name for theory in self.theories])
        shape = [axis.size for axis in self._varied.values()]
        names = of_settings.reshape(*shape, 1, 1, 1)  # of alpha, lam and source
        return columns | {"theory": np.broadcast_to(names, columns["source"].shape)}

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: problem, points, agreement, dimension (of features their number,
        the width) and seeds; None for NaN."""
        document = self.simulation.document(self.columns)
        document["problem"] |= self._varied
        document |= {"theory": self.note, "agrees": self.agrees, "verdict": self.verdict}
        document |= {"notes": self.notes} if self.notes else {}
        if self.lines:
            documents = [doc.document() for doc in self._sizes]
            rungs = [{name: doc[name] for name in (*SIZES, "points")} for doc in documents]
            document |= self._ladder | {"dimension": "inf", "ladder": rungs}
        return dict(plain(document))

    def dataset(self) -> "xarray.Dataset":
        """Columns as an xarray.Dataset over the axes and ``source``, theory or simulation, with the
        settings to run the comparison again as attributes."""
        attributes = self.settings | self.simulation.origin | {"theory": self.note}
        grid_names = {*self.axes} | ({"eta"} if "rate" in self.axes else set())
        attributes = {name: value for name, value in attributes.items() if name not in grid_names}
        axes = self.axes | {"source": SOURCES}
        return data_set(axes, self.columns, attributes, self.simulation.single)

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """Theory as lines and simulation as points, :func:`replica.plotting.plot_comparison`; over
        the longest of the axes, a line for every combination of the others.

        Thin lines: the published sRF beside the network's own theory; pale ones: the limit d -> inf
        where the theory is that of the simulated dimension.
        """
        simulated_points = self.dataset()
        abscissa = abscissa_of(with_all_axes(simulated_points), "test_error")
        # the theory of a model takes .1 s or more, points of one little
        point_count = [13] if abscissa in self._varied else []
        line_axes = self.axes | {abscissa: spaced(self.axes[abscissa], *point_count)}
        readout_axes = {name: line_axes.pop(name) for name in self._points}
        theories = self.theories if self.between is None else self.between(line_axes)
        varied = self._varied if self.between is None else line_axes
        theory_lines = curves(theories, varied, readout_axes, self.simulation.loss)
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
        facts = {"verdict": self.verdict, "theory": self.note, "notes": "; ".join(self.notes)}
        return ({} if self._varied else z) | {name: said for name, said in facts.items() if said}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns)


def _point_text(grid_point: Mapping[str, Any]) -> str:
    """The values of some parameters."""
    return ", ".join(f"{name} = {text(value)}" for name, value in grid_point.items())


class FirstStep(NamedTuple):
    """Predictions for the first step, for the groups of :meth:`replica.GradientStep.srf`; where
    the readout's law is continuous, the gradients have groups of their own.

    Attributes
    ----------
    direction : (T,)
        Unit vector along C_1 = E z sigma_*, to which all neurons turn; 0 where C_1 is.
    weights, gradients : (A, T)
        Cosines with the target's directions of the rows after the step, and of what it adds.
    fractions : (A,)
        Shares of the groups of ``weights``.
    """

    direction: Array
    weights: Array
    gradients: Array
    fractions: Array


@dataclass(frozen=True, eq=False)
class AlignmentComparison:
    """Simulated cosines beside the predicted ones: S steps, T directions.

    A neuron's cosine counts with the sign of its readout, so that neurons pulled to opposite
    sides do not cancel.

    Attributes
    ----------
    checks : dict of name -> Check
        "weights" of the rows and "gradients" of what the steps add, (S, T) each.  The theory is NaN
        where it does not go: with several readouts or biases, after the first step.
    """

    checks: dict[str, Check]

    @property
    def columns(self) -> dict[str, Array]:
        """Cosines in theory and simulation, their standard errors and scores, over step, direction
        and ``source``."""
        S, T = self.checks["weights"].theory.shape
        axes = {"step": np.arange(1, S + 1), "direction": np.arange(1, T + 1)}
        return columns_by_source(axes, self.checks)

    def plot(
        self, ax: "Axes | None" = None, *, described: Mapping[str, Any] | None = None
    ) -> "Axes":
        """Cosines of the rows and of the gradients after each step, a colour for each direction:
        simulation as open points, theory, as far as it goes, as lines with a dash at each step.
        ``described`` are settings for a title."""
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax)
        S, T = self.checks["weights"].theory.shape
        steps = np.arange(1, S + 1)
        for i, colour in enumerate(colours([f"z{i + 1}" for i in range(T)])):
            for j, (name, dashes) in enumerate((("weights", "-"), ("gradients", "--"))):
                theory, simulated, stderr, _ = (column[:, i] for column in self.checks[name])
                compared = "rows" if name == "weights" else "gradients"
                style: dict[str, Any] = {"color": colour, "label": f"{compared}, $z_{i + 1}$"}
                style["marker"] = "os^vD<p>"[(2 * i + j) % 8]
                abscissae = nudged(steps.astype(float), 2 * i + j - T + 0.5, 2 * T)
                draw_points(ax, abscissae, simulated, stderr, **style)
                ax.plot(steps, theory, dashes, color=colour, marker="_", markersize=14)
        for dashes, compared in (("-", "rows"), ("--", "gradients")):
            ax.plot([], [], dashes, color="0.3", label=f"theory of the {compared}")
        label = f"simulated (±{BARS} s.e.), side by side at a step"
        draw_points(ax, [], [], [], color="0.3", label=label)
        ax.axhline(0, **REFERENCE)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return finish(ax, "giant step", "mean cosine with the direction", described)


def compare_alignment(
    problem: GradientStep,
    *,
    dimension: int,
    beta: float,
    seeds: int,
    rng: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> AlignmentComparison:
    """The neurons of ``seeds`` simulated networks after every step, beside the theory.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation.comparisons import compare_alignment
    >>> step = GradientStep(student="tanh", target="sin", steps=[(4, 1), (4, 1)])
    >>> comparison = compare_alignment(step, dimension=200, beta=0.5, seeds=2, rng=0)
    >>> weights = comparison.checks["weights"]
    >>> bool(abs(weights.simulated - weights.theory).max() < 0.1)
    True
    """
    seeds = seed_count(seeds, least=2)
    rows: list[list[Array]] = []
    for seed in seed_sequence(rng).spawn(seeds):
        cosines = alignment(problem, dimension=dimension, beta=beta, rng=seed)
        sign, of_draw = np.sign(cosines.readout)[:, None], (cosines.weights[1:], cosines.gradients)
        rows.append([(sign * cosine).mean(axis=1) for cosine in of_draw])
        if progress is not None:
            progress(len(rows), seeds)
    parts = zip(("weights", "gradients"), _predicted(problem), zip(*rows, strict=True), strict=True)
    checks = {name: Check.of_draws(theory, np.array(of_draws)) for name, theory, of_draws in parts}
    return AlignmentComparison(checks)


def _predicted(problem: GradientStep) -> tuple[Array, Array]:
    """Cosines (S, T) of rows and gradients, each times the sign of the readout, as the theory has
    them; NaN where it does not follow the step."""
    if len(problem.readout.values) == len(problem.bias.values) == 1:
        sign = np.sign(problem.readout.values[0])
        theory_steps = after_each_step(problem)
        weights = np.array([now.weight_cosines for now in theory_steps])
        return sign * weights, sign * np.array([now.gradient_cosines for now in theory_steps])
    first_prediction = first_step(problem)
    not_predicted = np.full((2, len(problem.schedule), len(first_prediction.direction)), np.nan)
    weights, gradients = not_predicted
    if len(problem.bias.values) == 1:  # every cosine has the sign of readout * h_1 * C_1
        h1 = float(problem.student.moments(problem.bias.values[0], 1.0).first)
        pull_signs = np.sign(h1 * first_prediction.direction)
        weights[0] = pull_signs * (first_prediction.fractions @ np.abs(first_prediction.weights))
        gradients[0] = pull_signs * np.abs(first_prediction.gradients).max(axis=0)
    return weights, gradients


def first_step(step: GradientStep) -> FirstStep:
    """Direction and cosines of the neurons after the first step of ``step``, for any law of the
    readout and of the bias.  docs/theory.md 2, 11

    Raises
    ------
    InvalidArgument
        If the student has a jump (no gradient).

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation.comparisons import first_step
    >>> step = GradientStep(
    ...     student="relu", target="(4*z1 + z1**2 + z2)/2", readout=[-1, 1], alpha0=1, eta=2
    ... )
    >>> first = first_step(step)
    >>> first.direction.round(3).tolist(), first.gradients.round(3).tolist()
    ([0.97, 0.243], [[-0.527, -0.132], [0.527, 0.132]])
    """
    one_step = step.first_step
    # of a continuous law many, as |cosine| bends at a readout of 0: 200 leave some 2e-4 of its mean
    values, shares = step.readout.discretise(200)
    # what a step adds is all that is left of a row where the rate is large
    infinite_step = replace(one_step, eta=1e12, decay=0, readout=(values.tolist(), shares.tolist()))
    groups_after, added = (one.srf(beta=1.0).geometry for one in (one_step, infinite_step))
    C1 = step.averages.first
    return FirstStep(
        direction=C1 / (np.linalg.norm(C1) or 1.0),
        weights=_weight_cosines(groups_after),
        gradients=_weight_cosines(added),
        fractions=groups_after.fractions,
    )


def _weight_cosines(groups: Geometry) -> Array:
    """Cosines of the rows of each group with the target's directions, (A, T)."""
    return groups.r / np.sqrt(groups.r**2 + groups.c[:, None]) * groups.gamma.T

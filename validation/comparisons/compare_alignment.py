"""Alignment of simulated neurons with the target's directions, step by step, beside the theory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from replica.plotting import BARS, REFERENCE, axes, colours, draw_points, finish, nudged
from replica.problem import Geometry
from replica.steps import GradientStep, after_each_step
from solvers.results import Array

from ..draws import seed_count, seed_sequence
from ..measure import alignment
from .agreement_checks import Check, columns_by_source

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        step_axes = {"step": np.arange(1, S + 1), "direction": np.arange(1, T + 1)}
        return columns_by_source(step_axes, self.checks)

    def plot(
        self, ax: "Axes | None" = None, *, described: Mapping[str, Any] | None = None
    ) -> "Axes":
        """Cosines of the rows and of the gradients after each step, a colour for each direction:
        simulation as open points, theory, as far as it goes, as lines with a dash at each step.
        ``described`` are settings for a title."""
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax)
        S, T = self.checks["weights"].theory.shape
        step_numbers = np.arange(1, S + 1)
        for i, colour in enumerate(colours([f"z{i + 1}" for i in range(T)])):
            for j, (name, line_dashes) in enumerate((("weights", "-"), ("gradients", "--"))):
                theory, simulated, stderr, _ = (column[:, i] for column in self.checks[name])
                compared = "rows" if name == "weights" else "gradients"
                point_style: dict[str, Any] = {"color": colour, "label": f"{compared}, $z_{i + 1}$"}
                point_style["marker"] = "os^vD<p>"[(2 * i + j) % 8]
                step_abscissae = nudged(step_numbers.astype(float), 2 * i + j - T + 0.5, 2 * T)
                draw_points(ax, step_abscissae, simulated, stderr, **point_style)
                ax.plot(step_numbers, theory, line_dashes, color=colour, marker="_", markersize=14)
        for line_dashes, compared in (("-", "rows"), ("--", "gradients")):
            ax.plot([], [], line_dashes, color="0.3", label=f"theory of the {compared}")
        points_label = f"simulated (±{BARS} s.e.), side by side at a step"
        draw_points(ax, [], [], [], color="0.3", label=points_label)
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
    groups_after, added_groups = (one.srf(beta=1.0).geometry for one in (one_step, infinite_step))
    C1 = step.averages.first
    return FirstStep(
        direction=C1 / (np.linalg.norm(C1) or 1.0),
        weights=_weight_cosines(groups_after),
        gradients=_weight_cosines(added_groups),
        fractions=groups_after.fractions,
    )


def _weight_cosines(groups: Geometry) -> Array:
    """Cosines of the rows of each group with the target's directions, (A, T)."""
    return groups.r / np.sqrt(groups.r**2 + groups.c[:, None]) * groups.gamma.T
